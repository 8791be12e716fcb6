package command

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/llm/event"
)

// notes is an Output that keeps what it gets.
type notes []string

func (n *notes) Print(text string)    { *n = append(*n, text) }
func (n *notes) Markdown(text string) { *n = append(*n, text) }
func (n *notes) Colored(text string)  { n.Print(text) }
func (n *notes) Reveal(text string)   { *n = append(*n, "secret: "+text) }
func (n *notes) Note(text string)     { *n = append(*n, text) }
func (n *notes) Warn(text string)     { *n = append(*n, "warning: "+text) }

// newConsole returns a console of a user with files below the configuration directory, whose model echoes.
func newConsole(t testing.TB, files map[string]string) (*Console, *notes) {
	t.Helper()
	return newConsoleWith(t, "model: builtin:echo\n", files)
}

// newConsoleWith is newConsole with a configuration that begins with another text.
func newConsoleWith(t testing.TB, config string, files map[string]string) (*Console, *notes) {
	t.Helper()
	dir := t.TempDir()
	files = maps.Clone(files)
	if files == nil {
		files = make(map[string]string)
	}
	files["config.yaml"] = config + files["config.yaml"]
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := app.New(app.Options{Environ: []string{
		"HOME=" + dir, "LOKI_CONFIG_DIR=" + dir, "LOKI_STATE_DIR=" + filepath.Join(dir, "state"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	out := new(notes)
	scope := a.Events(event.Func(func(_ context.Context, ev event.Event) error {
		if f, ok := ev.Body.(event.Finished); ok {
			*out = append(*out, f.Output)
		}
		return nil
	}))
	conv := a.Conversations().Begin(conversation.Options{Interactive: true, Caller: conversation.Caller{Events: scope}})
	return New(Options{App: a, Conversation: conv, Out: out, Scope: scope, Interactive: true}), out
}

var macros = map[string]string{
	"macros/greet.yaml": "variables: [{name: who}, {name: how, rest: true, default: warmly}]\nsteps:\n  - |\n    greet {{who}}\n    {{how}}\n  - .exit\n  - bye\n",
	"macros/fails.yaml": "steps:\n  - hello\n  - .nothing\n  - never\n",
	"macros/calls.yaml": "steps:\n  - .macro greet Bob\n",
	"macros/loops.yaml": "steps:\n  - .macro loops\n",
	"macros/typos.yaml": "step: []\nsteps: [hello]\n",
}

func TestRunMacro(t *testing.T) {
	for _, tt := range []struct {
		name, line, want string
		code             fault.Code
		err              string
	}{
		{name: "arguments", line: ".macro greet Ann 'very kindly' indeed", want: ">> greet Ann\n.. very kindly indeed|greet Ann\nvery kindly indeed\n|>> .exit|>> bye|bye"},
		{name: "text", line: ".macro greet Ann -- so  well", want: ">> greet Ann\n.. so  well|greet Ann\nso  well\n|>> .exit|>> bye|bye"},
		{name: "no_value", line: ".macro greet", code: fault.Usage, err: `macro greet: variable "who" has no value`},
		{name: "failing_step", line: ".macro fails x", want: ">> hello|hello|>> .nothing", code: fault.Usage, err: "macro fails, step 2 of 3 (.*fails.yaml:3): .nothing is not a command"},
		{name: "nested", line: ".macro calls", want: ">> .macro greet Bob|>> greet Bob\n.. warmly|greet Bob\nwarmly\n|>> .exit|>> bye|bye"},
		{name: "warnings", line: ".macro typos", want: "warning: .*typos.yaml:1:1.*|>> hello|hello"},
		{name: "unknown", line: ".macro geret", code: fault.NotFound, err: `no macro is called "geret"`},
		{name: "without_a_name", line: ".macro", want: "Usage: .macro NAME [ARGUMENT...]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, out := newConsole(t, macros)
			err := c.Do(t.Context(), tt.line)
			if fault.CodeOf(err) != tt.code || tt.err != "" && !matches(err.Error(), tt.err) {
				t.Errorf("error %v with code %s, want %s with code %s", err, fault.CodeOf(err), tt.err, tt.code)
			}
			if got := strings.Join(*out, "|"); !matches(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMissingArgument: where nobody types, a command without its argument is an error, and it ends a macro.
func TestMissingArgument(t *testing.T) {
	c, out := newConsole(t, map[string]string{"macros/ask.yaml": "variables: [{name: r}]\nsteps: ['.role {{r}}', 'which role?']\n"})
	err := c.Do(t.Context(), ".macro ask ''")
	if fault.CodeOf(err) != fault.Usage || fault.HintOf(err) != "usage: .role NAME [TEXT]" || strings.Join(*out, "|") != ">> .role " {
		t.Errorf("%v (%s) after %q", err, fault.HintOf(err), *out)
	}
	c.Interactive = false
	for _, line := range []string{".role", ".set", ".set dry_run", ".vault add", ".edit", ".save x", ".file"} {
		*out = nil
		if err := c.Do(t.Context(), line); fault.CodeOf(err) != fault.Usage || !strings.HasPrefix(fault.HintOf(err), "usage: .") || len(*out) > 0 {
			t.Errorf("%s: %v (%s), prints %q", line, err, fault.HintOf(err), *out)
		}
	}
}

// matches reports whether text is as wanted, where ".*" stands for anything.
func matches(text, wanted string) bool {
	parts := strings.Split(wanted, ".*")
	for i, part := range parts {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

func TestMacroDepth(t *testing.T) {
	c, out := newConsole(t, macros)
	err := c.Do(t.Context(), ".macro loops")
	if fault.CodeOf(err) != fault.Usage || len(*out) != maxMacros {
		t.Errorf("%v after %d steps", err, len(*out))
	}
}

// TestMacroIsolation: a macro begins with the settings in force and its changes are gone behind it.
func TestMacroIsolation(t *testing.T) {
	c, _ := newConsole(t, macros)
	if err := c.conv.Set(t.Context(), "temperature", "0.5"); err != nil {
		t.Fatal(err)
	}
	inner := c.conv.Isolate()
	if got := inner.Setting("temperature"); got != "0.5" {
		t.Errorf("the macro begins with a temperature of %s", got)
	}
	if err := inner.Set(t.Context(), "temperature", "1"); err != nil {
		t.Fatal(err)
	}
	if got := c.conv.Setting("temperature"); got != "0.5" {
		t.Errorf("the temperature is %s behind the macro", got)
	}
}

func TestComplete(t *testing.T) {
	c, _ := newConsole(t, map[string]string{
		"macros/greet.yaml":       "variables: [{name: who}]\nsteps: ['{{who}}']\n",
		"roles/writer.md":         "x",
		"roles/wordsmith.md":      "x",
		"agents/.shared/x":        "",
		"agents/one/config.yaml":  "name: one\ndescription: the first\nvariables: [{name: who, description: Who it is, default: Ann}, {name: what, description: What}]\n",
		"functions/mcp.json":      `{"mcpServers": {"greeter": {"command": "x"}, "other": {"command": "x"}}}`,
		"config.yaml":             "mapping_mcp_servers: {both: 'greeter,other'}\n",
		"sessions/ignored.txt":    "",
		"functions/tools/tell.sh": "# @describe Tell\nmain() { :; }\n",
	})
	for _, tt := range []struct{ name, typed, first, has, not string }{
		{name: "macro", typed: ".macro ", has: "generate-commit-message|greet"},
		{name: "macro_typed", typed: ".macro gree", first: "greet"},
		{name: "command", typed: ".mac", first: ".macro"},
		{name: "fenced", typed: "::: .mac", first: ".macro"},
		{name: "nothing_behind_a_command", typed: ".macro greet a"},
		{name: "prompt", typed: "hello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := c.Complete(t.Context(), tt.typed)
			var names []string
			for _, candidate := range got.Candidates {
				names = append(names, tt.typed[:got.From]+candidate.Value)
			}
			if tt.first == "" && tt.has == "" && len(names) > 0 {
				t.Errorf("got %q, want nothing", names)
			}
			if tt.first != "" && (len(names) == 0 || !strings.HasSuffix(names[0], tt.first)) {
				t.Errorf("got %q, want %s first", names, tt.first)
			}
			for _, want := range strings.Split(tt.has, "|") {
				if want != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, want) }) {
					t.Errorf("got %q, want %s too", names, want)
				}
			}
		})
	}
}
