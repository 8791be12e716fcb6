package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/process"
	"loki/internal/base/process/npmtest"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/script"
)

// needs skips a test where scripts with an extension cannot be run.
func needs(t testing.TB, ext string) {
	t.Helper()
	if _, err := process.Interpreter(ext, "", nil); err != nil {
		t.Skip(err)
	}
}

const awkward = "a 'b' \"c\" $HOME `id` \\ \t\n-- é=1,2\n"

func TestBash(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	tools := h.load(t, "get-it.sh", `# @describe Prints.
# @option --some_text!
# @flag --be-loud
# @option --tags*
# @option --count <INT>
main() {
  printf '%s|%s|%s|%s' "$argc_some_text" "${argc_be_loud:-}" "${argc_tags[*]:-}" "${argc_count:-}" >>"$LLM_OUTPUT"
  echo "for the user"
}
`)
	get := tools[0]
	text, err := json.Marshal(awkward)
	if err != nil {
		t.Fatal(err)
	}
	h.want(t, get, `{"some_text":`+string(text)+`,"be_loud":true,"tags":["x y","z"],"count":7}`, awkward+"|1|x y z|7")
	h.want(t, get, `{"some_text":"a=b","be_loud":false,"tags":[]}`, "a=b|||")
	r, err := h.call(t, get, `{}`)
	if exit, ok := errors.AsType[*tool.ExitError](err); !ok || exit.Tool != "get_it" || exit.Code != 1 || !strings.Contains(r.Stderr, "some_text") {
		t.Errorf("a missing option: %v, %+v", err, r)
	}
	if _, err := h.call(t, get, `{"some_text":"`+strings.Repeat("x", 200_000)+`"}`); err == nil || !strings.Contains(err.Error(), "--some_text has 200000 bytes") {
		t.Errorf("a long value: %v", err)
	}
}

func TestBashSubcommands(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	h.o.Agent = &script.Agent{Name: "My-Agent", Dir: filepath.Join(h.dir, "there"), CacheDir: "/cache/my"}
	h.o.Variables = func() (map[string]string, error) { return map[string]string{"api-key": "k 1"}, nil }
	h.o.Executable = "/opt/loki"
	tools := h.load(t, "tools.sh", `# @cmd Prints.
# @option --value
show-it() {
  echo "$argc_value $LLM_AGENT_NAME $LLM_AGENT_FUNC $LLM_AGENT_ROOT_DIR $LLM_AGENT_CACHE_DIR $LLM_ROOT_DIR $LLM_AGENT_VAR_API_KEY ${LLM_TOOL_NAME:-} $LOKI_EXECUTABLE" >>"$LLM_OUTPUT"
}
`)
	h.want(t, tools[0], `{"value":1}`, "1 My-Agent show-it "+h.dir+"/there /cache/my "+h.dir+" k 1  /opt/loki\n")
}

func TestPython(t *testing.T) {
	needs(t, ".py")
	h := newHome(t)
	h.put(t, "sibling.py", "def shout(s): return s.upper()\n")
	tools := h.load(t, "Odd-Name.py", `
import dataclasses, os
from typing import Literal, Optional
import sibling

@dataclasses.dataclass
class Point:
    x: "int"

def run(what: str, text: Optional[str], level: Literal[1, 2] = 1, size: int = 5):
    """Returns things."""
    print("for the user")
    if what == "raise":
        raise ValueError("\033[31mno " + text)
    if what == "exit":
        raise SystemExit(3)
    return {"none": None, "text": text, "true": True, "number": 1.5, "dict": {"é": [Point(1).x, level, size]},
        "list": [text], "upper": sibling.shout("abc"), "file": os.path.basename(__file__), "other": object()}[what]
`)
	get := tools[0]
	text, err := json.Marshal(awkward)
	if err != nil {
		t.Fatal(err)
	}
	h.want(t, get, `{"what":"text","text":`+string(text)+`}`, awkward)
	h.want(t, get, `{"what":"text"}`, "")
	h.want(t, get, `{"what":"none"}`, "")
	h.want(t, get, `{"what":"true"}`, "True")
	h.want(t, get, `{"what":"number"}`, "1.5")
	h.want(t, get, `{"what":"dict","level":"2","size":null}`, "{\n  \"é\": [\n    1,\n    2,\n    5\n  ]\n}")
	h.want(t, get, `{"what":"list","text":"a"}`, "[\n  \"a\"\n]")
	h.want(t, get, `{"what":"upper"}`, "ABC")
	h.want(t, get, `{"what":"file"}`, "Odd-Name.py")
	h.want(t, get, `{"what":"other"}`, "")
	h.want(t, get, `{"what":"text","text":"`+strings.Repeat("x", 500_000)+`"}`, strings.Repeat("x", 500_000))

	r, err := h.call(t, get, `{"what":"raise","text":"way"}`)
	if exit, ok := errors.AsType[*tool.ExitError](err); !ok || exit.Code != 1 || exit.Tool != "odd_name" {
		t.Errorf("an exception: %v", err)
	}
	if !strings.Contains(r.Stderr, "ValueError: no way") || !strings.Contains(r.Stderr, "Odd-Name.py") || strings.Contains(r.Stderr, "launch.py") {
		t.Errorf("the traceback:\n%s", r.Stderr)
	}
	if _, err := h.call(t, get, `{"what":"exit"}`); err == nil || !strings.Contains(err.Error(), "exited with code 3") {
		t.Errorf("an exit: %v", err)
	}
	if r, err := h.call(t, get, `{"what":"text","more":1}`); err == nil || !strings.Contains(r.Stderr, "unexpected keyword argument 'more'") {
		t.Errorf("an unknown argument: %v %s", err, r.Stderr)
	}
}

func TestPythonAgent(t *testing.T) {
	needs(t, ".py")
	h := newHome(t)
	h.o.Agent = &script.Agent{Name: "a"}
	tools := h.load(t, "tools.py", "import asyncio\nasync def getUser(Name):\n  'A.'\n  await asyncio.sleep(0)\n  return Name\ndef _instructions():\n  'B.'\n  return 'do it'\n")
	h.want(t, tools[0], `{"Name":"x"}`, "x")
	instructions, err := script.Instructions(filepath.Join(h.dir, "tools", "tools.py"), h.o)
	if err != nil {
		t.Fatal(err)
	}
	h.want(t, instructions, `{}`, "do it")
}

func TestTypeScript(t *testing.T) {
	needs(t, ".ts")
	modules := npmtest.Install(t, "testdata/node")
	h := newHome(t)
	if err := os.Symlink(modules, filepath.Join(h.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	tools := h.load(t, "odd-name.ts", `#!/usr/bin/env tsx
enum Level { Low = 1 }
const sep = "),";
/** Returns things. */
export default async function run(what: string, text: string | null, tags: string[] = ["x)", sep], level: 1 | 2 = Level.Low): Promise<unknown> {
  console.log("for the user");
  setInterval(() => {}, 1000);
  if (what === "throw") throw new TypeError("no " + text);
  return ({ text, none: undefined, number: 1.5, yes: true, object: { tags, level, text }, big: 12345678901234567890n } as any)[what];
}
`)
	get := tools[0]
	h.want(t, get, `{"what":"object","level":"2","tags":null}`, "{\n  \"tags\": [\n    \"x)\",\n    \"),\"\n  ],\n  \"level\": 2,\n  \"text\": null\n}")
	text, err := json.Marshal(awkward)
	if err != nil {
		t.Fatal(err)
	}
	h.want(t, get, `{"what":"text","text":`+string(text)+`}`, awkward)
	h.want(t, get, `{"what":"none"}`, "")
	h.want(t, get, `{"what":"yes"}`, "true")
	r, err := h.call(t, get, `{"what":"throw","text":"way"}`)
	if exit, ok := errors.AsType[*tool.ExitError](err); !ok || exit.Code != 1 || !strings.Contains(r.Stderr, "TypeError: no way") {
		t.Errorf("an exception: %v\n%s", err, r.Stderr)
	}
	h.o.Agent = &script.Agent{Name: "a"}
	agent := h.load(t, "tools.ts", "/** A. */ export const x = 1;\n/** B. */ export function getIt(a: string) { return a }\n")
	h.want(t, agent[0], `{"a":"b"}`, "b")
}

func TestOutput(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	var lines []string
	h.o.Output = func(_ context.Context, name, line string) { lines = append(lines, name+": "+line) }
	for _, tt := range []struct{ name, body, want, err string }{
		{name: "json", body: `echo '{"a": 1}' >>"$LLM_OUTPUT"`, want: "{\"a\": 1}\n"},
		{name: "nothing", body: `echo one; echo two >&2`},
		{name: "fresh", body: `[[ ! -e $LLM_OUTPUT ]] && echo yes >"$LLM_OUTPUT"`, want: "yes\n"},
		{name: "failure", body: `echo half >>"$LLM_OUTPUT"; echo why >&2; exit 4`, want: "half\n", err: "exited with code 4"},
		{name: "signal", body: `kill -TERM $$`, err: "SIGTERM"},
		{name: "directory", body: `mkdir "$LLM_OUTPUT"`, err: "is not a file"},
		{name: "pipe", body: `mkfifo "$LLM_OUTPUT"`, err: "is not a file"},
		{name: "link", body: `ln -s /etc/passwd "$LLM_OUTPUT"`, err: "is not a file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tools := h.load(t, tt.name+".sh", "# @describe A.\nmain() {\n"+tt.body+"\n}\n")
			r, err := h.call(t, tools[0], `{}`)
			if r.Output != tt.want {
				t.Errorf("got %q", r.Output)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %s", err, tt.err)
			}
			if err == nil && r.Stderr != "" {
				t.Errorf("a success shows standard error: %s", r.Stderr)
			}
			if tt.name == "failure" && r.Stderr != "why\n" {
				t.Errorf("standard error %q", r.Stderr)
			}
		})
	}
	if got := strings.Join(lines, "; "); got != "nothing: one" {
		t.Errorf("the user saw %s", got)
	}
}

func TestLargeOutput(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	tools := h.load(t, "x.sh", "# @describe A.\nmain() { printf a >>\"$LLM_OUTPUT\"; head -c 9000000 /dev/zero | tr '\\0' x >>\"$LLM_OUTPUT\"; printf b >>\"$LLM_OUTPUT\"; }\n")
	r, err := h.call(t, tools[0], `{}`)
	if err != nil || len(r.Output) > 5<<20 || r.Output[0] != 'a' || !strings.HasSuffix(r.Output, "b") || !strings.Contains(r.Output, "of 9000002 bytes left out here") {
		t.Errorf("%d bytes, %v", len(r.Output), err)
	}
}

// TestShown runs a script that prints more than a user wants to see.
func TestShown(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	var lines []string
	bytes := 0
	h.o.Output = func(_ context.Context, _, line string) { lines, bytes = append(lines, line), bytes+len(line) }
	tools := h.load(t, "x.sh", "# @describe A.\nmain() { for ((i = 0; i < 8000; i++)); do printf '%0127d\\n' $i; done; echo end >>\"$LLM_OUTPUT\"; }\n")
	h.want(t, tools[0], `{}`, "end\n")
	const note = "(x prints more than 256 KiB; the rest is not shown)"
	if len(lines) != 2049 || lines[2048] != note || bytes > 256<<10+len(note) {
		t.Errorf("%d lines, %d bytes, at the end %q", len(lines), bytes, lines[len(lines)-1])
	}
}

// TestCancel ends a call whose script has started another program: both must be gone.
func TestCancel(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.o.Output = func(_ context.Context, _, line string) {
		if line == "started" {
			cancel()
		}
	}
	tools := h.load(t, "x.sh", "# @describe A.\nmain() { sleep 300 & echo $! >'"+h.dir+"/pid'; echo started; wait; }\n")
	_, err := tools[0].Call(ctx, tool.Call{Name: "x", Arguments: []byte(`{}`)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	pid, err := os.ReadFile(filepath.Join(h.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("the program is still there: %s", stat)
		}
	}
	if left, err := os.ReadDir(h.o.Temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestChanges edits a script between two calls.
func TestChanges(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	tools := h.load(t, "x.sh", hello)
	h.want(t, tools[0], `{"name":"you"}`, "hello you\n")
	built, err := os.ReadFile(filepath.Join(h.dir, "tools", "x.sh"))
	if err != nil || strings.Contains(string(built), "--argc-eval") {
		t.Errorf("the script was not built: %v", err)
	}
	h.want(t, tools[0], `{"name":"them"}`, "hello them\n")
	if again, err := os.ReadFile(filepath.Join(h.dir, "tools", "x.sh")); err != nil || string(again) != string(built) {
		t.Errorf("the second call changed the script")
	}
	h.put(t, "x.sh", strings.Replace(hello, "hello $", "bye $", 1))
	h.want(t, tools[0], `{"name":"you"}`, "bye you\n")
	h.put(t, "x.sh", "# @cmd A.\nother() { :; }\n")
	if _, err := h.call(t, tools[0], `{}`); err == nil || !strings.Contains(err.Error(), "x.sh was changed and has no x any more") {
		t.Errorf("got %v", err)
	}
	h.put(t, "x.sh", "# @option --bad[\n")
	if _, err := h.call(t, tools[0], `{}`); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v", err)
	}
}

// TestReadOnly runs a script whose directory cannot be written.
func TestReadOnly(t *testing.T) {
	needs(t, ".sh")
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("whoever runs this may write everywhere")
	}
	h := newHome(t)
	tools := h.load(t, "x.sh", hello)
	dir := filepath.Join(h.dir, "tools")
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	h.want(t, tools[0], `{"name":"you"}`, "hello you\n")
}

// TestBox makes calls as models do.
func TestBox(t *testing.T) {
	needs(t, ".py")
	h := newHome(t)
	set, err := tool.NewSet(h.load(t, "x.py", "import time\ndef run(s: float, o: str = ''):\n  'A.'\n  time.sleep(s)\n  return o\n")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, arguments, want string
		timeout               time.Duration
		failed                bool
	}{
		{name: "json", arguments: `{"s":0,"o":"[1, 2]"}`, want: "[1,2]"},
		{name: "text", arguments: `{"s":0,"o":"a"}`, want: `{"output":"a"}`},
		{name: "nothing", arguments: `{"s":0}`, want: ""},
		{name: "timeout", arguments: `{"s":300}`, timeout: 200 * time.Millisecond, want: `{"tool_call_error":"x timed out after 200ms"}`, failed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := tool.NewBox(tool.Options{Tools: set, Timeout: tt.timeout})
			text, failed, err := box.Call(t.Context(), chat.ToolCall{ID: "1", Name: "x", Arguments: tt.arguments}, steps.Steps{})
			if err != nil || text != tt.want || failed != tt.failed {
				t.Errorf("got %s, %v, %v", text, failed, err)
			}
		})
	}
}

// TestInteractive gives the user's input to a script that talks to them, and to no other.
func TestInteractive(t *testing.T) {
	needs(t, ".sh")
	for _, tt := range []struct {
		name, meta string
		terminal   bool
		want       string
	}{
		{name: "interactive", meta: "# @meta interactive\n", terminal: true, want: "yes\n"},
		{name: "without_terminal", meta: "# @meta interactive\n", want: "\n"},
		{name: "not_interactive", terminal: true, want: "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			in := filepath.Join(h.dir, "input")
			if err := os.WriteFile(in, []byte("yes\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(in)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			h.o.Terminal, h.o.Stdin = tt.terminal, f
			tools := h.load(t, "x.sh", tt.meta+"# @describe A.\nmain() { read -r line; echo \"$line\" >>\"$LLM_OUTPUT\"; }\n")
			h.want(t, tools[0], `{}`, tt.want)
		})
	}
}

// TestSecondName calls and builds a script that has two names, and keeps the file of both.
func TestSecondName(t *testing.T) {
	needs(t, ".sh")
	h := newHome(t)
	tools := h.load(t, "x.sh", hello)
	file, other := filepath.Join(h.dir, "tools", "x.sh"), filepath.Join(h.dir, "other.sh")
	if err := os.Link(file, other); err != nil {
		t.Skip(err)
	}
	h.want(t, tools[0], `{"name":"you"}`, "hello you\n")
	if _, err := script.Build([]string{file}, script.Options{Bin: filepath.Join(h.dir, "bin")}); err != nil {
		t.Error(err)
	}
	one, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.Stat(other)
	if text, _ := os.ReadFile(file); err != nil || !os.SameFile(one, two) || string(text) != hello {
		t.Errorf("the file was changed: %v\n%s", err, text)
	}
}
