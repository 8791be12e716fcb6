package repl

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// over has the terminal notify the user that something that took long is over, see notify.
func (r *repl) over(took time.Duration, err error) {
	what := "the answer is there"
	if err != nil {
		what = "stopped by an error"
	}
	r.notify(took, what)
}

// notify has the terminal notify the user of what needs them after something that took long, if they want to know.
func (r *repl) notify(took time.Duration, what string) {
	cfg := r.app.Config
	if !cfg.Notify || took < time.Duration(cfg.NotifyAfter)*time.Second {
		return
	}
	text := fmt.Sprintf("%s after %s", what, took.Round(time.Second))
	_, _ = io.WriteString(r.out, notification(r.display.Getenv, text)) // nothing depends on it
}

// notification returns the sequence by which a terminal shows a notification: OSC 777 for terminals
// that know it from rxvt, OSC 9 for the others, and only the bell where sequences would be shown.
// tmux
// passes it on if its option allow-passthrough is on.
func notification(getenv func(string) string, text string) string {
	const bell = "\a"
	term := getenv("TERM")
	if term == "linux" || term == "dumb" || term == "" {
		return bell
	}
	sequence := "\x1b]9;loki: " + text + bell
	if strings.HasPrefix(term, "rxvt") || strings.HasPrefix(term, "foot") || getenv("VTE_VERSION") != "" {
		sequence = "\x1b]777;notify;loki;" + text + bell
	}
	if getenv("TMUX") != "" {
		sequence = "\x1bPtmux;" + strings.ReplaceAll(sequence, "\x1b", "\x1b\x1b") + "\x1b\\" + bell
	}
	return sequence
}
