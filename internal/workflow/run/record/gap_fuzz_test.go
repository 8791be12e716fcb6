package record

import (
	"testing"
	"unicode/utf8"

	"loki/internal/workflow/run"
)

// FuzzGap reads notes about gaps, which are files that anything may have written.
func FuzzGap(f *testing.F) {
	f.Add([]byte(`{"reason": "no space", "since": "2026-11-30T12:00:00Z", "step": 3, "nodes": {"a": 2, "b": 1}, "status": "suspended", "error": "x"}`))
	f.Add([]byte(`{"step": -1, "nodes": {"": -5}}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := decodeGap(data)
		if g == nil {
			t.Fatal("a note that is there says nothing")
		}
		if g.Step < 0 {
			t.Errorf("the last super-step on record is %d", g.Step)
		}
		text := (&run.GapError{ID: "k3v9k3v9", Gap: *g}).Error() + g.Repeats()
		if !utf8.ValidString(text) || len(text) > 10_000+2*len(data) {
			t.Errorf("the note says %q", text)
		}
		info := run.Info{Status: run.Running}
		AddGap(&info, g)
		switch info.Status {
		case run.Running, run.Suspended, run.Canceled, run.Failed, run.Done:
		default:
			t.Errorf("the note makes the run %q", info.Status)
		}
	})
}
