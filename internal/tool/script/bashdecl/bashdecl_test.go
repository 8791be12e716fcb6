package bashdecl_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/tool/script/argc"
	"loki/internal/tool/script/bashdecl"
)

const tool = `#!/usr/bin/env bash
set -euo pipefail
# @describe Try <everything>
# that there is
# @env LLM_OUTPUT=/dev/stdout The output path
# @option --text! <STRING> Some text
#   in two lines
# @option --kind![foo|bar] One of two
# @option --kinds+[foo|bar]
# @option --size[` + "`_sizes`" + `]
# @option --count <INT>
# @option --ratio! <NUM>
# @option --counts* <INT>
# @option --list*,
# @option --level=3 <INT>
# @option --max_len The name is written with an underscore
# @option -o <OUT>
# @option +plus
# @option -D-*
# @flag --dry-run
# @flag -V --version
# @arg file
main() { printf '%s\0' "$@" "${argc__args[@]}" >>"$LLM_OUTPUT"; }
_sizes() { echo s; }
`

const wantTool = `{"type":"object","properties":{` +
	`"text":{"type":"string","description":"Some text\n  in two lines"},` +
	`"kind":{"type":"string","description":"One of two","enum":["foo","bar"]},` +
	`"kinds":{"type":"array","items":{"type":"string","enum":["foo","bar"]}},` +
	`"size":{"type":"string"},` +
	`"count":{"type":"integer"},` +
	`"ratio":{"type":"number"},` +
	`"counts":{"type":"array","items":{"type":"string"}},` +
	`"list":{"type":"array","items":{"type":"string"}},` +
	`"level":{"type":"integer"},` +
	`"max_len":{"type":"string","description":"The name is written with an underscore"},` +
	`"o":{"type":"string"},` +
	`"plus_plus":{"type":"string"},` +
	`"D":{"type":"array","items":{"type":"string"}},` +
	`"dry_run":{"type":"boolean"}},` +
	`"required":["text","kind","kinds","ratio"]}`

func TestTool(t *testing.T) {
	list, err := bashdecl.Parse([]byte(tool), "try-it")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	f := list[0]
	if f.Tool.Name != "try_it" || f.Subcommand != "" || f.Tool.Description != "Try <everything>\nthat there is" {
		t.Errorf("got %q %q %q", f.Tool.Name, f.Subcommand, f.Tool.Description)
	}
	if got := string(f.Tool.Parameters); got != wantTool {
		t.Errorf("got  %s\nwant %s", got, wantTool)
	}
}

const agent = `# @meta inherit-flag-options
# @option --where! Where

# @cmd List things
list-all() { :; }

# @cmd Show a thing
# @option --name!
show_one() { :; }

# @cmd
_private() { :; }

# @cmd Instructions
_instructions() { :; }

# @cmd Deeper
list-all::deep() { :; }
`

func TestAgent(t *testing.T) {
	list, err := bashdecl.Parse([]byte(agent), "tools")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		got = append(got, f.Tool.Name+" "+f.Subcommand+" "+string(f.Tool.Parameters))
	}
	where := `{"type":"object","properties":{"where":{"type":"string","description":"Where"}},"required":["where"]}`
	want := []string{
		"list_all list-all " + where,
		`show_one show_one {"type":"object","properties":{"where":{"type":"string","description":"Where"},"name":{"type":"string"}},"required":["where","name"]}`,
		"_instructions _instructions " + where,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNames(t *testing.T) {
	list, err := bashdecl.Parse([]byte("# @describe d\n# @meta binname other-name\nmain() { :; }\n"), "stem")
	if err != nil || list[0].Tool.Name != "other_name" {
		t.Error(list, err)
	}
	if got := string(list[0].Tool.Parameters); got != `{"type":"object","properties":{},"required":[]}` {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"tag", "# @nonsense", "line 1, column 4: unknown tag"},
		{"tool", "main() { :; }", "line 1, column 1: function stem has no description; write one after @describe"},
		{"command", "\n# @cmd\nf() { :; }", "line 2, column 1: function f has no description; write one after @cmd"},
		{"functions", "# @cmd a\n_instructions() { :; }\n# @cmd b\n-instructions() { :; }", "line 3, column 1: two functions are called _instructions"},
		{"properties", "# @describe d\n# @option --a-b\n# @option --a_b\nmain() { :; }\n", "line 3, column 1: --a-b and --a_b are both property a_b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := bashdecl.Parse([]byte(tt.script), "stem")
			if _, ok := errors.AsType[*argc.Error](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestBody checks that no command of a script would run before its arguments are read.
func TestBody(t *testing.T) {
	const tags, body = "# @describe Remove a directory\n# @option --dir!\n", "rm -rf ~/$argc_dir\n"
	const eval, code = "eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n", "# ARGC-BUILD {\n# ARGC-BUILD }\n"
	for _, tt := range []struct{ name, script, want string }{
		{"body", tags + body, "no function main"},
		{"body_above_code", tags + body + code, "no function main"},
		{"body_above_eval", tags + body + eval + "\n# that was it\n", "no function main"},
		{"other_function", tags + "run() { " + body + "}\n" + eval, "no function main"},
		{"body_below_eval", tags + eval + body, ""},
		{"body_below_code", tags + code + body, ""},
		{"eval_in_condition", tags + "if true; then\n  " + eval + "fi\n" + body, ""},
		{"main", tags + "main() { " + body + "}\n", ""},
		{"main_called", tags + "main() {\n" + body + "}\nmain \"$@\"\n", "line 6, column 1: main is called before the arguments are read"},
		{"main_called_above_code", tags + "main() {\n" + body + "}\nmain\n" + code, "line 6, column 1: main is called"},
		{"commands", "set -e\n# @cmd Remove a directory\n# @option --dir!\nremove() { " + body + "}\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := bashdecl.Parse([]byte(tt.script), "stem")
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	list, err := bashdecl.Parse([]byte(tool), "try-it")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, arguments string
		want            []string
	}{
		{"none", `{}`, nil},
		{"text", `{"text": "a=b $(c) \"d\"\ne"}`, []string{"--text=a=b $(c) \"d\"\ne"}},
		{"order", `{"ratio": 1.5, "count": -2}`, []string{"--ratio=1.5", "--count=-2"}},
		{"integer_as_float", `{"count": 5.0, "ratio": 5.0}`, []string{"--count=5", "--ratio=5.0"}},
		{"array", `{"list": ["a", 1, true, null, {"b": [2]}]}`, []string{"--list=a", "--list=1", "--list=true", "--list=null", `--list={"b":[2]}`}},
		{"empty_array", `{"list": []}`, nil},
		{"flag", `{"dry_run": true}`, []string{"--dry-run"}},
		{"no_flag", `{"dry_run": false}`, nil},
		{"option_that_gets_a_bool", `{"text": true, "kind": false}`, []string{"--text=true", "--kind=false"}},
		{"null", `{"text": null}`, []string{"--text=null"}},
		{"object", `{"text": {"a": [1, "b"]}}`, []string{`--text={"a":[1,"b"]}`}},
		{"underscore", `{"max_len": "1"}`, []string{"--max_len=1"}},
		{"short", `{"o": "f", "plus_plus": "p", "D": ["x=1"]}`, []string{"-o=f", "+plus=p", "-Dx=1"}},
		{"undeclared", `{"some_thing": 1, "yes": true}`, []string{"--some-thing=1", "--yes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := list[0].Args(json.RawMessage(tt.arguments))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for _, arguments := range []string{`[1]`, `"x"`, `{`, ``, `{"text": "a\u0000b"}`, `{"text=x": true}`} {
		if got, err := list[0].Args(json.RawMessage(arguments)); err == nil {
			t.Errorf("%s gives %q", arguments, got)
		}
	}
}

// TestArgsNumbers checks that nothing but numbers reaches options for numbers: arithmetic in
// bash runs the commands in any other text.
func TestArgsNumbers(t *testing.T) {
	list, err := bashdecl.Parse([]byte("# @describe x\n# @option --how-often <INT>\n# @option --ratio <NUM>\n# @option --each* <INT>\nmain() { :; }\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string][]string{
		`{"how_often": 3, "ratio": -1.5e3}`:    {"--how-often=3", "--ratio=-1500.0"},
		`{"how_often": "-3", "ratio": ".5"}`:   {"--how-often=-3", "--ratio=.5"},
		`{"how_often": 3.0, "ratio": 2}`:       {"--how-often=3", "--ratio=2"},
		`{"how_often": null, "ratio": null}`:   {},
		`{"each": [1, "2"], "how-often": "7"}`: {"--each=1", "--each=2", "--how-often=7"},
	} {
		if got, err := list[0].Args(json.RawMessage(arguments)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s gives %q, %v, want %q", arguments, got, err, want)
		}
	}
	for _, bad := range []string{`"a[$(touch PWN)]"`, `"x"`, `""`, `" 1"`, `"1\n2"`, `"1+1"`, `true`, `{"a":1}`, `"0x1f"`, `[["a[$(id)]"]]`, `["a[$(id)]"]`} {
		for _, key := range []string{"how_often", "how-often", "ratio", "each"} {
			if got, err := list[0].Args(json.RawMessage(`{"` + key + `": ` + bad + `}`)); err == nil || !strings.Contains(err.Error(), "must be of type") {
				t.Errorf("%s %s gives %q, %v", key, bad, got, err)
			}
		}
	}
	for _, bad := range []string{`{"how_often": 1.5}`, `{"how_often": "1.5"}`, `{"how-often=a[$(id)]": true}`, `{"how_often=a[$(id)]": true}`} {
		if got, err := list[0].Args(json.RawMessage(bad)); err == nil {
			t.Errorf("%s gives %q", bad, got)
		}
	}
}

func TestArgsOfSubcommand(t *testing.T) {
	list, err := bashdecl.Parse([]byte(agent), "tools")
	if err != nil {
		t.Fatal(err)
	}
	got, err := list[0].Args(json.RawMessage(`{"where": "here"}`))
	if want := []string{"list-all", "--where=here"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestCall makes a call of every declared property with the real script.
func TestCall(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	file := filepath.Join(t.TempDir(), "try-it.sh")
	if err := os.WriteFile(file, []byte(tool), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := argc.BuildFile(file, argc.Options{}); err != nil {
		t.Fatal(err)
	}
	list, err := bashdecl.Parse([]byte(tool), "try-it")
	if err != nil {
		t.Fatal(err)
	}
	words, err := list[0].Args(json.RawMessage(`{"text": "it's $(touch x)\n", "kind": "foo", "kinds": ["foo", "bar"], "ratio": 2.5, "max_len": "9", "o": "-", "plus_plus": "p", "D": ["d"], "dry_run": true, "list": ["a,b", "c"], "size": "s", "level": 4}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("bash", append([]string{file}, words...)...).CombinedOutput()
	if want := "try-it\x00" + strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

func FuzzArgs(f *testing.F) {
	list, err := bashdecl.Parse([]byte(tool), "try-it")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"text":"a"}`, `{"list":[[],{}]}`, `{"dry_run":1}`, `{"":null}`, `{"text":1e400}`, `{"count":1e300}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		words, err := list[0].Args(json.RawMessage(arguments))
		for _, word := range words {
			if err != nil || strings.ContainsRune(word, 0) {
				t.Fatalf("%q, %v", words, err)
			}
		}
	})
}
