package graph

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"loki/internal/base/value"
)

func state(t testing.TB, json string) State {
	t.Helper()
	v, err := value.ParseJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return NewState(v.AsObject())
}

const sample = `{
	"k": "v", "n": 3, "f": 1.0, "yes": true, "nothing": null, "list": ["a", "b"],
	"o": {"in": {"deep": [10, {"x": "y"}]}, "0": "zero"}, "m": [[1, 2], [3, 4]],
	"a": "{{b}}", "b": "B", "text": "[1,2]", "azAZ09_": "every letter"
}`

func TestTemplateStrict(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no_placeholder", "plain", "plain"},
		{"string", "<{{k}}>", "<v>"},
		{"number", "{{n}}", "3"},
		{"float", "{{f}}", "1.0"},
		{"bool", "{{yes}}", "true"},
		{"null", "{{nothing}}", "null"},
		{"array", "{{list}}", `["a","b"]`},
		{"object", "{{o.in.deep[1]}}", `{"x":"y"}`},
		{"nested_path", "{{o.in.deep[1].x}}", "y"},
		{"nested_indexes", "{{m[1][0]}}", "3"},
		{"index_after_dot", "{{list.[1]}}", "b"},
		{"empty_segments", "{{o..in.deep[0].}}", "10"},
		{"numeric_member", "{{o.0}}", "zero"},
		{"repeated", "{{k}}{{k}}", "vv"},
		{"inner_blanks_are_text", "{{ k }}", "{{ k }}"},
		{"hyphen_is_text", "{{my-key}}", "{{my-key}}"},
		{"filter_is_text", "{{k|upper}}", "{{k|upper}}"},
		{"empty_is_text", "{{}}", "{{}}"},
		{"three_braces", "{{{k}}}", "{v}"},
		{"unclosed", "{{k", "{{k"},
		{"half_closed", "{{k} {{k}}", "{{k} v"},
		{"unclosed_before_placeholder", "{{{{k}}", "{{v"},
		{"inserted_text_is_not_searched", "{{a}}{{b}}", "{{b}}B"},
		{"every_letter", "{{azAZ09_}}", "every letter"},
		{"non_ascii_text", "é{{k}}ü", "évü"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTemplate(tt.in).Strict(state(t, sample))
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestTemplateMissing(t *testing.T) {
	s := state(t, sample)
	for _, path := range []string{
		"x", "k.x", "k[0]", "k[", "list[2]", "list.0", "o[0]", "list[]", "list[a]", "list[0]x", "list[0][", "[0]", "list]", "m[0][9]",
		"list[99999999999999999999]", ".k", "o.in.nope",
	} {
		t.Run(path, func(t *testing.T) {
			tmpl := ParseTemplate("a {{" + path + "}} b")
			_, err := tmpl.Strict(s)
			missing, ok := errors.AsType[*MissingError](err)
			if !ok || len(missing.Paths) != 1 || missing.Paths[0] != path {
				t.Errorf("error is %v", err)
			}
			if got := tmpl.Lenient(s); got != "a  b" {
				t.Errorf("lenient gives %q", got)
			}
		})
	}
	_, err := ParseTemplate("{{x}} {{k}} {{y.z}} {{x}}").Strict(s)
	if err == nil || err.Error() != `"x", "y.z" not found in state` {
		t.Errorf("all missing paths should be listed once: %v", err)
	}
}

func TestTemplateRawAndUpdate(t *testing.T) {
	s := state(t, sample)
	for _, tt := range []struct{ name, in, want string }{
		{"typed_list", "{{list}}", `["a","b"]`},
		{"typed_padded", " \n{{n}}\t ", `3`},
		{"typed_null", "{{nothing}}", `null`},
		{"string_is_not_parsed", "{{text}}", `"[1,2]"`},
		{"two_are_text", "{{n}}{{n}}", `"33"`},
		{"mixed_is_text", "n={{n}} ", `"n=3 "`},
		{"blank_inside_is_text", " {{ k }} ", `" {{ k }} "`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmpl := ParseTemplate(tt.in)
			raw, err := tmpl.Raw(s)
			if err != nil || raw.String() != tt.want {
				t.Errorf("Raw gives %s, %v, want %s", raw, err, tt.want)
			}
			if got := tmpl.Update(s); !value.Equal(got, raw) {
				t.Errorf("Update gives %s", got)
			}
		})
	}
	if _, err := ParseTemplate("{{x}}").Raw(s); err == nil {
		t.Error("Raw accepts a missing key")
	}
	if got := ParseTemplate("{{x}}").Update(s); got.String() != `""` {
		t.Errorf("Update of a missing key gives %s", got)
	}
}

func TestTemplateRoots(t *testing.T) {
	for in, want := range map[string]string{
		"{{b.c[0]}} {{a[1]}} {{b}} {{ no }} {{c}}": `["b" "a" "c"]`,
		"{{.b}} {{[0]}}": `[""]`,
		"text":           `[]`,
	} {
		if got := fmt.Sprintf("%q", ParseTemplate(in).Roots()); got != want {
			t.Errorf("roots of %q are %s, want %s", in, got, want)
		}
	}
}

// FuzzTemplate holds the parser against the one regular expression that defines
// placeholders, and checks that nothing but placeholders is ever replaced.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{{k}}", "a{{{k}}}b", "{{list[0]}}{{x}}", "{{ k }}", "{{a..b[1][", "}}{{", "{{k}}}}{{{{k}}"} {
		f.Add(seed)
	}
	placeholder := regexp.MustCompile(`\{\{([a-zA-Z0-9_.\[\]]+)\}\}`)
	s := state(f, sample)
	f.Fuzz(func(t *testing.T, in string) {
		tmpl := ParseTemplate(in)
		if got, want := tmpl.Lenient(State{}), placeholder.ReplaceAllLiteralString(in, ""); got != want {
			t.Errorf("Lenient(%q) without state gives %q, want %q", in, got, want)
		}
		if _, err := tmpl.Strict(s); err == nil && len(placeholder.FindAllString(in, -1)) == 0 && tmpl.Lenient(s) != in {
			t.Errorf("text without placeholders changed: %q", in)
		}
		tmpl.Update(s)
		tmpl.Roots()
	})
}
