package macro_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"loki/assets"
	"loki/internal/agent/role/macro"
	"loki/internal/base/fault"
)

const build = `variables:
  - name: target
  - name: flags
    rest: true
    default: ""
steps:
  - .file Makefile -- build {{target}}
  - |-
    with {{ flags }}
    and {{unknown}}
`

func parse(t *testing.T, text string) macro.Macro {
	t.Helper()
	m, warnings, err := macro.Parse("build", "", []byte(text))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	return m
}

func TestFill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"default", []string{"all"}, ".file Makefile -- build all|with \nand {{unknown}}"},
		{"rest", []string{"all", "-k", "-j 4"}, ".file Makefile -- build all|with -k -j 4\nand {{unknown}}"},
		{"values_are_not_searched", []string{"{{flags}}", "{{target}}"}, ".file Makefile -- build {{flags}}|with {{target}}\nand {{unknown}}"},
		{"empty_argument", []string{""}, ".file Makefile -- build |with \nand {{unknown}}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			steps, err := parse(t, build).Fill(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if got := steps[0].Text + "|" + steps[1].Text; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if steps[0].Line != 7 || steps[1].Line != 8 {
				t.Errorf("lines %d and %d, want 7 and 8", steps[0].Line, steps[1].Line)
			}
		})
	}
}

func TestFillWithoutValue(t *testing.T) {
	t.Parallel()
	_, err := parse(t, build).Fill(nil)
	if fault.CodeOf(err) != fault.Usage || err.Error() != `macro build: variable "target" has no value` || fault.HintOf(err) != "usage: build <target> [flags]..." {
		t.Errorf("got %v with the hint %q", err, fault.HintOf(err))
	}
}

func TestFillIgnoresSurplus(t *testing.T) {
	t.Parallel()
	steps, err := parse(t, "variables: [{name: a}]\nsteps: ['{{a}}']").Fill([]string{"1", "2"})
	if err != nil || steps[0].Text != "1" {
		t.Errorf("got %v and %v", steps, err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, variables, want string }{
		{"none", "[]", "build"},
		{"all", "[{name: a}, {name: b, default: 1}, {name: c, rest: true}]", "build <a> [b] <c>..."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := parse(t, "variables: "+tt.variables+"\nsteps: [x]").Usage(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestFindings: what is wrong with a file is reported with its place.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, warning, err string }{
		{name: "no_steps", text: "variables: []", err: `m.yaml:1:1: required field "steps" is missing`},
		{name: "empty_steps", text: "steps: []", err: "m.yaml:1:8: steps: a macro has at least one step"},
		{name: "not_a_list", text: "steps: .help", err: "m.yaml:1:8: steps: expected a list"},
		{name: "not_a_mapping", text: "- .help", err: "m.yaml:1:1: expected a mapping"},
		{name: "number", text: "steps:\n  - 42", err: "m.yaml:2:5: steps[0]: expected a string, found the number 42"},
		{name: "unquoted", text: "steps:\n  - {{a}}", err: "m.yaml:2:"},
		{name: "colon", text: "steps:\n  - say: hello", err: "m.yaml:2:5: steps[0]: expected a string, found a mapping"},
		{name: "unknown_key", text: "step: [a]\nsteps: [a]", warning: `m.yaml:1:1: unknown key "step" is ignored; did you mean "steps"?`},
		{name: "unknown_field", text: "variables: [{name: a, rset: true}]\nsteps: ['{{a}}']", warning: `variables[0]: unknown key "rset" is ignored; did you mean "rest"?`},
		{name: "nameless", text: "variables: [{default: a}]\nsteps: [a]", err: `variables[0]: required field "name" is missing`},
		{name: "bad_name", text: "variables: [{name: 'a}'}]\nsteps: [a]", err: `"a}" cannot be the name of a variable`},
		{name: "twice", text: "variables: [{name: a}, {name: a}]\nsteps: [a]", err: `variables[1].name: another variable is called "a"`},
		{name: "rest_first", text: "variables: [{name: a, rest: true}, {name: b}]\nsteps: ['{{a}}{{b}}']", warning: "rest is ignored, because a is not the last variable"},
		{name: "rest_text", text: "variables: [{name: a, rest: maybe}]\nsteps: [a]", err: "variables[0].rest: expected true or false"},
		{name: "misspelled", text: "variables: [{name: target}]\nsteps:\n  - .file '{{traget}}'", warning: "m.yaml:3:5: steps[0]: {{traget}} stays as it is, because no variable has this name; did you mean {{target}}?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := macro.Parse("m", "m.yaml", []byte(tt.text))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if tt.warning == "" {
				return
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0].Text(), tt.warning) {
				t.Errorf("warnings %v, want %q", warnings, tt.warning)
			}
		})
	}
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"mine.yaml": "steps: [mine]", "both.yaml": "steps: [mine]", "bad.yaml": "steps: {", "other.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := macro.Library{Dir: dir, Bundled: fstest.MapFS{"both.yaml": {Data: []byte("steps: [bundled]")}, "ours.yaml": {Data: []byte("steps: [bundled]")}}}
	names, err := l.Names()
	if want := []string{"bad", "both", "mine", "ours"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %v, want %v (%v)", names, want, err)
	}
	for name, want := range map[string]string{"mine": "mine", "both": "mine", "ours": "bundled"} {
		if m, _, err := l.Load(name); err != nil || m.Steps[0].Text != want || (m.File == "") != (want == "bundled") {
			t.Errorf("%s: got %+v and %v, want the step %s", name, m, err, want)
		}
	}
	for name, code := range map[string]fault.Code{"bad": fault.Config, "mien": fault.NotFound, "../mine": fault.NotFound, "": fault.NotFound, "/etc/mine": fault.NotFound} {
		if _, _, err := l.Load(name); fault.CodeOf(err) != code {
			t.Errorf("%q: got %v, want an error with code %s", name, err, code)
		}
	}
	if _, _, err := l.Load("mien"); fault.HintOf(err) != "did you mean mine?" {
		t.Errorf("hint %q", fault.HintOf(err))
	}
}

// TestBundled: the macros that are part of the program have no findings.
func TestBundled(t *testing.T) {
	t.Parallel()
	l := macro.Library{Dir: t.TempDir(), Bundled: assets.Macros}
	names, err := l.Names()
	if err != nil || !slices.Contains(names, "generate-commit-message") {
		t.Fatalf("names %v, error %v", names, err)
	}
	for _, name := range names {
		if _, warnings, err := l.Load(name); err != nil || len(warnings) > 0 {
			t.Errorf("%s: error %v, warnings %v", name, err, warnings)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(build), "a b")
	f.Add([]byte("variables: [{name: x, rest: true, default: 1}]\nsteps: ['{{x}}', '{{ y }}']"), "")
	f.Add([]byte("steps: {{"), "")
	f.Fuzz(func(t *testing.T, text []byte, args string) {
		m, _, err := macro.Parse("m", "", text)
		if err != nil {
			return
		}
		if len(m.Steps) == 0 {
			t.Fatal("a macro without steps")
		}
		steps, err := m.Fill(strings.Fields(args))
		if err == nil && len(steps) != len(m.Steps) {
			t.Fatalf("%d steps, want %d", len(steps), len(m.Steps))
		}
		if !strings.HasPrefix(m.Usage(), "m") {
			t.Fatalf("usage %q", m.Usage())
		}
	})
}
