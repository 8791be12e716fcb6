package acpserver

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/agent/harness/acp"
)

// The tests of this file try what users of other agents have reported as mistakes.

// TestNewFiles: an editor fails to read a file that does not exist: it can be written nevertheless. One that is only in the editor can be read.
func TestNewFiles(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir, buffer := t.TempDir(), ""
	e := start(t, env, dir, `{"fs": {"readTextFile": true, "writeTextFile": true}}`, func(method string, params json.RawMessage) (any, error) {
		switch method {
		case acp.ReadTextFile:
			if buffer == "" {
				return nil, &acp.Error{Code: acp.InternalError, Message: "Internal error: no such file"}
			}
			return acp.ReadTextFileResponse{Content: buffer}, nil
		case acp.WriteTextFile:
			var r acp.WriteTextFileRequest
			if err := acp.Decode(params, &r); err != nil {
				return nil, err
			}
			return nil, os.WriteFile(r.Path, []byte(r.Content), 0o600)
		}
		return choose(acp.AllowOnce)(method, params)
	})
	id := e.begin(dir)
	if said, stop := e.say(id, "write it"); said != "It is done." || stop != acp.EndTurn {
		t.Errorf("%q, %s", said, stop)
	}
	path := filepath.Join(dir, "made.txt")
	if text, err := os.ReadFile(path); err != nil || string(text) != "hello\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	buffer = "not saved\n"
	if said, _ := e.say(id, "read it"); said != "It has: not saved" {
		t.Error(said)
	}
}

// TestOrder: what is said about a session comes after its id, and all that is said in a turn comes before its end.
func TestOrder(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	e := start(t, env, dir, `{}`, choose(acp.AllowOnce))
	id := e.begin(dir)
	e.wait(func(u any) bool { _, ok := u.(*acp.Commands); return ok })
	e.say(id, "write it")
	e.leave()
	var opened, ended bool
	for _, line := range e.sent.lines() {
		switch {
		case bytes.Contains(line, []byte(`"sessionId":"`+id+`","modes"`)):
			opened = true
		case bytes.Contains(line, []byte(`"stopReason"`)):
			ended = true
		case bytes.Contains(line, []byte(`"session/update"`)) && (!opened || ended && !bytes.Contains(line, []byte(`"session_info_update"`))):
			t.Errorf("out of its order: %s", line)
		}
	}
	if !opened || !ended {
		t.Error(opened, ended)
	}
}

// TestCanceledAtQuestion: a turn that is canceled while the editor shows a request for permission, and never answers it, ends as canceled, and the next one works.
func TestCanceledAtQuestion(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	var e *editor
	e = start(t, env, dir, `{}`, func(_ string, params json.RawMessage) (any, error) {
		var of acp.SessionRequest
		if err := json.Unmarshal(params, &of); err != nil {
			return nil, err
		}
		_ = e.Notify(acp.SessionCancel, of) // or the program has ended
		<-e.sent.over
		return nil, nil
	})
	id := e.begin(dir)
	if _, stop := e.say(id, "write it"); stop != acp.Cancelled {
		t.Error(stop)
	}
	if said, stop := e.say(id, "hello"); said != "It is done." || stop != acp.EndTurn {
		t.Errorf("%q, %s", said, stop)
	}
}
