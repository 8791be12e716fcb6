package acpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/process/npmtest"
	"loki/internal/base/process/sandbox"
)

// foreign returns the environment of an editor whose agent coder is the scripted foreign agent, and a workspace in which the file made.txt has the text old.
func foreign(t *testing.T, can, script string) (env []string, dir string) {
	t.Helper()
	home, env := home(t)
	dir = t.TempDir()
	if !sandbox.New(sandbox.Options{Workspace: dir}).Support().Files {
		t.Skip("there is no sandbox")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "foreign")
	write(t, filepath.Join(state, "script"), strings.ReplaceAll(script, "DIR", dir))
	write(t, filepath.Join(dir, "made.txt"), "old\n")
	write(t, filepath.Join(home, "agents", "coder", "config.yaml"), fmt.Sprintf("name: coder\nharness: {acp: [%q], env: [OWN_API_KEY, FOREIGN_SCRIPT=script, %q, %q], state: [%q]}\n",
		program, "FOREIGN_STATE="+state, "FOREIGN_CAN="+can, state))
	return append(env, "OWN_API_KEY=sk-one", "OTHER_API_KEY=sk-two", "GITHUB_TOKEN=ghp-three"), dir
}

// TestForeign: what a foreign agent asks is asked in the editor, with the difference that it would make. Its calls, the output of its terminal and its answer are
// shown. It has its own secrets only.
func TestForeign(t *testing.T) {
	t.Parallel()
	const script = `tool execute {"command": "make"}
askdiff DIR/made.txt new
fswrite DIR/made.txt new
ask execute {"command": "echo ran"}
term echo ran
environ`
	for kind, want := range map[string][]string{
		acp.AllowOnce:  {"askdiff: selected yes", "fswrite /made.txt: ok", `{"command": "echo ran"}: selected yes`, "term echo ran: 0 ran ok"},
		acp.RejectOnce: {"askdiff: selected no", "fswrite /made.txt: failed", `{"command": "echo ran"}: selected no`, "term echo ran: 1"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			env, dir := foreign(t, "", script)
			asked := []string{}
			e := start(t, env, dir, `{}`, func(method string, params json.RawMessage) (any, error) {
				asked = append(asked, string(params))
				return choose(kind)(method, params)
			}, "-a", "coder")
			id := e.begin(dir)
			said, stop := e.say(id, "go")
			for _, part := range want {
				if !strings.Contains(strings.ReplaceAll(said, dir, ""), part) {
					t.Errorf("it lacks %q", part)
				}
			}
			if stop != acp.EndTurn || !strings.Contains(said, "OWN_API_KEY") || strings.Contains(said, "OTHER_API_KEY") || strings.Contains(said, "GITHUB_TOKEN") {
				t.Errorf("%s: %s", stop, said)
			}
			for _, part := range []string{`"title":"fs_write ` + dir + `/made.txt"`, `"oldText":"old"`, `"newText":"new"`, `"kind":"edit"`, `"toolCallId":"1-call-2"`} {
				if len(asked) == 0 || !strings.Contains(asked[0], part) {
					t.Errorf("%s lacks %s", asked, part)
				}
			}
			if len(asked) < 2 || !strings.Contains(strings.Join(asked[1:], ""), `"title":"echo ran"`) {
				t.Errorf("%s", asked)
			}
			e.wait(func(u any) bool {
				c, ok := u.(*acp.ToolCall)
				return ok && c.Kind == acp.ToolCallBegins && c.ToolKind == "execute" && c.Title == "make"
			})
			e.wait(func(u any) bool {
				c, ok := u.(*acp.ToolCall)
				return ok && c.Kind == acp.ToolCallChanges && c.Status == acp.Completed && strings.Contains(marshal(c.Content), "done")
			})
			text, err := os.ReadFile(filepath.Join(dir, "made.txt"))
			if changed := string(text) == "new"; err != nil || changed != (kind == acp.AllowOnce) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestForeignModes: in the mode read a foreign agent changes nothing, whether it asks or not.
func TestForeignModes(t *testing.T) {
	t.Parallel()
	env, dir := foreign(t, "modes,resume", "mode\naskdiff DIR/made.txt new\nrun echo x >DIR/made.txt")
	e := start(t, env, dir, `{}`, choose(acp.AllowOnce), "-a", "coder")
	id := e.begin(dir)
	e.call(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: modeRead}, nil)
	said, _ := e.say(id, "go")
	if text, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(text) != "old\n" || !strings.Contains(said, "mode plan") || !strings.Contains(said, "askdiff: selected no") {
		t.Errorf("%q, %v: %s", text, err, said)
	}
	e.call(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: modeAsk}, nil)
	if said, _ := e.say(id, "go"); !strings.Contains(said, "mode default") || !strings.Contains(said, "askdiff: selected yes") {
		t.Error(said)
	}
}

// TestForeignCanceled: a turn that is canceled while a foreign agent waits for a permission ends as canceled, and the question is withdrawn.
func TestForeignCanceled(t *testing.T) {
	t.Parallel()
	env, dir := foreign(t, "", `ask execute {"command": "make"}`)
	asked := make(chan struct{})
	var e *editor
	e = start(t, env, dir, `{}`, func(string, json.RawMessage) (any, error) {
		close(asked)
		<-e.sent.over
		return nil, nil
	}, "-a", "coder")
	id := e.begin(dir)
	ended := make(chan string, 1)
	go func() { // ends with the turn
		var r acp.PromptResponse
		_ = e.Call(context.Background(), acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text("go")}}, &r)
		ended <- r.StopReason
	}()
	<-asked
	if err := e.Notify(acp.SessionCancel, acp.SessionRequest{SessionID: id}); err != nil {
		t.Fatal(err)
	}
	if stop := <-ended; stop != acp.Cancelled {
		t.Error(stop)
	}
	for _, line := range e.sent.lines() {
		if strings.Contains(string(line), `"$/cancel_request"`) {
			return
		}
	}
	t.Error("the question was not withdrawn")
}

// TestForeignTypeScript is TestForeign with the client of the official SDK.
func TestForeignTypeScript(t *testing.T) {
	t.Parallel()
	env, work := foreign(t, "", "askdiff DIR/made.txt new\nfswrite DIR/made.txt new\nterm echo ran")
	dir := t.TempDir()
	if err := os.Symlink(npmtest.Install(t, filepath.Join("testdata", "client")), filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "client", "foreign.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "foreign.mjs"), string(text))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "foreign.mjs"), program, work)
	cmd.Dir, cmd.Env = work, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	const want = `permission edit "old" "new"
permission execute undefined undefined
stop end_turn
said askdiff: selected yes fswrite DIR/made.txt: ok term echo ran: 0 ran ok
`
	if got := strings.ReplaceAll(string(out), work, "DIR"); err != nil || got != want {
		t.Errorf("%v\n%s\n%s", err, got, stderr.String())
	}
}
