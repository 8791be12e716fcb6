package render_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hinshun/vt10x"

	"loki/internal/frontend/render"
	"loki/internal/llm/event"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// terminal is a terminal emulator that remembers the bytes it was sent.
type terminal struct {
	mu            sync.Mutex
	emulator      vt10x.Terminal
	columns, rows int
	sent          bytes.Buffer
}

func newTerminal(columns, rows int) *terminal {
	return &terminal{emulator: vt10x.New(vt10x.WithSize(columns, rows)), columns: columns, rows: rows}
}

// Write shows p as a terminal behind a tty driver does, which turns a line feed into
// carriage return and line feed.
func (v *terminal) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sent.Write(p)
	if _, err := v.emulator.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (v *terminal) size() (columns, rows int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.columns, v.rows
}

// screen returns what is on the screen, without blanks at the ends of lines and
// without the empty lines below.
func (v *terminal) screen() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	lines := strings.Split(v.emulator.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func (v *terminal) raw() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sent.String()
}

// cursor returns the column and row of the cursor, from 0.
func (v *terminal) cursor() (x, y int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.emulator.Cursor()
	return c.X, c.Y
}

// stage is where a scenario is played: in a bubble of its own time, which begins at
// midnight of 1 January 2000.
type stage struct {
	t        *testing.T
	screen   *render.Screen
	emitters event.Emitter
	out      bytes.Buffer // standard output that is not a terminal
	vt       *terminal    // nil off terminal
	plain    bytes.Buffer // what the screen shows off terminal
	shots    strings.Builder
	run      event.Source
}

// setup says what a scenario is played on.
type setup struct {
	terminal      bool
	color         bool
	columns, rows int // of the terminal; 0 means 100 by 40
	narrator      render.NarratorOptions
	answer        bool // an Answer writes to standard output
	outTerminal   bool // which is the terminal
	answerQuiet   bool
	markdown      *render.MarkdownOptions // how the answer is drawn
	sources       *render.SourceOptions
}

// play runs a scenario and closes the screen.
func play(t *testing.T, o setup, scenario func(*stage)) *stage {
	t.Helper()
	s := &stage{run: event.Source{Agent: "demo"}}
	synctest.Test(t, func(t *testing.T) {
		s.t = t
		opts := render.ScreenOptions{Out: &s.plain, Terminal: o.terminal, Color: o.color}
		if o.terminal {
			if o.columns == 0 {
				o.columns, o.rows = 100, 40
			}
			s.vt = newTerminal(o.columns, o.rows)
			opts.Out, opts.Size = s.vt, s.vt.size
		}
		s.screen = render.NewScreen(opts)
		o.narrator.Location = time.UTC
		s.emitters = render.NewNarrator(s.screen, o.narrator)
		if o.answer {
			ao := render.AnswerOptions{Out: &s.out, Terminal: o.outTerminal, Quiet: o.answerQuiet, Sources: o.sources}
			if o.outTerminal {
				ao.Out = s.vt
			}
			if o.markdown != nil {
				o.markdown.Size = s.vt.size
				ao.Markdown = o.markdown
			}
			answer := render.NewAnswer(s.screen, ao)
			defer func() {
				if err := answer.Close(); err != nil {
					t.Error(err)
				}
			}()
			s.emitters = event.Tee(s.emitters, answer)
		}
		scenario(s)
		if err := s.screen.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// emit emits an event of the run itself.
func (s *stage) emit(body event.Body) { s.at(s.run, body) }

// node emits an event of a node.
func (s *stage) node(id string, body event.Body) {
	src := s.run
	src.Node = id
	s.at(src, body)
}

func (s *stage) at(src event.Source, body event.Body) {
	s.t.Helper()
	if err := s.emitters.Emit(s.t.Context(), event.Event{Time: time.Now(), Source: src, Body: body}); err != nil {
		s.t.Error(err)
	}
}

// wait lets time pass, and the live area be drawn.
func (s *stage) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// shot keeps what is on the screen now, if there is one.
func (s *stage) shot(label string) {
	if s.vt != nil {
		s.shots.WriteString("-- " + label + " --\n" + s.vt.screen())
	}
}

// document is an answer that is drawn as Markdown on a terminal of its own.
type document struct {
	screen *render.Screen
	answer *render.Answer
}

func newDocument(w io.Writer, o render.MarkdownOptions) *document {
	screen := render.NewScreen(render.ScreenOptions{Out: io.Discard})
	return &document{screen, render.NewAnswer(screen, render.AnswerOptions{Out: w, Terminal: true, Markdown: &o})}
}

// write adds a piece of text.
func (d *document) write(text string) error {
	return d.answer.Emit(context.Background(), event.Event{Body: event.Delta{Text: text}})
}

// end ends the text; what follows is another one.
func (d *document) end() error {
	return d.answer.Emit(context.Background(), event.Event{Body: event.Reply{}})
}

func (d *document) close() error { return errors.Join(d.answer.Close(), d.screen.Close()) }
