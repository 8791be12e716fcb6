package value_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/base/value"
)

func TestRepeatedMember(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"none", `{"a":1,"b":{"a":[{"a":1},{"a":":"}]}}`, ""},
		{"no_object", `[1,"a:b",null]`, ""},
		{"colon_after_quote", `{"a":"\":\\","b":1}`, ""},
		{"top", `{"a":1,"b":2,"a":3}`, "a"},
		{"in_escapes", `{"sub":1,"\u0073ub":1}`, "sub"},
		{"below", `{"a":[1,{"b":{"c":1,"d":[],"c":2}}]}`, "a[1].b.c"},
		{"deep", strings.Repeat(`{"x":`, 9000) + `{"z":1,"z":1}` + strings.Repeat("}", 9000), "z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var decoded any
			if err := json.Unmarshal([]byte(tt.text), &decoded); err != nil {
				t.Fatal(err)
			}
			if place, ok := value.RepeatedMember([]byte(tt.text), decoded); place != tt.want || ok != (tt.want != "") {
				t.Errorf("%q, %v, want %q", place, ok, tt.want)
			}
		})
	}
}
