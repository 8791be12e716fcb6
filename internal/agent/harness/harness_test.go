package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/engine"
)

// TestJudgements shows as which calls of tools the calls of programs are judged.
func TestJudgements(t *testing.T) {
	t.Parallel()
	p := &Program{Setting: &Setting{}, Agent: "worker", Dir: "/ws", Sandbox: sandbox.New(sandbox.Options{Settings: sandbox.Settings{Disabled: true}, Workspace: "/ws"})}
	for _, tt := range []struct{ name, call, want string }{
		{"command", `{"kind": "execute", "rawInput": {"command": "make test"}}`, `execute_command {"command":"make test"}`},
		{"words", `{"kind": "execute", "rawInput": {"command": ["git", "commit", "-m", "a b"]}}`, `execute_command {"command":"git commit -m 'a b'"}`},
		{"shell", `{"kind": "execute", "rawInput": {"command": ["/bin/bash", "-lc", "ls | wc"]}}`, `execute_command {"command":"ls | wc"}`},
		{"not_a_shell", `{"kind": "execute", "rawInput": {"command": ["python", "-c", "ls"]}}`, `execute_command {"command":"python -c ls"}`},
		{"no_command", `{"kind": "execute", "title": "Run"}`, `foreign_call {"agent":"worker","title":"Run"}`},
		{"diff", `{"kind": "edit", "locations": [{"path": "/ws/a"}], "content": [{"type": "diff", "path": "/ws/a", "oldText": "x", "newText": "y"}]}`, `fs_write {"path":"/ws/a","contents":"y","before":"x"}`},
		{"edit", `{"kind": "edit", "rawInput": {"file_path": "/ws/b"}, "locations": [{"path": "/ws/a"}]}`, `fs_write {"path":"/ws/a"} fs_write {"path":"/ws/b"}`},
		{"delete", `{"kind": "delete", "locations": [{"path": "/ws/a"}]}`, `fs_rm {"path":"/ws/a"}`},
		{"move", `{"kind": "move", "locations": [{"path": "/ws/a"}]}`, `fs_rm {"path":"/ws/a"} fs_write {"path":"/ws/a"}`},
		{"read", `{"kind": "read", "rawInput": {"abs_path": "/ws/a"}}`, `fs_cat {"path":"/ws/a"}`},
		{"search", `{"kind": "search", "rawInput": {"pattern": "x"}}`, `fs_cat {"path":"/ws"}`},
		{"fetch", `{"kind": "fetch", "rawInput": {"url": "https://go.dev/"}}`, `fetch_url_via_curl {"url":"https://go.dev/"}`},
		{"other", `{"kind": "other", "title": "Do it", "rawInput": {"x": 1}}`, `foreign_call {"agent":"worker","title":"Do it","input":{"x":1}}`},
		{"no_kind", `{"title": "Do it", "rawInput": {"command": "ls"}}`, `foreign_call {"agent":"worker","title":"Do it","input":{"command":"ls"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c acp.ToolCall
			if err := json.Unmarshal([]byte(tt.call), &c); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range judgments(p, &c) {
				args, err := json.Marshal(j.args)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, j.tool+" "+string(args))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChoose: an answer holds once. A denial that cannot be given once is given for good, a consent is not.
func TestChoose(t *testing.T) {
	t.Parallel()
	always := []acp.PermissionOption{{OptionID: "a", Kind: acp.AllowAlways}, {OptionID: "r", Kind: acp.RejectAlways}}
	if o := choose(always, acp.AllowOnce).Outcome; o.Outcome != acp.Cancelled {
		t.Errorf("a consent for good was given: %+v", o)
	}
	if o := choose(always, acp.RejectOnce, acp.RejectAlways).Outcome; o.OptionID != "r" {
		t.Errorf("not denied: %+v", o)
	}
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{"{}\n", "\n\n{\"a\":1}\r\n{}\n", "hello\n", "[]\n", "{\n", "{}", "\xff\n", "null\n{}\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := newLines(strings.NewReader(text))
		got, err := io.ReadAll(l)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(got) {
			if m := bytes.TrimSpace(line); !json.Valid(m) || m[0] != '{' {
				t.Errorf("%q was passed on", line)
			}
		}
		if err := l.mistake(); err == nil && strings.HasPrefix(text, "hello\n") {
			t.Error("no mistake")
		}
	})
}

// TestLongLine: a message may have 16 MiB, and not more.
func TestLongLine(t *testing.T) {
	t.Parallel()
	for n, fails := range map[int]bool{acp.MaxLine - 100: false, acp.MaxLine: true} {
		l := newLines(io.MultiReader(strings.NewReader(`{"x":"`), strings.NewReader(strings.Repeat("x", n)), strings.NewReader("\"}\n")))
		_, _ = io.Copy(io.Discard, l)
		if err := l.mistake(); (err != nil) != fails {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestFiles: what a turn changed is found, and made again elsewhere, and nothing outside of the directory.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("kept", "1")
	write("changed", "1")
	write("removed", "1")
	write(".git/index", "1")
	before := look(dir)
	write("changed", "2")
	write("sub/new", "2")
	write(".git/index", "2")
	write("large", strings.Repeat("x", maxFile+1))
	if err := os.Remove(filepath.Join(dir, "removed")); err != nil {
		t.Fatal(err)
	}
	files := before.changedFiles(dir)
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff([]string{"changed", "large", "removed", "sub/new"}, got); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(other, "removed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(other, append(files, File{Path: "../out", Data: []byte("x"), Mode: 0o600})); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(other, "sub", "new")); err != nil || string(data) != "2" {
		t.Errorf("%q %v", data, err)
	}
	for _, gone := range []string{"removed", "../out", "large", "kept"} {
		if _, err := os.Lstat(filepath.Join(other, gone)); err == nil {
			t.Errorf("%s is there", gone)
		}
	}
	if err := os.Symlink(dir, filepath.Join(other, "link")); err == nil {
		if restore(other, []File{{Path: "link/out", Data: []byte("x"), Mode: 0o600}}) == nil {
			t.Error("it followed a link out of the directory")
		}
	}
}

// FuzzNotice: no update of a program is a panic.
func FuzzNotice(f *testing.F) {
	for _, seed := range []string{
		`{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}, "messageId": "1"}`,
		`{"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "a"}}`,
		`{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "x", "kind": "edit", "rawInput": {"a": 1}}`,
		`{"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "content": [{"type": "terminal", "terminalId": "x"}, {"type": "diff"}, null]}`,
		`{"sessionUpdate": "plan", "entries": [{"content": "x"}]}`, `{"sessionUpdate": "usage_update", "cost": {"amount": -1, "currency": "usd"}}`,
		`{"sessionUpdate": "notice", "severity": "error"}`, `{"sessionUpdate": "compaction_update", "status": "failed"}`, `{}`, `null`, `[]`,
	} {
		f.Add(seed)
	}
	p := &Program{Setting: &Setting{Name: "x"}, Agent: "worker", Dir: f.TempDir(), Sandbox: sandbox.New(sandbox.Options{Settings: sandbox.Settings{Disabled: true}, Workspace: "/"})}
	f.Fuzz(func(t *testing.T, update string) {
		talk := newTalk(p, new(engine.RequestContext), new(Asked), steps.Steps{}, 1)
		talk.closed = false
		for range 2 {
			talk.Notice(t.Context(), acp.SessionUpdate, json.RawMessage(`{"sessionId": "", "update": `+update+`}`))
			talk.Notice(t.Context(), acp.SessionUpdate, json.RawMessage(`{"sessionId": "", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "b"}}}`))
		}
		var call acp.ToolCall
		if json.Unmarshal([]byte(update), &call) == nil && len(judgments(p, &call)) == 0 {
			t.Error("a call is judged as nothing")
		}
	})
}
