package repl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/setup/config"
)

// noticeLimit is how long the command of a notice may take.
const noticeLimit = 10 * time.Second

// over notifies the user that something that took long is over, if they want to know.
func (r *repl) over(took time.Duration, err error) {
	cfg := r.app.Config
	if cfg.Notify != config.NotifyAll || took < time.Duration(cfg.NotifyAfter)*time.Second {
		return
	}
	what := "the answer is there"
	if err != nil {
		what = "stopped by an error"
	}
	r.notify(fmt.Sprintf("%s after %s", what, took.Round(time.Second)))
}

// waits notifies the user of a question once it has waited for a while, or at once if they look elsewhere. It is over when stop
// is called.
func (r *repl) waits() (stop func()) {
	cfg := r.app.Config
	if cfg.Notify == config.NotifyOff {
		return func() {}
	}
	after := time.Duration(cfg.NotifyAfter) * time.Second
	r.mu.Lock()
	if r.away {
		after = 0
	}
	r.mu.Unlock()
	done := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(done)
		r.notify("a question waits for your answer")
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// focus notes whether the terminal has the focus.
func (r *repl) focus(has bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = !has
}

// notify shows a notice by the terminal, and runs the command that the user wants to be run with it.
func (r *repl) notify(text string) {
	_, _ = io.WriteString(r.out, notification(r.display.Getenv, text)) // nothing depends on it
	command := r.app.Config.NotifyCommand
	if command == "" {
		return
	}
	r.notices.Go(func() { // ends with the command, which run waits for
		shell := r.app.Shell()
		_, err := process.Run(context.Background(), process.Command{
			Path: shell.Path, Args: []string{shell.Flag, command}, Timeout: noticeLimit, HasTimeout: true,
			Env: environ.Merge(r.app.Child().Environ, map[string]string{"LOKI_NOTICE": text}),
		})
		if err != nil {
			r.warn("notify_command: " + err.Error())
		}
	})
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
