package role_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/assets"
	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	type m = [2]string
	for _, tt := range []struct {
		name, text string
		want       []m
	}{
		{"no_prompt", "", []m{{"user", "hi"}}},
		{"embedded", "turn __INPUT__ into __INPUT__!", []m{{"user", "turn hi into hi!"}}},
		{"system", "be brief", []m{{"system", "be brief"}, {"user", "hi"}}},
		{
			"examples", "\nBe X\n### INPUT:\nIn 1\n### OUTPUT:\nOut 1\n### INPUT:\nIn 2\n### OUTPUT:\nOut 2\n",
			[]m{{"system", "Be X"}, {"user", "In 1"}, {"assistant", "Out 1"}, {"user", "In 2"}, {"assistant", "Out 2"}, {"user", "hi"}},
		},
		{"examples_only", "### INPUT:\nIn\n### OUTPUT:\nOut", []m{{"user", "In"}, {"assistant", "Out"}, {"user", "hi"}}},
		{"half_an_example", "Be X\n### INPUT:\nIn", []m{{"system", "Be X\n### INPUT:\nIn"}, {"user", "hi"}}},
		{"template_alone", "---\nprompt: make __INPUT__ short\n---\n", []m{{"user", "make hi short"}}},
		{"template_and_instructions", "---\nprompt: make __INPUT__ short\n---\nbe kind", []m{{"system", "be kind"}, {"user", "make hi short"}}},
		{
			"examples_and_instructions", "---\nprompt: |-\n  code only\n  ### INPUT:\n  a\n  ### OUTPUT:\n  b\n---\nbe kind",
			[]m{{"system", "be kind\n\ncode only"}, {"user", "a"}, {"assistant", "b"}, {"user", "hi"}},
		},
		{"later_rules_are_text", "a\n---\nb: c\n---\nd", []m{{"system", "a\n---\nb: c\n---\nd"}, {"user", "hi"}}},
		{"table_is_text", "| a |\n|---|\n| b |", []m{{"system", "| a |\n|---|\n| b |"}, {"user", "hi"}}},
		{"unclosed_header_is_text", "---\nmodel: x", []m{{"system", "---\nmodel: x"}, {"user", "hi"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, warnings, err := role.Parse("r", "r.md", tt.text)
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			var got []m
			for _, msg := range r.Messages(chat.Text(chat.User, "hi")) {
				got = append(got, m{string(msg.Role), msg.Text()})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImagesStayWithAFilledTemplate(t *testing.T) {
	t.Parallel()
	input := chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "this"}, {Type: chat.ImagePart, URL: "data:x"}}}
	got := role.Role{Prompt: "describe __INPUT__"}.Messages(input)
	want := []chat.Message{{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "describe this"}, {Type: chat.ImagePart, URL: "data:x"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const full = `---
model: openai:gpt-5
temperature: 0.2
top_p: 1
reasoning_effort: low
enabled_tools: fs_cat,fs_ls
enabled_mcp_servers: all
sandbox: write
auto_continue: true
max_auto_continues: 3
inject_todo_instructions: false
continuation_prompt: "go on: now"
---

Be kind.
`

func TestSettingsSurviveExport(t *testing.T) {
	t.Parallel()
	r, warnings, err := role.Parse("r", "", full)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	s := r.Settings
	if s.Model != "openai:gpt-5" || *s.Temperature != 0.2 || *s.TopP != 1 || s.Effort != "low" || *s.EnabledTools != "fs_cat,fs_ls" ||
		*s.EnabledMCPServers != "all" || s.Sandbox != "write" || !*s.AutoContinue || *s.MaxAutoContinues != 3 || *s.InjectTodoInstructions || *s.ContinuationPrompt != "go on: now" {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(full, r.Export()); diff != "" {
		t.Error(diff)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"be kind\n", "---\nenabled_tools: all\n---\n", "---\nenabled_tools: \"null\"\n---\n",
		"---\nmodel: \"a: b #c\"\nprompt: \"x\\n__INPUT__\"\n---\n\ny\n",
	} {
		r, _, err := role.Parse("r", "", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Export(); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestListsOfNames(t *testing.T) {
	t.Parallel()
	r, _, err := role.Parse("r", "", "---\nenabled_tools: [fs_cat, fs_ls]\n---\n")
	if err != nil || *r.Settings.EnabledTools != "fs_cat,fs_ls" {
		t.Error(r.Settings.EnabledTools, err)
	}
}

// TestNoMetadata reads roles whose beginning only looks like metadata.
func TestNoMetadata(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"text": "You are terse.", "list": "- a", "lines": "You are terse.\nAnswer: in French", "number": "7"} {
		r, warnings, err := role.Parse("r", "r.md", "---\n"+header+"\n---\nTranslate.\n")
		if err != nil || len(warnings) > 0 || r.Prompt != "Translate." {
			t.Errorf("%s: prompt %q, %v, %v", name, r.Prompt, warnings, err)
		}
	}
}

// TestKeysOfOthers reads a role of another program: an old name means the present one, and keys without a
// meaning are one warning.
func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	r, warnings, err := role.Parse("r", "r.md", "---\nuse_tools: fs\nmemory: true\nskills_enabled: true\nenabled_skills: [a]\n---\nx")
	var got []string
	for _, w := range warnings {
		got = append(got, w.Text())
	}
	want := `r.md:4:1: keys of another program, which do nothing here: enabled_skills, skills_enabled`
	if err != nil || strings.Join(got, "\n") != want || *r.Settings.EnabledTools != "fs" || r.Settings.Memory != "propose" {
		t.Errorf("got %s, %v\nwant %s", strings.Join(got, "\n"), err, want)
	}
}

func TestProblemsSayWhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"type", "\n---\nmodel: m\ntemperature: hot\n---\nx", "r.md:4:14"},
		{"effort", "---\nreasoning_effort: much\n---\nx", "none, minimal, low, medium, high"},
		{"sandbox", "---\nsandbox: none\n---\nx", "r.md:2:10: sandbox: want one of read, write, network, full"},
		{"no_yaml", "---\na: [\n---\nx", "r.md:2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := role.Parse("r", "r.md", tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v does not say %q", err, tt.want)
			}
		})
	}
	if r, warnings, err := role.Parse("r", "r.md", "---\ntop_p: 7\n---\nx"); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "want a number from 0 to 1, not 7") || *r.Settings.TopP != 7 {
		t.Error(err, warnings)
	}
	_, warnings, err := role.Parse("r", "r.md", "---\ntemprature: 1\nname: n\n---\nx")
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Error()+warnings[0].Hint, "temperature") {
		t.Error(err, warnings)
	}
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"own.md": "mine on {{__os__}} {{other}}", "code.md": "my code", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := role.Library{
		Dir: dir, Bundled: fstest.MapFS{"code.md": {Data: []byte("bundled")}, "shell.md": {Data: []byte("sh")}},
		Variables: role.Machine{GOOS: "darwin"}.Lookup,
	}
	names, err := l.Names()
	if want := []string{"code", "own", "shell"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	for name, want := range map[string]string{"own": "mine on macos {{other}}", "code": "my code", "shell": "sh"} {
		if r, _, err := l.Load(name); err != nil || r.Prompt != want || r.Name != name || (r.File == "") != (name == "shell") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for _, name := range []string{"nobody", "../code", "", "/etc/passwd"} {
		if _, _, err := l.Load(name); fault.CodeOf(err) != fault.NotFound || !strings.Contains(fault.HintOf(err), "code, own, shell") {
			t.Errorf("%q: %v", name, err)
		}
	}
	missing := role.Library{Dir: filepath.Join(dir, "nowhere"), Bundled: fstest.MapFS{}}
	if names, err := missing.Names(); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
	if r, _, err := l.FromText("---\ntemperature: 1\n---\nyou are on {{__os__}}"); err != nil || r.Prompt != "you are on macos" || r.Name != "temp" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	env := map[string]string{"LANG": "de_DE.UTF-8@euro"}
	m := role.Machine{
		GOOS: "windows", GOARCH: "amd64", Shell: "pwsh", Getenv: func(n string) string { return env[n] },
		Now: func() time.Time { return time.Date(2026, 11, 7, 10, 15, 44, 0, time.FixedZone("", 3600)) },
		Dir: func() (string, error) { return `C:\x`, nil },
	}
	for name, want := range map[string]string{
		"__os__": "windows", "__os_family__": "windows", "__os_distro__": "windows", "__arch__": "x86_64", "__shell__": "pwsh", "__locale__": "de-DE",
		"__now__": "2026-11-07T10:15:44+01:00", "__cwd__": `C:\x`,
	} {
		if got, ok := m.Lookup(name); !ok || got != want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	m.Dir = func() (string, error) { return "", errors.New("gone") }
	for _, name := range []string{"__cwd__", "__tools__", "x"} {
		if got, ok := m.Lookup(name); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
	env["LC_ALL"] = "C"
	if got, _ := m.Lookup("__locale__"); got != "" {
		t.Errorf("locale %q", got)
	}
}

// The roles of the program can be used as they are.
func TestBundledRoles(t *testing.T) {
	t.Parallel()
	l := role.Library{Dir: t.TempDir(), Bundled: assets.Roles, Variables: role.ThisMachine("bash", os.Getenv).Lookup}
	names, err := l.Names()
	want := []string{
		"atlassian", "code", "create-prompt", "create-title", "explain-shell", "functions", "github", "mcp-servers", "repo-analyzer", "shell", "slack",
	}
	if err != nil || !slices.Equal(names, want) {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		r, warnings, err := l.Load(name)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, err, warnings)
		}
		if strings.Contains(r.Prompt, "{{") {
			t.Errorf("%s: unknown variable in %q", name, r.Prompt)
		}
		if r.Prompt == "" && r.Settings == (chat.Settings{}) {
			t.Errorf("%s is empty", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{full, "---\n---\n", "---\na: [\n---", "### INPUT:### OUTPUT:", "\uFEFF---\nprompt: x\n----\r\ny"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := role.Parse("r", "r.md", text)
		if err != nil {
			return
		}
		if len(r.Messages(chat.Text(chat.User, "hi"))) == 0 {
			t.Error("no messages")
		}
		again, _, err := role.Parse("r", "r.md", r.Export())
		if err != nil {
			t.Fatalf("the export %q cannot be read: %v", r.Export(), err)
		}
		if again.Prompt != r.Prompt || again.Template != r.Template {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}
