package cassette

import (
	"strings"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// FuzzValue writes texts and reads them again.
func FuzzValue(f *testing.F) {
	for _, s := range []string{"", "yes", "a: b", "two\nlines", "two\nlines\n", "end\n\n\n", " x\ny", "\tx\ny", "a\n  \nb", "a\r\nb", "é\u2028\n x", "# c\n- d", "\x00\n", "12e3", "0x1", "-", "---\n...\n", "a\n\n b #c\n", "\ufeffa\nb", ".5", "1_000", "a\u00a0\nb", "a \nb", "\"", "%TAG\nx", `{"a":"b\\nc"}`, `{"$json":{"a":1}}`, `{"$$json":1}`, `{"a": 1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		v := value.ObjectOf(
			value.Member{Name: "text", Value: value.Of(s)},
			value.Member{Name: s + "k", Value: value.ListOf(value.Of(s), value.ListOf(value.Of(s), value.Of(1.5)).Value(), value.Value{}).Value()},
			value.Member{Name: "deep", Value: value.ListOf(value.ObjectOf(value.Member{Name: "a", Value: value.ObjectOf(value.Member{Name: "b", Value: value.Of(s)}).Value()}).Value()).Value()},
		).Value()
		c := &Cassette{Prompt: s, Variables: map[string]string{"v" + s: s}, Entries: []*Entry{
			{Place: Place{Run: 1, Step: 1, Key: "model/1" + s}, Kind: steps.Model, Name: s, Request: v, Reply: v},
			{Place: Place{Run: 2, Step: 3, Node: "n" + s, Key: "script"}, Kind: steps.Script, Reply: value.Of(s)},
		}}
		c.sort()
		text := c.Format()
		got, err := Parse("c.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(got.Entries) != 2 || got.Prompt != s || got.Variables["v"+s] != s {
			t.Fatalf("read back: %+v\n%s", got, text)
		}
		for i, e := range got.Entries {
			want := c.Entries[i]
			if e.Place != want.Place || e.Name != want.Name || !value.Equal(e.Request, want.Request) || !value.Equal(e.Reply, want.Reply) {
				t.Fatalf("entry %d: %+v\nwant %+v\n%s", i, e, want, text)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("version: 1\nentries:\n  - {key: model/1, kind: model, reply: {a: 1}}\n"))
	f.Add([]byte("version: 1\nentries:\n  - {step: 2, node: a, key: x, kind: tool, failure: {message: no}}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse("c.yaml", src)
		if err != nil {
			if len(yamldoc.AsProblems(err)) == 0 {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		again, err := Parse("c.yaml", c.Format())
		if err != nil || string(again.Format()) != string(c.Format()) {
			t.Errorf("%v\n%s", err, c.Format())
		}
	})
}
