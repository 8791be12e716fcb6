package toolcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/llm/provider/toolcall"
)

// FuzzAssembler feeds pieces, one JSON object per line. No text of arguments is lost, a second assembler makes the
// same of them, and a call is never made of nothing.
func FuzzAssembler(f *testing.F) {
	f.Add(`{"Index":0,"ID":"x","Name":"f","Arguments":"{\"a\""}` + "\n" + `{"Index":1,"Arguments":":1}"}` + "\n" + `{"ID":"x","Name":"f","Arguments":"{\"a\":1}","Again":true,"Whole":true}`)
	f.Add(`{"Key":"k","Arguments":"{}{}"}` + "\n" + `{"Key":"k","ID":"y","Name":"g","Arguments":"","Whole":true}`)
	f.Add(`{"Name":"f"}` + "\n" + `{"Arguments":"\"{\\\"a\\\":"}` + "\n" + `{"Arguments":"1}\""}`)
	f.Fuzz(func(t *testing.T, lines string) {
		var a, b toolcall.Assembler
		var names, texts strings.Builder
		for line := range strings.Lines(lines) {
			var p toolcall.Piece
			if json.Unmarshal([]byte(line), &p) != nil {
				continue
			}
			for _, to := range []*toolcall.Assembler{&a, &b} {
				to.NextEvent()
				to.Add(p)
			}
			names.WriteString(p.Name)
			texts.WriteString(p.Arguments)
		}
		calls, broken := a.Calls()
		again, brokenAgain := b.Calls()
		if len(calls) != len(again) || broken != brokenAgain {
			t.Fatalf("%+v %v and %+v %v", calls, broken, again, brokenAgain)
		}
		for i, c := range calls {
			if c != again[i] {
				t.Errorf("%+v and %+v", c, again[i])
			}
			if c.Name == "" && !broken {
				t.Errorf("a call without a name: %+v", c)
			}
			if len(c.Name) > names.Len() || len(c.Arguments) > texts.Len() {
				t.Errorf("%+v has more than the pieces", c)
			}
		}
	})
}
