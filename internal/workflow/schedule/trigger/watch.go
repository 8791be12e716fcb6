package trigger

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"loki/internal/base/value/yamldoc"
)

// Watch is the part of a trigger that is about files.
type Watch struct {
	Paths          []string // patterns with **, absolute or below the directory of the server
	Create, Change bool     // which changes count
	Debounce       time.Duration
	Each           bool // a run for each file; else one for all that are quiet at the same time
	Missed         bool // what changed while no server watched starts a run, too
}

func readWatch(m *yamldoc.Map) *Watch {
	w := &Watch{Create: true, Change: true, Debounce: 2 * time.Second, Each: true, Missed: true}
	m.Only("paths", "on", "debounce", "each", "missed")
	m.Require("paths")
	m.Strs("paths", &w.Paths)
	for _, n := range m.List("paths") {
		text, ok := n.Str()
		if ok && (strings.TrimSpace(text) == "" || !doublestar.ValidatePattern(filepath.ToSlash(text))) {
			n.Errorf("not a pattern of files").Hint = "write one such as in/**/*.pdf"
		}
	}
	if m.Has("on") {
		w.Create, w.Change = false, false
		for _, n := range m.List("on") {
			switch text, _ := n.Str(); text {
			case "create":
				w.Create = true
			case "change":
				w.Change = true
			default:
				n.Errorf("unknown change %q", text).Hint = yamldoc.OneOf(text, []string{"create", "change"})
			}
		}
	}
	if m.Span("debounce", &w.Debounce) && (w.Debounce < 100*time.Millisecond || w.Debounce > time.Hour) {
		m.Get("debounce").Errorf("a span from 100ms to 1h is expected")
	}
	each, missed := "file", "once"
	yamldoc.Choice(m, "each", &each, "file", "batch")
	yamldoc.Choice(m, "missed", &missed, "once", "skip")
	w.Each, w.Missed = each == "file", missed == "once"
	return w
}
