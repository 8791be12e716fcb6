//go:build unix

package flow_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds the wait for a screen. It is for a program that hangs, and not a measure of how fast one is.
const patience = 60 * time.Second

// settings are those of the tmux servers: keys reach the program at once and in their long forms, and what the
// program copies lands in a buffer.
const settings = `set -g status off
set -s escape-time 0
set -s set-clipboard on
set -s extended-keys always
set -g default-terminal tmux-256color
set -ga terminal-overrides ",*:Tc"
set -g history-limit 5000
set -g remain-on-exit on
`

// terminal is a window of a tmux server of its own. A control client is attached to the server: it executes
// commands without starting a process for each, and is notified of each output of the program, so that
// waiting for a screen needs no clock.
type terminal struct {
	t       *testing.T
	in      io.WriteCloser
	replies chan reply
	changed chan struct{} // holds one element if the screen has changed since it was looked at
}

// reply is what tmux answers to a command.
type reply struct {
	text   string
	failed bool
}

// newTerminal runs a program, with the arguments and in the directory and environment given, in a window of that size. The server is gone
// when the test ends.
func newTerminal(t *testing.T, columns, rows int, dir string, environ []string, argv ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	home, err := os.MkdirTemp("", "flow") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	conf := filepath.Join(home, "conf")
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	command := ""
	for _, word := range argv {
		command += " " + shellQuote(word)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "tmux", "-S", filepath.Join(home, "s"), "-u", "-f", conf, "-C", "new-session",
		"-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-c", dir, "exec"+command)
	cmd.Env = append(environ, "TMUX=", "LC_ALL=C.UTF-8")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, in: in, replies: make(chan reply, 1), changed: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() { // ends when the server does
		defer close(read)
		defer close(x.replies)
		x.read(out)
	}()
	if _, ok := <-x.replies; !ok { // to new-session
		t.Fatal("tmux does not start")
	}
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "kill-server\n") // it may have ended
		in.Close()
		<-read
		cancel()
		_ = cmd.Wait() // killed, as like as not
	})
	return x
}

// read takes in what tmux writes until it ends.
func (x *terminal) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	var text []string
	begun := ""
	for lines.Scan() {
		line := lines.Text()
		kind, rest, _ := strings.Cut(line, " ")
		switch {
		case begun != "" && (kind == "%end" || kind == "%error") && rest == begun:
			if len(x.replies) == 0 { // the last one, to kill-server, is not waited for
				x.replies <- reply{strings.Join(text, "\n"), kind == "%error"}
			}
			begun, text = "", nil
		case begun != "":
			text = append(text, line)
		case kind == "%begin":
			begun = rest
		default: // %output, or another notification
			select {
			case x.changed <- struct{}{}:
			default:
			}
		}
	}
}

// run executes a tmux command, as it is written in a configuration, and returns what it prints.
func (x *terminal) run(command string) string {
	x.t.Helper()
	_, err := io.WriteString(x.in, command+"\n")
	r, ok := <-x.replies
	if err != nil || !ok || r.failed {
		x.t.Fatalf("tmux %s: %v: %s", command, err, r.text)
	}
	return r.text
}

// keys presses keys by their names in tmux: Enter, C-c, Tab, BTab, M-b.
func (x *terminal) keys(names ...string) {
	x.t.Helper()
	x.run("send-keys " + strings.Join(names, " "))
}

// typed types a text of one line.
func (x *terminal) typed(text string) {
	x.t.Helper()
	x.run("send-keys -l -- " + shellQuote(text))
}

// paste inserts a text, of lines perhaps, as terminals paste: in brackets if the program asked for them.
func (x *terminal) paste(text string) {
	x.t.Helper()
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "\n", `\n`).Replace(text)
	x.run(`set-buffer "` + quoted + `"`)
	x.run("paste-buffer -p -d")
}

// screen returns what the window shows.
func (x *terminal) screen() string {
	x.t.Helper()
	return trimmed(x.run("capture-pane -p"))
}

// all returns what the window shows and has shown.
func (x *terminal) all() string {
	x.t.Helper()
	return trimmed(x.run("capture-pane -p -S -"))
}

// trimmed returns a screen without the blanks behind its lines and the empty lines at its end.
func trimmed(screen string) string {
	lines := strings.Split(screen, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// wait waits until the window, with what it has shown, is as wanted. what is for the message if it is not within [patience].
func (x *terminal) wait(what string, wanted func(all string) bool) {
	x.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		all := x.all()
		if wanted(all) {
			return
		}
		select {
		case <-x.changed:
		case <-timer.C:
			x.t.Fatalf("no %s within %v on the screen\n%s", what, patience, all)
		}
	}
}

// shellQuote quotes a word for a shell, and for tmux.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
