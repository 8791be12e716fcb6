package render_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/llm/event"
)

// begin starts nodes of one super-step.
func (s *stage) begin(ids ...string) {
	for _, id := range ids {
		s.node(id, event.NodeStarted{NodeType: "llm", Visit: 1, Parallel: len(ids) > 1})
	}
}

func ids(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node%02d", i)
	}
	return names
}

// TestLiveAreaFolds has more nodes at work than fit.
func TestLiveAreaFolds(t *testing.T) {
	for _, tt := range []struct {
		name          string
		columns, rows int
		nodes         int
	}{
		{name: "tall", columns: 40, rows: 20, nodes: 30},
		{name: "flat", columns: 40, rows: 3, nodes: 5},
		{name: "narrow", columns: 9, rows: 12, nodes: 8},
		{name: "tiny", columns: 3, rows: 1, nodes: 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, setup{terminal: true, columns: tt.columns, rows: tt.rows}, func(s *stage) {
				s.begin(ids(tt.nodes)...)
				s.wait(200 * ms)
				s.shot("all at work")
				for _, id := range ids(tt.nodes)[:tt.nodes-2] {
					s.node(id, event.NodeFinished{NodeType: "llm", Duration: ms, Parallel: true})
				}
				s.wait(100 * ms)
				s.shot("two at work")
			})
			golden(t, "screen/fold_"+tt.name, s.shots.String())
			if strings.ContainsAny(s.vt.screen(), "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏+") {
				t.Errorf("after the end something is still live:\n%s", s.vt.screen())
			}
		})
	}
}

// TestLiveAreaOfResumedRun: what was at work in a process that is gone is not live once the run goes on.
func TestLiveAreaOfResumedRun(t *testing.T) {
	play(t, setup{terminal: true, columns: 60, rows: 20}, func(s *stage) {
		s.begin("one")
		s.wait(200 * ms)
		s.emit(event.Started{Graph: "slow", Node: "one", Resumed: true})
		s.begin("one")
		s.wait(200 * ms)
		if n := strings.Count(s.vt.screen(), "one (llm) 0"); n != 1 {
			t.Errorf("%d nodes are live:\n%s", n, s.vt.screen())
		}
	})
}

// TestLiveLinesFit checks the width of every live line: nothing may wrap, or the next
// drawing would begin in the wrong row.
func TestLiveLinesFit(t *testing.T) {
	wide := strings.Repeat("图表", 60) + strings.Repeat("👩‍👩‍👧", 10) + "é́"
	for columns := 4; columns < 130; columns += 7 {
		s := play(t, setup{terminal: true, columns: columns, rows: 10}, func(s *stage) {
			s.begin(wide, "b")
			s.node("b", event.MapProgress{Done: 3, Total: 70000})
			s.node("b", event.ToolCall{Name: wide})
			s.wait(300 * ms)
		})
		seen := 0
		for line := range strings.Lines(escapes.ReplaceAllString(s.vt.raw(), "")) {
			line = strings.Trim(line, "\r\n")
			if line == "" || !strings.Contains("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", string([]rune(line)[:1])) {
				continue
			}
			seen++
			if w := displayed(line); w > columns-1 {
				t.Fatalf("at %d columns a live line takes %d: %q", columns, w, line)
			}
		}
		if seen < 4 {
			t.Errorf("at %d columns only %d live lines were drawn", columns, seen)
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// displayed is an independent count of columns for the characters of these tests.
func displayed(line string) int {
	w := 0
	for _, r := range line {
		switch {
		case r == 0x200d || r >= 0x300 && r < 0x370: // joiners and marks
		case r >= 0x1100 && r < 0x2000, r >= 0x3000 && r < 0xff00, r >= 0x1f000:
			w += 2
		default:
			w++
		}
	}
	return w
}

// TestResize makes the terminal narrower while live lines stand on it. The emulator does
// not break lines anew as terminals do, so what is checked is how far the cursor goes up.
func TestResize(t *testing.T) {
	play(t, setup{terminal: true, columns: 60, rows: 20}, func(s *stage) {
		s.begin("a-node-with-quite-a-long-name", "b")
		s.wait(200 * ms)
		s.vt.mu.Lock()
		s.vt.columns = 20 // the first line, of 44 columns, now takes three rows
		s.vt.sent.Reset()
		s.vt.mu.Unlock()
		s.wait(100 * ms)
		if got := s.vt.raw(); !strings.HasPrefix(got, "\r\x1b[4A\x1b[K\n\x1b[J\x1b[A") {
			t.Errorf("after the resize the live area is cleared with %q", got)
		}
		s.vt.mu.Lock()
		s.vt.sent.Reset()
		s.vt.mu.Unlock()
		s.wait(100 * ms)
		if got := s.vt.raw(); !strings.HasPrefix(got, "\r\x1b[2A") {
			t.Errorf("the next drawing begins with %q", got)
		}
	})
}

func TestPause(t *testing.T) {
	s := play(t, setup{terminal: true}, func(s *stage) {
		s.begin("a", "b")
		s.wait(200 * ms)
		s.screen.Pause()
		s.screen.Pause()
		s.shot("paused")
		before := s.vt.raw()
		s.wait(time.Second)
		s.node("a", event.NodeFinished{NodeType: "llm", Duration: time.Second, Parallel: true})
		s.screen.Warn("held back")
		s.screen.Resume()
		s.wait(time.Second)
		if got := s.vt.raw(); got != before {
			t.Errorf("while a human is asked, the terminal is sent %q", strings.TrimPrefix(got, before))
		}
		s.screen.Resume()
		s.shot("resumed")
	})
	golden(t, "screen/pause", s.shots.String())
}

func TestPauseOffTerminal(t *testing.T) {
	play(t, setup{}, func(s *stage) {
		s.screen.Pause()
		s.screen.Warn("at once")
		if got := s.plain.String(); got != "warning: at once\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestCloseWhilePaused loses nothing.
func TestCloseWhilePaused(t *testing.T) {
	s := play(t, setup{terminal: true}, func(s *stage) {
		s.begin("a")
		s.wait(200 * ms)
		s.screen.Pause()
		s.screen.Warn("held back")
	})
	if got, want := s.vt.screen(), "▸ 00:00:00 a (llm) start\nwarning: held back\n"; got != want {
		t.Errorf("on the screen stays\n%s", got)
	}
}

func TestWrite(t *testing.T) {
	s := play(t, setup{terminal: true}, func(s *stage) {
		s.begin("a")
		s.wait(200 * ms)
		log := slog.New(slog.NewTextHandler(s.screen, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		log.Info("hello")
		for _, piece := range []string{"one\ntw", "o\x1b[2J\n", "\n", "incomplete"} {
			if n, err := s.screen.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Errorf("Write(%q) = %d, %v", piece, n, err)
			}
		}
		s.shot("before the end")
	})
	golden(t, "screen/write", s.shots.String()+"-- closed --\n"+s.vt.screen())
}

func TestWriteOffTerminalIsVerbatim(t *testing.T) {
	var out bytes.Buffer
	s := render.NewScreen(render.ScreenOptions{Out: &out})
	for _, piece := range []string{"\x1b[31mred\x1b[0m\n", "rest"} {
		if _, err := s.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "\x1b[31mred\x1b[0m\nrest\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestScreenRests checks that the goroutine ends when nothing runs, and starts again: a
// bubble that still has one at its end panics.
func TestScreenRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vt := newTerminal(80, 24)
		n := render.NewNarrator(render.NewScreen(render.ScreenOptions{Out: vt, Terminal: true, Size: vt.size}), render.NarratorOptions{})
		for range 2 {
			for _, body := range []event.Body{event.NodeStarted{NodeType: "llm"}, event.NodeFinished{NodeType: "llm", End: true}} {
				if err := n.Emit(t.Context(), event.Event{Source: event.Source{Node: "a"}, Body: body}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		}
		if got := strings.Count(vt.raw(), "⠼"); got != 2 {
			t.Errorf("the spinner turned in %d of 2 runs", got)
		}
	})
}

func TestCloseTwice(t *testing.T) {
	vt := newTerminal(80, 24)
	s := render.NewScreen(render.ScreenOptions{Out: vt, Terminal: true, Size: vt.size})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s.Warn("after the end")
	if got := vt.screen(); got != "warning: after the end\n" {
		t.Errorf("after Close the screen shows %q", got)
	}
}

// TestScreenSizeUnknown falls back to 80 by 24.
func TestScreenSizeUnknown(t *testing.T) {
	for name, size := range map[string]func() (int, int){"nil": nil, "zero": func() (int, int) { return 0, 0 }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vt := newTerminal(80, 24)
				s := render.NewScreen(render.ScreenOptions{Out: vt, Terminal: true, Size: size})
				n := render.NewNarrator(s, render.NarratorOptions{})
				for _, id := range ids(30) {
					if err := n.Emit(t.Context(), event.Event{Source: event.Source{Node: id}, Body: event.NodeStarted{NodeType: "llm"}}); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(200 * ms)
				synctest.Wait()
				if !strings.Contains(vt.screen(), "+19 more running") {
					t.Errorf("not half of 24 rows are live:\n%s", vt.screen())
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestScreenConcurrently is for the race detector: events, other writers, pauses and the
// spinner at once, each line whole.
func TestScreenConcurrently(t *testing.T) {
	var out lockedBuffer
	s := render.NewScreen(render.ScreenOptions{Out: &out, Terminal: true})
	scope := event.NewScope(render.NewNarrator(s, render.NarratorOptions{}), event.Source{}, nil)
	var wg sync.WaitGroup
	for _, id := range ids(4) {
		wg.Go(func() {
			node := scope.With(func(src *event.Source) { src.Node = id })
			for range 20 {
				for _, body := range []event.Body{event.NodeStarted{NodeType: "llm"}, event.MapProgress{Done: 1, Total: 2}, event.NodeFinished{NodeType: "llm"}} {
					if err := node.Emit(t.Context(), body); err != nil {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				s.Pause()
				s.Warn(id)
				s.Resume()
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "warning: node0"); got != 80 {
		t.Errorf("%d of 80 warnings are there", got)
	}
	if got := strings.Count(out.String(), "(llm) done in 0ms\n"); got != 80 {
		t.Errorf("%d of 80 nodes are shown as done", got)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
