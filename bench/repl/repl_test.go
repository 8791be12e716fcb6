//go:build linux || darwin

package repl

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/llm/chat"
)

const (
	messages = 10_000
	sessions = 500
	models   = 2_000
	prompt   = "ready> "
)

// program is the file of the program, as make build makes it.
var program string

// TestMain builds the program if there is something to measure.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "loki-bench-repl-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "loki")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "loki/cmd/loki")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// home makes a configuration with as many models as models says, and many sessions.
func home(b *testing.B, models int) string {
	b.Helper()
	dir := b.TempDir()
	var config strings.Builder
	config.WriteString("model: builtin:echo\nleft_prompt: '" + prompt + "'\nright_prompt: ''\nclients:\n- type: builtin\n- type: openai-compatible\n  name: many\n  api_base: http://127.0.0.1:9/v1\n  models:\n  - {name: model, max_input_tokens: 1000}\n")
	for i := range models {
		fmt.Fprintf(&config, "  - {name: model-%d, max_input_tokens: 1000}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	store, err := filestore.New(filestore.Options{Dir: filepath.Join(dir, "sessions"), NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	save := func(name string, turns int) {
		s := store.Temp("", session.Settings{Settings: chat.Settings{Model: "builtin:echo"}})
		for i := range turns {
			turn := session.Turn{User: chat.Text(chat.User, fmt.Sprint("What about ", i, "?")), Reply: []chat.Message{chat.Text(chat.Assistant, strings.Repeat("All work and no play. ", 10))}}
			if err := s.Append(context.Background(), turn); err != nil {
				b.Fatal(err)
			}
		}
		s.ForceSave()
		if err := s.Rename(context.Background(), session.Alias(name)); err != nil {
			b.Fatal(err)
		}
		if err := s.Save(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	save("long", messages/2)
	for i := range sessions {
		save(fmt.Sprint("session-", i), 1)
	}
	return dir
}

// terminal is the program in a terminal.
type terminal struct {
	b    *testing.B
	pty  *os.File
	cmd  *exec.Cmd
	read chan []byte
	seen []byte
}

func start(b *testing.B, dir string, args ...string) *terminal {
	b.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "LOKI_CONFIG_DIR="+dir, "LOKI_STATE_DIR="+filepath.Join(dir, "state"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "TERM=xterm-256color", "LOKI_THEME=dark", "SHELL=/bin/sh")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		b.Skip("no pseudo-terminals here:", err)
	}
	t := &terminal{b: b, pty: f, cmd: cmd, read: make(chan []byte, 64)}
	go func() { // ends with the program
		defer close(t.read)
		for {
			buf := make([]byte, 1<<16)
			n, err := f.Read(buf)
			if n > 0 {
				t.read <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return t
}

// sees waits for text, and forgets what was written before it.
func (t *terminal) sees(text string) {
	t.b.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		if i := bytes.Index(t.seen, []byte(text)); i >= 0 {
			t.seen = t.seen[i+len(text):]
			return
		}
		select {
		case chunk, ok := <-t.read:
			if !ok {
				t.b.Fatalf("the program ended, %q was not seen but %q", text, t.seen)
			}
			t.seen = append(t.seen, chunk...)
		case <-timer.C:
			t.b.Fatalf("%q was not seen but %q", text, t.seen)
		}
	}
}

func (t *terminal) types(keys string) {
	t.b.Helper()
	if _, err := t.pty.WriteString(keys); err != nil {
		t.b.Fatal(err)
	}
}

// stop ends the program.
func (t *terminal) stop() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	for range t.read {
	}
	_ = t.cmd.Wait()
	_ = t.pty.Close()
}

// report gives the best, the median and the 99th percentile.
func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(times[0]), "ms-best")
	b.ReportMetric(ms(times[len(times)/2]), "ms-p50")
	b.ReportMetric(ms(times[len(times)*99/100]), "ms-p99")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCommand is the time of commands that only print, in a pipe.
func BenchmarkCommand(b *testing.B) {
	for _, arg := range []string{"--version", "--help"} {
		b.Run(strings.TrimLeft(arg, "-"), func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				if out, err := exec.Command(program, arg).CombinedOutput(); err != nil {
					b.Fatal(err, string(out))
				}
				times = append(times, time.Since(begin))
			}
			report(b, times)
		})
	}
}

// BenchmarkStart is the time from the start of the process to the prompt: with a small configuration, in the
// long session, and with the models in config.yaml. cpu-ms is the processor time of the program, the end of it included.
func BenchmarkStart(b *testing.B) {
	small, large := home(b, 0), home(b, models)
	for _, c := range []struct {
		name, dir string
		args      []string
	}{{"plain", small, nil}, {"session", small, []string{"-s", "long"}}, {"models", large, nil}} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			var processor time.Duration
			for b.Loop() {
				begin := time.Now()
				t := start(b, c.dir, c.args...)
				t.sees(prompt)
				times = append(times, time.Since(begin))
				t.stop()
				processor += t.cmd.ProcessState.UserTime() + t.cmd.ProcessState.SystemTime()
			}
			report(b, times)
			b.ReportMetric(float64(processor)/float64(time.Millisecond)/float64(len(times)), "cpu-ms")
		})
	}
}

// BenchmarkKey is the time from a key to its character on the screen, in the long session.
func BenchmarkKey(b *testing.B) {
	t := start(b, home(b, models), "-s", "long")
	defer t.stop()
	t.sees(prompt)
	var times []time.Duration
	typed := prompt
	for i := 0; b.Loop(); i++ {
		if i%60 == 59 {
			t.types("\x15") // the line is dropped before it gets too long
			t.sees(prompt + "\x1b[K")
			typed = prompt
		}
		key := string(rune('a' + i%26))
		begin := time.Now()
		t.types(key)
		typed += key
		t.sees(typed)
		times = append(times, time.Since(begin))
	}
	report(b, times)
}

// BenchmarkMenu is the time from Tab to the menu: of all models, in the long session, and of all sessions, outside of one.
func BenchmarkMenu(b *testing.B) {
	for _, c := range []struct {
		name, typed string
		args        []string
	}{{"models", ".model many", []string{"-s", "long"}}, {"sessions", ".session session", nil}} {
		b.Run(c.name, func(b *testing.B) {
			t := start(b, home(b, models), c.args...)
			defer t.stop()
			t.sees(prompt)
			t.types(c.typed)
			t.sees(c.typed[strings.Index(c.typed, " ")+1:]) // the command has a color of its own
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				t.types("\t")
				t.sees("1 of ")
				times = append(times, time.Since(begin))
				t.types("\x1b[27u") // Esc
				t.sees("\x1b[J")
			}
			report(b, times)
		})
	}
}
