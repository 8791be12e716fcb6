//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

// newChats returns a talk whose questions are recorded. Its tool note leaves a line in a file
// each time that it is run.
func newChats(t *testing.T) *talk {
	p := newTalk(t)
	p.durability = "process"
	config := filepath.Join(p.dir, "home/config/config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.Replace(string(text), "enabled_tools: fs_ls", "enabled_tools: note", 1))
	write(t, filepath.Join(p.dir, "home/config/functions/tools/note.sh"), "# @describe notes\n# @meta read-only\nmain() { echo ran >> "+filepath.Join(p.dir, "ran")+"; echo noted >> \"$LLM_OUTPUT\"; }\n")
	return p
}

var note = chat.ToolCall{ID: "call_1", Name: "note", Arguments: `{}`}

// runs returns how often the tool was run.
func (p *talk) runs() int {
	text, _ := os.ReadFile(filepath.Join(p.dir, "ran"))
	return strings.Count(string(text), "ran")
}

// newestRun returns the id of the newest run, and its status.
func (p *talk) newestRun() (id, status, kind, agent string) {
	p.Helper()
	var list []struct{ ID, Status, Kind, Agent string }
	if err := json.Unmarshal([]byte(p.loki("--runs", "--output", "json")), &list); err != nil || len(list) == 0 {
		p.Fatalf("%d runs, %v", len(list), err)
	}
	return list[0].ID, list[0].Status, list[0].Kind, list[0].Agent
}

// refused runs the program, which ends with a code, and returns what it prints.
func (p *talk) refused(code fault.Code, args ...string) string {
	p.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != fault.ExitCode(fault.New(code, "")) {
		p.Errorf("loki %q: %v: %s", args, err, out)
	}
	return string(out)
}

// TestChatGoesOn kills the program while a model answers for the second time. The question goes
// on there: no reply and no tool is asked for twice, and the answer is in the session once.
func TestChatGoesOn(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"begun", "used", "looked_at"} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			p := newChats(t)
			before := 0
			if in == "used" {
				p.server.Script(openaitest.Text("fine"))
				p.loki("-s", "trip", "before")
				before = 1
			}
			p.server.Script(openaitest.ToolCalls("Let me note.", note), openaitest.Stall("The first ", "word"))
			p.interrupted(syscall.SIGKILL, before+2, "-s", "trip", "the question")
			id, status, kind, agent := p.newestRun()
			if status != "interrupted" || kind != "chat" || agent != "chat" {
				t.Errorf("run %s of %s %s is %s", id, kind, agent, status)
			}
			if in == "looked_at" { // which puts the question into the session, as interrupted
				p.loki("--info", "-s", "trip")
			}
			p.server.Script(openaitest.Text("It is done."))
			if out := p.loki("-q", "--resume"); strings.TrimSpace(out) != "Let me note.\nIt is done." {
				t.Errorf("the answer is %q", out)
			}
			if n := len(p.server.Requests()); n != before+3 || p.runs() != 1 {
				t.Errorf("%d requests, and the tool ran %d times", n, p.runs())
			}
			if sent := p.last(); strings.Count(sent, `"the question"`) != 1 || strings.Count(sent, "noted") != 1 || strings.Contains(sent, session.Interrupted) {
				t.Errorf("sent %s", sent)
			}
			info := p.loki("--info", "-s", "trip")
			if strings.Count(info, "the question") != 1 || !strings.Contains(info, "It is done.") || strings.Contains(info, session.Interrupted) || strings.Contains(info, "before") != (in == "used") {
				t.Errorf("the session: %s", info)
			}
			if _, status, _, _ := p.newestRun(); status != "done" {
				t.Errorf("the run is %s", status)
			}
			if out := p.refused(fault.Usage, "--resume", id); !strings.Contains(out, "loki --run "+id) || strings.Contains(out, "--fork") {
				t.Errorf("printed %s", out)
			}
			if out := p.refused(fault.Usage, "--fork", id+"@0"); !strings.Contains(out, "is the answer to one question") {
				t.Errorf("printed %s", out)
			}
			page := p.loki("--run", id)
			for _, want := range []string{"chat      chat\n", "prompt    the question\n", "status    done\n", "It is done."} {
				if !strings.Contains(page, want) {
					t.Errorf("%q is not in %s", want, page)
				}
			}
		})
	}
}

// TestChatOfAnotherSession: a session that has gone on is not changed behind the back of the user.
func TestChatOfAnotherSession(t *testing.T) {
	t.Parallel()
	p := newChats(t)
	p.server.Script(openaitest.ToolCalls("", note), wiretest.Hang)
	p.interrupted(syscall.SIGKILL, 2, "-s", "trip", "the question")
	id, _, _, _ := p.newestRun()
	p.durability = "off"
	p.server.Script(openaitest.Text("fine"))
	p.loki("-s", "trip", "another question")
	if out := p.refused(fault.Config, "--resume", id); !strings.Contains(out, "has continued since") || !strings.Contains(out, "--force") {
		t.Errorf("printed %s", out)
	}
	p.server.Script(openaitest.Text("It is done."))
	p.loki("--resume", id, "--force")
	if info := p.loki("--info", "-s", "trip"); !strings.HasSuffix(strings.TrimSpace(info), "It is done.") || !strings.Contains(info, "another question") || p.runs() != 1 {
		t.Errorf("the session: %s", info)
	}
}

// TestChatWithoutSession goes on with a role that is gone since, and a form.
func TestChatWithoutSession(t *testing.T) {
	t.Parallel()
	p := newChats(t)
	role := filepath.Join(p.dir, "home/config/roles/terse.md")
	write(t, role, "---\nenabled_tools: note\n---\nBe terse.")
	write(t, filepath.Join(p.dir, "form.json"), `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`)
	p.server.Script(openaitest.ToolCalls("", note), wiretest.Hang)
	p.interrupted(syscall.SIGKILL, 2, "-r", "terse", "--schema", "form.json", "count")
	for _, file := range []string{role, filepath.Join(p.dir, "form.json")} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, agent := p.newestRun(); agent != "terse" {
		t.Errorf("the agent is %q", agent)
	}
	p.server.Script(openaitest.Text(`{"n": "one"}`), openaitest.Text(`{"n": 1}`))
	if out := p.loki("-q", "--resume"); !strings.Contains(out, `{"n":1}`) {
		t.Errorf("the answer is %q", out)
	}
	if n := len(p.server.Requests()); n != 4 || p.runs() != 1 {
		t.Errorf("%d requests, and the tool ran %d times", n, p.runs())
	}
	if sent := string(p.server.Requests()[2].Body); !strings.Contains(sent, "Be terse.") {
		t.Errorf("sent %s", sent)
	}
}

// TestChatHoldsNoSecrets: the key that a user writes is sealed on record, and there when the
// question goes on.
func TestChatHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	p := newChats(t)
	const key = "sk-swordfish-key"
	config := filepath.Join(p.dir, "home/config/config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.Replace(string(text), "api_key: k", "api_key: "+key, 1))
	p.server.Script(openaitest.ToolCalls("", note), wiretest.Hang)
	p.interrupted(syscall.SIGKILL, 2, "-s", "trip", "is "+key+" good?")
	if err := filepath.WalkDir(filepath.Join(p.dir, "home"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == config { // a socket is left of the process that was killed
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "swordfish") {
			t.Errorf("%s has the key", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	p.server.Script(openaitest.Text("It is."))
	p.loki("--resume")
	if sent := p.last(); !strings.Contains(sent, "is "+key+" good?") {
		t.Errorf("sent %s", sent)
	}
	if info := p.loki("--info", "-s", "trip"); strings.Count(info, "good?") != 1 || !strings.Contains(info, "It is.") {
		t.Errorf("the session: %s", info)
	}
}

// TestChatsAreNotRecordedUnasked opens no database for a question.
func TestChatsAreNotRecordedUnasked(t *testing.T) {
	t.Parallel()
	p := newTalk(t)
	p.server.Script(openaitest.Text("fine"))
	p.loki("the question")
	found, err := filepath.Glob(filepath.Join(p.dir, "home/*/runs.db*"))
	if err != nil || len(found) > 0 {
		t.Errorf("there is %q, %v", found, err)
	}
	p.durability = "process"
	p.server.Script(openaitest.Text("fine"))
	p.loki("the question")
	if found, _ = filepath.Glob(filepath.Join(p.dir, "home/*/runs.db*")); len(found) == 0 {
		t.Error("there is no database where there should be one: is this test looking at the right place?")
	}
}

// TestChatWithWrongAnswerIsOver: what is on record would only lead to the same failure again.
func TestChatWithWrongAnswerIsOver(t *testing.T) {
	t.Parallel()
	p := newChats(t)
	write(t, filepath.Join(p.dir, "schema.json"), `{"type": "object", "required": ["a"]}`)
	p.server.Script(openaitest.Text("no"), openaitest.Text("still no"))
	out := p.refused(fault.Provider, "--schema", "schema.json", "the question")
	if strings.Contains(out, "--resume") {
		t.Errorf("it is offered to be resumed:\n%s", out)
	}
	if _, status, _, _ := p.newestRun(); status != "done" {
		t.Errorf("the run is %s", status)
	}
	if out := p.refused(fault.NotFound, "--resume"); strings.Contains(out, "still no") {
		t.Errorf("it goes on:\n%s", out)
	}
}
