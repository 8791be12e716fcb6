//go:build unix

package render_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
	"loki/internal/llm/event"
)

// playScript is what runs in the terminal: an answer that arrives in pieces of seven
// bytes, each drawn at once. At a line of "~~~ window" and a number of columns the test
// makes the window so wide, and the answer goes on when the window says that it is.
func playScript(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	now := time.Now()
	o := render.MarkdownOptions{
		Size: render.Size(os.Stdout), Theme: theme.Dark, Terminal: render.Capabilities{TrueColor: true, Synchronized: true},
		Wrap: markdown.Auto, WrapCode: os.Getenv("RENDER_TEST_WRAP_CODE") != "",
		Now: func() time.Time { now = now.Add(time.Second); return now },
	}
	screen := render.NewScreen(render.ScreenOptions{Out: os.Stderr, Terminal: true, Color: true, Size: render.Size(os.Stderr)})
	answer := render.NewAnswer(screen, render.AnswerOptions{Out: os.Stdout, Terminal: true, Markdown: &o})
	emit := func(body event.Body) {
		if emitErr := answer.Emit(context.Background(), event.Event{Body: body}); emitErr != nil && err == nil {
			err = emitErr
		}
	}
	emit(event.Started{Model: "m"})
	emit(event.Reasoning{Text: "Thinking about it.\n"})
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	for i, part := range strings.Split(string(data), "\n~~~ window ") {
		if i > 0 {
			columns, rest, _ := strings.Cut(part, "\n")
			part = rest
			if out, err := exec.CommandContext(context.Background(), "tmux", "wait-for", "-S", "at"+columns).CombinedOutput(); err != nil {
				return fmt.Errorf("tmux: %s: %w", out, err)
			}
			for {
				if now, _ := o.Size(); strconv.Itoa(now) == columns {
					break
				}
				<-resized
			}
		}
		for part != "" {
			n := min(7, len(part))
			emit(event.Delta{Text: part[:n]})
			part = part[n:]
		}
	}
	emit(event.Finished{Output: "-"})
	if closeErr := answer.Close(); err == nil {
		err = closeErr
	}
	screen.Close()
	return err
}

// playAgents is what runs in the terminal: agents at work, at the pace of real ones or, with
// "stop", at once up to two places where the test looks.
func playAgents(pace string) {
	screen := render.NewScreen(render.ScreenOptions{Out: os.Stderr, Terminal: true, Color: os.Getenv("NO_COLOR") == "", Size: render.Size(os.Stderr)})
	narrator := render.NewNarrator(screen, render.NarratorOptions{})
	answer := render.NewAnswer(screen, render.AnswerOptions{Out: os.Stdout, Terminal: true})
	emitters := event.Tee(narrator, answer)
	acts := research(20)
	for i, a := range acts {
		if pace != "stop" {
			time.Sleep(a.after)
		} else if i == len(acts)/3 || i == len(acts)/2 {
			time.Sleep(500 * time.Millisecond) // the live area is drawn
			place := "1"
			if i == len(acts)/2 {
				place = "2"
			}
			for _, args := range [][]string{{"-S", "at" + place}, {"go" + place}} {
				if err := exec.CommandContext(context.Background(), "tmux", append([]string{"wait-for"}, args...)...).Run(); err != nil {
					os.Stdout.WriteString(err.Error() + "\n")
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		_ = emitters.Emit(context.Background(), event.Event{Time: time.Now(), Source: a.src, Body: a.body})
	}
	answer.Close()
	screen.Close()
}

// TestTmuxAgents shows twenty agents in a real terminal whose window changes, and looks at what
// is on it.
func TestTmuxAgents(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "tmux") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	x := &tmux{t: t, socket: filepath.Join(dir, "s")}
	x.run("new-session", "-d", "-x", "80", "-y", "24", "sleep 60")
	defer x.run("kill-server")
	x.run("set-option", "-g", "status", "off")
	x.run("new-window", "-k", "-t", ":0", "RENDER_TEST_AGENTS=stop '"+os.Args[0]+"'; tmux wait-for -S done; exec cat")
	for place, size := range [][2]string{{"100", "50"}, {"120", "30"}} { // tmux breaks lines a while before it says that it is narrower
		n := strconv.Itoa(place + 1)
		x.run("wait-for", "at"+n)
		before := x.run("capture-pane", "-p", "-S", "-")
		if strings.Count(before, "waits for 20 agents") != 1 || strings.Count(before, "20 running") != 1 {
			t.Errorf("at place %s the tree is not there once:\n%s", n, before)
		}
		x.run("resize-window", "-x", size[0], "-y", size[1])
		x.run("wait-for", "-S", "go"+n)
	}
	x.run("wait-for", "done")
	after := x.run("capture-pane", "-p", "-S", "-")
	if strings.ContainsAny(after, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") || strings.Contains(after, "running") {
		t.Errorf("of the tree stays\n%s", after)
	}
	if strings.Count(after, " done in ") != 20 || strings.Count(after, " FAILED after ") != 1 || !strings.Contains(after, "in two ways.") {
		t.Errorf("the summary is\n%s", after)
	}
}

// tmux is a server with one window.
type tmux struct {
	t      *testing.T
	socket string
}

func (x *tmux) run(args ...string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", x.socket, "-u", "-f", os.DevNull}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// capture returns what the terminal shows and has shown, with its colors.
func (x *tmux) capture() string {
	out := x.run("capture-pane", "-p", "-e", "-N", "-S", "-")
	var b strings.Builder
	for line := range strings.Lines(out) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return strings.ReplaceAll(strings.TrimRight(b.String(), "\n")+"\n", "\x1b", "ESC")
}

// TestTmux shows documents in a real terminal, at several widths and while its window
// changes, and compares what it shows with golden files.
func TestTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, tt := range []struct {
		name, doc     string
		columns, rows int
		resize        []int // columns, in the order of the document
		wrapCode      bool
	}{
		{name: "tour_40", doc: "markdown/testdata/tour.md", columns: 40, rows: 12, wrapCode: true},
		{name: "tour_80", doc: "markdown/testdata/tour.md", columns: 80, rows: 24},
		{name: "tour_120", doc: "markdown/testdata/tour.md", columns: 120, rows: 50},
		{name: "table_80", doc: "markdown/testdata/table.md", columns: 80, rows: 10},
		{name: "code_40", doc: "markdown/testdata/code.md", columns: 40, rows: 8},
		{name: "wide_40", doc: "markdown/testdata/wide.md", columns: 40, rows: 24},
		{name: "resize", doc: "testdata/tmux/resize.md", columns: 80, rows: 24, resize: []int{50, 100, 40}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "tmux") // the name of a socket must be short
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			doc, err := filepath.Abs(tt.doc)
			if err != nil {
				t.Fatal(err)
			}
			x := &tmux{t: t, socket: filepath.Join(dir, "s")}
			command := "RENDER_TEST_SCRIPT='" + doc + "' "
			if tt.wrapCode {
				command += "RENDER_TEST_WRAP_CODE=1 "
			}
			command += "'" + os.Args[0] + "'; tmux wait-for -S done; exec cat"
			x.run("new-session", "-d", "-x", strconv.Itoa(tt.columns), "-y", strconv.Itoa(tt.rows), "sleep 60")
			defer x.run("kill-server")
			x.run("set-option", "-g", "history-limit", "5000")
			x.run("set-option", "-g", "default-terminal", "tmux-256color")
			x.run("set-option", "-ga", "terminal-overrides", ",*:Tc")
			x.run("set-option", "-g", "status", "off")
			x.run("new-window", "-k", "-t", ":0", command)
			for _, columns := range tt.resize {
				x.run("wait-for", "at"+strconv.Itoa(columns))
				x.run("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(tt.rows))
			}
			x.run("wait-for", "done")
			golden(t, "tmux/"+tt.name, x.capture())
		})
	}
}
