package tool

import (
	"strings"
	"testing"

	"loki/internal/sandbox"
)

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
