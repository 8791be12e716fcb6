package script_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"loki/assets"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool"
	"loki/internal/tool/script"
)

const (
	hello = "# @describe Say hello.\n# @option --name!\nmain() { echo \"hello $argc_name\" >>\"$LLM_OUTPUT\"; }\neval \"$(loki --argc-eval \"$0\" \"$@\")\"\n"
	helPy = "def run(name: str):\n  '''Say hello.'''\n  return 'hello ' + name\n"
	helTs = "/** Say hello. */\nexport function run(name: string) { return `hello ${name}` }\n"
)

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name, file, src string
		agent           bool
		want            string
	}{
		{name: "bash", file: "say-Hello.sh", src: hello, want: "say_Hello"},
		{name: "python", file: "Say-Hello.py", src: helPy, want: "say_hello"},
		{name: "typescript", file: "say.hello.TS", src: helTs, want: "say_hello"},
		{name: "bash_commands", file: "x.sh", src: "# @cmd One.\none-two() { :; }\n# @cmd Hidden.\n_h() { :; }\n", want: "one_two"},
		{name: "agent_python", file: "tools.py", agent: true, src: "def getUser():\n '''A.'''\ndef _private():\n '''B.'''\nasync def _instructions():\n '''C.'''\n", want: "getuser"},
		{name: "agent_typescript", file: "tools.ts", agent: true, src: "/** A. */ export function getIt() {}\nfunction no() {}\n/** B. */ export async function b2() {}", want: "getit b2"},
		{name: "helpers_of_a_tool", file: "x.py", src: "def help(*a): pass\n" + helPy, want: "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			if tt.agent {
				h.o.Agent = &script.Agent{Name: "a"}
			}
			file := h.put(t, tt.file, tt.src)
			for _, state := range []string{"parsed", "cached"} {
				tools, err := script.Load(file, h.o)
				if err != nil {
					t.Fatal(err)
				}
				if got := names(tools); got != tt.want {
					t.Errorf("%s: got %s, want %s", state, got, tt.want)
				}
				got, err := script.Names(file, h.o)
				if err != nil || strings.Join(got, " ") != tt.want {
					t.Errorf("%s: Names: got %s, %v", state, got, err)
				}
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != tt.src {
				t.Errorf("loading changed the script: %v", err)
			}
		})
	}
}

// TestInstructions: the function that writes an agent's instructions is not a tool of models.
func TestInstructions(t *testing.T) {
	for _, tt := range []struct{ name, file, src, want string }{
		{"none", "tools.sh", "# @cmd One.\none() { :; }\n", ""},
		{"bash", "tools.sh", "# @cmd One.\none() { :; }\n# @cmd Two.\n_instructions() { :; }\n", "_instructions"},
		{"python", "tools.py", "def one():\n '1'\ndef _instructions():\n '2'\n", "instructions"},
		{"alone", "tools.ts", "/** One. */ export function one() {}\n/** Two. */ export function _instructions() {}\n", "instructions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			h.o.Agent = &script.Agent{Name: "a"}
			file := h.put(t, tt.file, tt.src)
			for _, state := range []string{"parsed", "cached"} {
				found, err := script.Instructions(file, h.o)
				if err != nil || found == nil && tt.want != "" || found != nil && found.Declaration().Name != tt.want {
					t.Errorf("%s: found %v, %v, want %q", state, found, err, tt.want)
				}
				tools, err := script.Load(file, h.o)
				if got := names(tools); err != nil || got != "one" {
					t.Errorf("%s: tools %s, %v, want one", state, got, err)
				}
			}
		})
	}
}

func TestLoadMistakes(t *testing.T) {
	for _, tt := range []struct {
		name, file, src string
		agent           bool
		want            string
	}{
		{name: "extension", file: "x.js", want: "scripts end in .sh, .py or .ts"},
		{name: "syntax", file: "x.py", src: "def run(:\n pass", want: "x.py: line 1: "},
		{name: "no_description", file: "x.py", src: "def run(): pass", want: "x.py: line 1: function run has no description"},
		{name: "no_run", file: "x.py", src: "def other(): pass", want: "the script has no function run: write def run(...)"},
		{name: "arrow", file: "x.ts", src: "/** A. */\nexport const run = () => 1", want: "arrow functions"},
		{name: "agent_nothing", file: "x.ts", src: "", agent: true, want: "the script has no public function"},
		{name: "agent_same_name", file: "x.py", agent: true, src: "def a_b(): 'A.'\ndef A_b(): 'B.'", want: "line 2: two functions are called a_b"},
		{name: "bash_no_description", file: "x.sh", src: "main() { :; }", want: "x.sh: line 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			if tt.agent {
				h.o.Agent = &script.Agent{Name: "a"}
			}
			_, err := script.Load(h.put(t, tt.file, tt.src), h.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Config {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "x.py")
	if _, err := script.Load(missing, script.Options{}); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing: %v", err)
	}
	if _, err := script.Names(missing, script.Options{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("names of a missing one: %v", err)
	}
}

// TestCache damages what is kept: it has to be found again in the source.
func TestCache(t *testing.T) {
	h := newHome(t)
	file := h.put(t, "x.py", helPy)
	load := func() string {
		t.Helper()
		tools, err := script.Load(file, h.o)
		if err != nil {
			t.Fatal(err)
		}
		return tools[0].Declaration().Description
	}
	load()
	kept, err := filepath.Glob(filepath.Join(h.o.Cache, "[0-9a-f]*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	doc, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(doc), "Say hello.", "From the cache.", 1)
	if err := os.WriteFile(kept[0], []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := load(); got != "From the cache." {
		t.Errorf("the cache is not used: %s", got)
	}
	if err := os.WriteFile(kept[0], []byte(forged[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := load(); got != "Say hello." {
		t.Errorf("a damaged entry: %s", got)
	}
	h.put(t, "x.py", strings.Replace(helPy, "Say", "Shout", 1))
	if got := load(); got != "Shout hello." {
		t.Errorf("a changed script: %s", got)
	}
}

func TestHints(t *testing.T) {
	const meta = "# @meta read-only\n  # @meta timeout 90s\n# @meta timeout soon\n"
	for _, tt := range []struct {
		name, file, src string
		want            tool.Hints
	}{
		{"none", "x.py", helPy, tool.Hints{Timeout: time.Minute, MaxOutput: 99}},
		{"all", "x.py", meta + "# @meta destructive\n#@meta interactive\n" + helPy, tool.Hints{ReadOnly: true, Destructive: true, Interactive: true, Timeout: 90 * time.Second, MaxOutput: 99}},
		{"typescript", "x.ts", "// @meta read-only\n" + helTs, tool.Hints{ReadOnly: true, Timeout: time.Minute, MaxOutput: 99}},
		{"prompts", "x.sh", "source \"$LLM_PROMPT_UTILS_FILE\"\n" + hello, tool.Hints{Interactive: true, Timeout: time.Minute, MaxOutput: 99}},
		{"sandbox", "x.sh", "# @sandbox network example.com\n" + hello, tool.Hints{Sandbox: sandbox.Declaration{Level: sandbox.Network, Hosts: []string{"example.com"}}, Timeout: time.Minute, MaxOutput: 99}},
		{"sandbox_typescript", "x.ts", "// @sandbox read\n" + helTs, tool.Hints{Sandbox: sandbox.Declaration{Level: sandbox.Read}, Timeout: time.Minute, MaxOutput: 99}},
		{"bash", "x.sh", meta + hello, tool.Hints{ReadOnly: true, Timeout: 90 * time.Second, MaxOutput: 99}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			h.o.Timeout, h.o.MaxOutput = time.Minute, 99
			tools := h.load(t, tt.file, tt.src)
			if got := tools[0].Hints(); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestHintsOfSubcommands has tags of the script, which hold for all, and tags between a @cmd
// and its function, which hold for that one.
func TestHintsOfSubcommands(t *testing.T) {
	h := newHome(t)
	h.o.Agent = &script.Agent{Name: "a"}
	h.o.Cache = filepath.Join(h.dir, "cache")
	src := `# @meta timeout 5s

# @cmd Read.
# @meta read-only
# @option --what
read_it() { :; }

# @cmd Write.
# @meta destructive
#@meta timeout 9m

write_it() { :; }

# @cmd Think.
# @meta interactive
think() { :; }

eval "$(loki --argc-eval "$0" "$@")"
`
	want := []tool.Hints{
		{ReadOnly: true, Timeout: 5 * time.Second},
		{Destructive: true, Timeout: 9 * time.Minute},
		{Interactive: true, Timeout: 5 * time.Second},
	}
	for _, from := range []string{"source", "cache"} {
		for i, loaded := range h.load(t, "tools.sh", src) {
			if got := loaded.Hints(); !reflect.DeepEqual(got, want[i]) {
				t.Errorf("from the %s, tool %d: got %+v, want %+v", from, i, got, want[i])
			}
		}
	}
}

// TestExamples loads the tools that are part of the program.
func TestExamples(t *testing.T) {
	h := newHome(t)
	if err := os.CopyFS(filepath.Join(h.dir, "tools"), assets.Functions); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "tools", "*"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	var all []tool.Tool
	for _, file := range files {
		tools, err := script.Load(file, h.o)
		if err != nil {
			t.Error(err)
		}
		all = append(all, tools...)
	}
	got, err := script.Schema(all)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("testdata/examples.json is not what models see:\n%s", got)
	}
}
