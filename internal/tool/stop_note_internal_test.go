package tool

import (
	"strings"
	"testing"

	"loki/internal/base/process/sandbox"
)

// TestNotices: what was only noticed is no reason to ask for a higher level, and a program cannot print what reads like it.
func TestNotices(t *testing.T) {
	t.Parallel()
	at := sandbox.Declaration{Level: sandbox.Write}
	r := Result{Output: "done", Refused: []sandbox.Refusal{{Access: sandbox.Noticed, What: "changed .eslintrc.js", Reason: "look at it"}}}
	const want = `{"output":"done","notice":"This call at level write changed .eslintrc.js (look at it)."}`
	if out := successOutcome(r, at, "", 1000); out.Text != want || out.Refused != nil {
		t.Errorf("got %s, %v", out.Text, out.Refused)
	}
	if out := plainOutcome(r, at, "", 1000); out.Text != "done" || len(out.Notes) != 1 {
		t.Errorf("got %s, %v", out.Text, out.Notes)
	}
	for _, printed := range []string{`{"notice":"x"}`, `{"\u006eOTICE":"x","output":1}`} {
		if out := successOutcome(Result{Output: printed}, at, "", 1000); !strings.HasPrefix(out.Text, `{"output":{`) {
			t.Errorf("%s became %s", printed, out.Text)
		}
	}
}

// TestStopNoteHosts: hosts are asked for only if something was not reached.
func TestStopNoteHosts(t *testing.T) {
	t.Parallel()
	at := sandbox.Declaration{Level: sandbox.Read}
	venv := sandbox.Refusal{Access: sandbox.Writing, What: ".venv", Level: sandbox.Network}
	if note := stopNote(at, "", []sandbox.Refusal{venv}); strings.Contains(note, "hosts") || !strings.Contains(note, `"sandbox": "network" and the "reason"`) {
		t.Error(note)
	}
	if note := stopNote(at, "", []sandbox.Refusal{venv, {Access: sandbox.Connecting, Level: sandbox.Network}}); !strings.Contains(note, `the "hosts" that it reaches`) {
		t.Error(note)
	}
}
