//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

// TestInterruptedTurns ends the program while a model answers within a session: the
// question and the rounds of tool calls that are finished stay, the next question goes on
// from there.
func TestInterruptedTurns(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"ctrl_c": syscall.SIGINT, "terminated": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTalk(t)
			call := chat.ToolCall{ID: "call_1", Name: "fs_ls", Arguments: `{"path":"."}`}
			p.server.Script(openaitest.ToolCalls("Let me look.", call), openaitest.Stall("The first ", "word"))
			p.interrupted(sig, 2, "-s", "trip", "the first question")

			// Of a session that goes on, too, and in which nothing came back.
			p.server.Script(openaitest.Text("fine"), wiretest.Hang)
			p.loki("-s", "trip", "go on")
			sent := p.last()
			for _, want := range []string{`"the first question"`, `"call_1"`, "notes.txt", session.Interrupted, `"go on"`} {
				if !strings.Contains(sent, want) {
					t.Errorf("%s is not in the request that follows: %s", want, sent)
				}
			}
			p.interrupted(sig, 4, "-s", "trip", "the third question")
			info := p.loki("--info", "-s", "trip")
			if n := strings.Count(info, session.Interrupted); n != 2 || strings.Count(info, "the third question") != 1 || strings.Count(info, "the first question") != 1 {
				t.Errorf("%d interrupted turns in\n%s", n, info)
			}
			if again := p.loki("--info", "-s", "trip"); again != info {
				t.Errorf("looking changes the session to\n%s", again)
			}
			if left, err := filepath.Glob(filepath.Join(p.dir, "home/config/sessions/by-id/*/draft-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestInterruptedAnswerStays: what was shown of an answer before Ctrl-C is in the session.
func TestInterruptedAnswerStays(t *testing.T) {
	t.Parallel()
	p := newTalk(t)
	p.server.Script(openaitest.Stall("The first ", "word"))
	cmd := p.command("-s", "trip", "the first question")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("The first word"))); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("ended with %v", err)
	}
	p.server.Script(openaitest.Text("fine"))
	p.loki("-s", "trip", "go on")
	if sent := p.last(); !strings.Contains(sent, `"The first word\n\n`+session.Interrupted+`"`) {
		t.Errorf("sent %s", sent)
	}
}

// TestDraftsHoldNoSecrets kills the program while it answers: what it kept of the turn until then
// is without the key of its client, which a tool and the user repeat.
func TestDraftsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	p := newTalk(t)
	const key = "sk-swordfish-key"
	cmd := p.command()
	config := filepath.Join(p.dir, "home/config/config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.Replace(strings.Replace(string(text), "api_key: k", "api_key: "+key, 1), "fs_ls", "fs_cat", 1))
	write(t, filepath.Join(cmd.Dir, "notes.txt"), "the key is "+key)
	call := chat.ToolCall{ID: "call_1", Name: "fs_cat", Arguments: `{"path":"notes.txt"}`}
	p.server.Script(openaitest.ToolCalls("Let me look.", call), openaitest.Stall("The first ", "word"))
	p.interrupted(syscall.SIGKILL, 2, "-s", "trip", "is "+key+" in my notes?")
	drafts, err := filepath.Glob(filepath.Join(p.dir, "home/config/sessions/by-id/*/draft-*"))
	if err != nil || len(drafts) == 0 {
		t.Fatalf("no draft: %v", err)
	}
	for _, file := range drafts {
		draft, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(draft), "swordfish") {
			t.Errorf("%s has the key: %s", file, draft)
		}
		if n := strings.Count(string(draft), "***FAKE_API_KEY***"); n < 2 {
			t.Errorf("%d marks, not those of the question and of the tool: %s", n, draft)
		}
	}
	if info := p.loki("--info", "-s", "trip"); strings.Contains(info, "swordfish") || !strings.Contains(info, "***FAKE_API_KEY***") {
		t.Errorf("the session: %s", info)
	}
}

// TestFailedTurnsLeaveNothing: a question that failed is asked again.
func TestFailedTurnsLeaveNothing(t *testing.T) {
	t.Parallel()
	p := newTalk(t)
	p.server.Script(wiretest.Status(401, `{"error":{"message":"no"}}`))
	if out, err := p.command("-s", "trip", "the first question").CombinedOutput(); err == nil {
		t.Errorf("no error: %s", out)
	}
	if out := p.loki("--list-sessions"); strings.Contains(out, "trip") {
		t.Errorf("the session is there: %s", out)
	}
	p.server.Script(openaitest.Text("fine"))
	p.loki("-s", "trip", "the first question")
	if n := strings.Count(p.last(), "the first question"); n != 1 {
		t.Errorf("the question was sent %d times", n)
	}

	// But what tools have done stays.
	p.server.Script(openaitest.ToolCalls("", chat.ToolCall{ID: "call_1", Name: "fs_ls", Arguments: `{"path":"."}`}), wiretest.Status(401, `{"error":{"message":"no"}}`))
	if out, err := p.command("-s", "trip", "look").CombinedOutput(); err == nil {
		t.Errorf("no error: %s", out)
	}
	p.server.Script(openaitest.Text("fine"))
	p.loki("-s", "trip", "go on")
	if sent := p.last(); !strings.Contains(sent, "notes.txt") || !strings.Contains(sent, session.Interrupted) {
		t.Errorf("sent %s", sent)
	}
}

// talk runs the program against a model of a test.
type talk struct {
	*testing.T
	server *openaitest.Server
	dir    string

	durability string // of questions; empty for none
}

func newTalk(t *testing.T) *talk {
	p := &talk{T: t, server: openaitest.New(t), dir: t.TempDir()}
	write(t, filepath.Join(p.dir, "notes.txt"), "x")
	write(t, filepath.Join(p.dir, "home/config/config.yaml"), "model: fake:m\nenabled_tools: fs_ls\nclients:\n- type: openai-compatible\n  name: fake\n  api_base: "+
		p.server.URL()+"\n  api_key: k\n  models:\n  - name: m\n    supports_function_calling: true\n")
	return p
}

func (p *talk) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.Context(), "loki", args...)
	cmd.Dir, cmd.Env = p.dir, emptyHome(p.dir)
	if p.durability != "" {
		cmd.Env = append(cmd.Env, "LOKI_CHAT_DURABILITY="+p.durability)
	}
	return cmd
}

func (p *talk) loki(args ...string) string {
	p.Helper()
	cmd := p.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("loki %q: %v: %s", args, err, &stderr)
	}
	return string(out)
}

// last returns the body of the last request.
func (p *talk) last() string {
	list := p.server.Requests()
	return string(list[len(list)-1].Body)
}

// interrupted runs the program and sends it sig when the server has got that many requests
// in all.
func (p *talk) interrupted(sig os.Signal, requests int, args ...string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	cmd := p.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	for len(p.server.Requests()) < requests {
		select {
		case <-ctx.Done():
			p.Fatalf("%d requests came: %s", len(p.server.Requests()), &stderr)
		case <-time.After(5 * time.Millisecond): // nothing tells of a request
		}
	}
	if err := cmd.Process.Signal(sig); err != nil {
		p.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		p.Errorf("loki %q ended well: %s", args, &stderr)
	}
}

// TestVerboseInOnePipe: an answer has a line of its own where both outputs are one pipe.
func TestVerboseInOnePipe(t *testing.T) {
	t.Parallel()
	p := newTalk(t)
	p.server.Script(openaitest.Text("The answer."))
	out, err := p.command("-v", "hello").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if first, rest, _ := strings.Cut(string(out), "\n"); first != "The answer." || !strings.HasPrefix(rest, "▸ ") || strings.Contains(rest, "The answer.") || strings.Contains(rest, "\n\n") {
		t.Errorf("printed %q", out)
	}
}
