package completion

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// level is a flag with a few values.
type level string

func (l *level) Set(s string) error { *l = level(s); return nil }
func (l *level) String() string     { return string(*l) }
func (l *level) Type() string       { return "LEVEL" }
func (l *level) Values() []string   { return []string{"low", "medium", "high"} }

// name is a flag whose value is called by its type.
type name string

func (n *name) Set(string) error { return nil }
func (n *name) String() string   { return "" }
func (n *name) Type() string     { return string(*n) }

func sample() []Flag {
	fs := pflag.NewFlagSet("loki", pflag.ContinueOnError)
	fs.SortFlags = false
	of := func(arg string) *name { n := name(arg); return &n }
	fs.VarP(of("MODEL"), "model", "m", "model to use: it's CLIENT:MODEL")
	fs.VarP(of("AGENT"), "agent", "a", "agent [of yours]")
	fs.VarP(of("SESSION"), "session", "s", "session")
	fs.Lookup("session").NoOptDefVal = "temp"
	fs.Var(of("NAME VALUE"), "agent-variable", "variable")
	fs.StringArrayP("file", "f", nil, "attach `PATH`")
	fs.Var(new(level), "effort", "how much")
	fs.BoolP("execute", "e", false, "write a command")
	fs.CountP("verbose", "v", "``tell more")
	fs.Bool("secret", false, "not shown")
	fs.Lookup("secret").Hidden = true
	return Flags(fs, "agent-variable")
}

func TestFlags(t *testing.T) {
	want := []Flag{
		{Name: "model", Short: "m", Usage: "model to use: it's CLIENT:MODEL", Arg: "MODEL", Words: 1},
		{Name: "agent", Short: "a", Usage: "agent [of yours]", Arg: "AGENT", Words: 1},
		{Name: "session", Short: "s", Usage: "session", Arg: "SESSION", Words: 1, Optional: true},
		{Name: "agent-variable", Usage: "variable", Arg: "NAME VALUE", Words: 2},
		{Name: "file", Short: "f", Usage: "attach PATH", Arg: "PATH", Words: 1},
		{Name: "effort", Usage: "how much", Arg: "LEVEL", Words: 1, Values: []string{"low", "medium", "high"}},
		{Name: "execute", Short: "e", Usage: "write a command"},
		{Name: "verbose", Short: "v", Usage: "tell more"},
		{Name: "secret", Usage: "not shown", Hidden: true},
	}
	if diff := cmp.Diff(want, sample()); diff != "" {
		t.Error(diff)
	}
}

func sources() map[string]Source {
	return map[string]Source{
		"MODEL": func(string, map[string]string) []Candidate {
			return []Candidate{{Value: "openai:gpt", Description: "good"}, {Value: "Open:x"}, {Value: "my:a/b"}}
		},
		"SESSION": func(_ string, given map[string]string) []Candidate {
			return []Candidate{{Value: "trip" + given["agent"]}}
		},
		"AGENT": func(string, map[string]string) []Candidate { return nil },
	}
}

func TestComplete(t *testing.T) {
	all := "--model --agent --session --agent-variable --file --effort --execute --verbose"
	for _, tt := range []struct{ name, words, want string }{
		{"nothing_typed", "", all},
		{"hyphen", "-", all + " -m -a -s -f -e -v"},
		{"long", "--age", "--agent --agent-variable"},
		{"short", "-m", "-m"},
		{"unknown", "--zzz", ""},
		{"case_counts", "--model o", "openai:gpt"},
		{"value", "-m |", "openai:gpt Open:x my:a/b"},
		{"value_in_the_word", "--model=my", "--model=my:a/b"},
		{"value_at_the_letter", "-mmy", "-mmy:a/b"},
		{"value_behind_switches", "-em my", "my:a/b"},
		{"fixed_values", "--effort m", "medium"},
		{"optional_value", "-s t", "trip"},
		{"optional_value_left_out", "-s --eff", "--effort"},
		{"session_of_the_agent", "--agent X -s t", "tripX"},
		{"session_of_the_agent_joined", "--agent=X --session t", "tripX"},
		{"session_of_the_agent_short", "-aX -es t", "tripX"},
		{"after_a_value", "-m my:a/b --eff", "--effort"},
		{"first_of_two_values", "--agent-variable -", ""},
		{"second_of_two_values", "--agent-variable n --", ""},
		{"after_two_values", "--agent-variable n v --eff", "--effort"},
		{"value_like_a_flag", "-m --eff", ""},
		{"text", "hello --eff", ""},
		{"text_begins", "hel", ""},
		{"text_after_hyphens", "-- --eff", ""},
		{"text_after_optional", "-s name word --eff", ""},
		{"switch_with_a_value", "--execute=tr", ""},
		{"unknown_flag_in_front", "--zzz --eff", "--effort"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			words := strings.Split(tt.words, " ")
			if words[len(words)-1] == "|" {
				words[len(words)-1] = ""
			}
			var got []string
			for _, c := range Complete(sample(), words, sources()) {
				got = append(got, c.Value)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got  %q\nwant %q", strings.Join(got, " "), tt.want)
			}
		})
	}
	if got := Complete(sample(), nil, nil); got != nil {
		t.Errorf("without words: %v", got)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	for _, file := range []string{"notes.md", "note two.md", ".hidden", "src/main.go", ".git/config"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		prefix   string
		onlyDirs bool
		want     []string
	}{
		{"", false, []string{"note two.md", "notes.md", "src/"}},
		{"note", false, []string{"note two.md", "notes.md"}},
		{".", false, []string{".git/", ".hidden"}},
		{"src/", false, []string{"src/main.go"}},
		{"./s", false, []string{"./src/"}},
		{"./", true, []string{"./src/"}},
		{"~/no", false, []string{"~/note two.md", "~/notes.md"}},
		{"nowhere/x", false, nil},
	} {
		var got []string
		for _, c := range Files(tt.prefix, tt.onlyDirs) {
			got = append(got, c.Value)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.prefix, got, tt.want)
		}
	}
}

func TestPrint(t *testing.T) {
	candidates := []Candidate{
		{Value: "a b", Description: "two\nlines"}, {Value: "my file's", File: true}, {Value: "no\tway"}, {Value: "dir/", File: true},
	}
	for _, tt := range []struct {
		shell         Shell
		current, want string
	}{
		{Fish, "", "a b\ttwo lines\nmy file's\t\ndir/\t\n"},
		{Bash, "", "a\\ b\tword\nmy file's\tfile\ndir/\tfile\n"},
		{Bash, `"a`, "a b\tword\nmy file's\tfile\ndir/\tfile\n"},
	} {
		var b bytes.Buffer
		if err := Print(&b, tt.shell, tt.current, candidates); err != nil || b.String() != tt.want {
			t.Errorf("%s %q: %q, %v, want %q", tt.shell, tt.current, b.String(), err, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	for word, want := range map[string]string{
		`plain`: "plain", `'it''s'`: "its", `"a b`: "a b", `a\ b`: "a b", `"a\"b\c"`: `a"b\c`, `'a\b'`: `a\b`, `end\`: `end\`, "": "",
	} {
		if got := Words(Bash, []string{word}); got[0] != want {
			t.Errorf("%s: %q, want %q", word, got[0], want)
		}
	}
	if got := Words(PowerShell, []string{"-m", "."}); !slices.Equal(got, []string{"-m", ""}) {
		t.Errorf("%q", got)
	}
	if got := Words(Fish, []string{`a\ b`}); got[0] != `a\ b` {
		t.Errorf("%q", got)
	}
}

func TestParseShell(t *testing.T) {
	for _, spelling := range append(Shells(), "power-shell") {
		if s, err := ParseShell(spelling); err != nil || s == "power-shell" {
			t.Errorf("%s: %s, %v", spelling, s, err)
		}
	}
	if _, err := ParseShell("tcsh"); err == nil {
		t.Error("tcsh can complete?")
	}
}

// TestScripts compares the static scripts with what they were when people looked at them.
func TestScripts(t *testing.T) {
	for _, s := range Shells() {
		t.Run(s, func(t *testing.T) {
			golden := filepath.Join("testdata", s+".golden")
			got := Static(Shell(s), sample())
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			if script, err := Registration(Shell(s)); (err == nil) == (s == "nushell") || err == nil && !strings.Contains(script, "loki --") {
				t.Errorf("registration: %v, %q", err, script)
			}
		})
	}
}

func FuzzComplete(f *testing.F) {
	for _, seed := range []string{"-m\x00my", "--agent-variable\x00a\x00b\x00-", "-s\x00", "-esx", "--=\x00-=", "x\x00--"} {
		f.Add(seed)
	}
	flags := sample()
	f.Fuzz(func(t *testing.T, line string) {
		words := Words(Bash, strings.Split(line, "\x00"))
		for _, c := range Complete(flags, words, sources()) {
			if !strings.HasPrefix(c.Value, words[len(words)-1]) {
				t.Errorf("%q does not begin with %q", c.Value, words[len(words)-1])
			}
		}
	})
}
