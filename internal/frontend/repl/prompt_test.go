package repl

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// values are variables of a template.
type values map[string]string

func (v values) get(name string) string { return v[name] }

func TestExpand(t *testing.T) {
	const nested = "{?session {session}{?role /}}{role}{?session )}{!session >}"
	for _, tt := range []struct {
		name, template string
		values         values
		want           string
	}{
		{"plain", "> ", nil, "> "},
		{"variable", "{model}) ", values{"model": "m"}, "m) "},
		{"unknown_variable", "a{b}c", nil, "ac"},
		{"empty_block", "a{}c", nil, "ac"},
		{"words", "{two words} {model}", values{"model": "m"}, "{two words} m"},
		{"no_template", "{?model}{!model}", values{"model": "m"}, ""},
		{"true", "{?a yes}{!a no}", values{"a": "x"}, "yes"},
		{"zero", "{?a yes}{!a no}", values{"a": "0"}, "no"},
		{"false", "{?a yes}{!a no}", values{"a": "false"}, "no"},
		{"unset", "{?a yes}{!a no}", nil, "no"},
		{"blanks_count", "{?a  b }", values{"a": "1"}, " b "},
		{"empty_template", "{?a }", values{"a": "1"}, ""},
		{"not_within", "{?a {!b yay}>}", values{"a": "true"}, "yay>"},
		{"neither_within", "{?a {!b yay}>}", values{"a": "true", "b": "1"}, ">"},
		{"unclosed", "a{b {c} d", values{"c": "x"}, "ab {c} d"},
		{"unclosed_condition", "a{?b c", values{"b": "x"}, "a?b c"},
		{"closing_only", "a}b", nil, "a}b"},
		{"brace_in_name", "{?a{b c} d}", nil, ""},
		{"value_is_no_template", "{a}", values{"a": "{b}", "b": "x"}, "{b}"},
		{"beyond_ascii", "{?é ü}{é}", values{"é": "ö"}, "üö"},
		{"nothing_set", nested, nil, ">"},
		{"role_set", nested, values{"role": "coder"}, "coder>"},
		{"session_set", nested, values{"session": "temp"}, "temp)"},
		{"both_set", nested, values{"role": "coder", "session": "temp"}, "temp/coder)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := expand(tt.template, tt.values.get); got != tt.want {
				t.Errorf("%q renders as %q, want %q", tt.template, got, tt.want)
			}
		})
	}
}

// TestExpandDeep renders a template of many nested blocks in linear time.
func TestExpandDeep(t *testing.T) {
	const n = 50_000
	begin := time.Now()
	got := expand(strings.Repeat("{?a x", n)+strings.Repeat("}", n), values{"a": "1"}.get)
	if want := strings.Repeat("x", n); got != want {
		t.Errorf("it renders as %d bytes, want %d", len(got), len(want))
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func FuzzExpand(f *testing.F) {
	for _, template := range []string{"", "{", "}", "{}", "{?", "{?a {!b c}}", "{a b}", "{?a{b c} d}", "{{{}", "{é}{?é ü}"} {
		f.Add(template, "v")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		got := expand(template, func(string) string { return value })
		if utf8.ValidString(template) && utf8.ValidString(value) && !utf8.ValidString(got) {
			t.Errorf("%q renders as %q", template, got)
		}
		if !strings.Contains(template, "{") && got != template {
			t.Errorf("%q without blocks renders as %q", template, got)
		}
		if blocks := strings.Count(template, "{"); len(got) > len(template)+blocks*len(value) {
			t.Errorf("%q renders as %d bytes", template, len(got))
		}
	})
}
