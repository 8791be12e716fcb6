package render_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
)

// documents returns the Markdown documents of the package that renders them.
func documents(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("markdown/testdata/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	var docs []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(data))
	}
	return docs
}

// looks are the options that documents are drawn with.
func looks() []render.MarkdownOptions {
	return []render.MarkdownOptions{
		{Theme: theme.Dark, Wrap: markdown.Auto, Terminal: render.Capabilities{TrueColor: true, Hyperlinks: true, Synchronized: true}},
		{Theme: theme.Light, Wrap: 30, WrapCode: true},
		{Theme: theme.Dark},
		{Wrap: markdown.Auto},
	}
}

// whole returns what a document looks like that is drawn at once on an endless screen.
func whole(t testing.TB, o render.MarkdownOptions, doc string, columns int) string {
	t.Helper()
	v := newScrolling(columns, 1<<20)
	o.Size = v.size
	m := newDocument(v, o)
	if err := m.write(doc); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.close(), m.close()); err != nil {
		t.Fatal(err)
	}
	return v.text()
}

// stream draws a document that arrives in random pieces.
func stream(t testing.TB, o render.MarkdownOptions, doc string, v *scrolling, rng *rand.Rand) {
	t.Helper()
	o.Size = v.size
	now, clock := time.Now(), rand.New(rand.NewPCG(rng.Uint64(), 1)) // used with the lock of the screen held
	o.Now = func() time.Time {                                       // half of the pieces are late enough to be drawn
		now = now.Add(time.Duration(clock.IntN(80)) * time.Millisecond)
		return now
	}
	m := newDocument(v, o)
	for rest := []byte(doc); len(rest) > 0; {
		n := min(1+rng.IntN(24), len(rest))
		if err := m.write(string(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
}

// TestMarkdownOnSmallScreens checks that what remains on the terminal and above is the
// whole document, once, however it came and however small the screen is.
func TestMarkdownOnSmallScreens(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, doc := range documents(t) {
		for _, o := range looks() {
			for _, size := range [][2]int{{40, 5}, {80, 24}, {33, 12}, {120, 200}} {
				v := newScrolling(size[0], size[1])
				stream(t, o, doc, v, rng)
				if got, want := v.text(), whole(t, o, doc, size[0]); got != want {
					t.Fatalf("%dx%d, wrap %d: got\n%s\nwant\n%s", size[0], size[1], o.Wrap, got, want)
				}
				if v.unknown != "" {
					t.Errorf("the terminal was sent %s", v.unknown)
				}
			}
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for i, doc := range documents(f) {
		f.Add(doc, uint64(i), 40, 6)
	}
	f.Add("a **b\n\n|x|y|\n|-|-|\n|1|漢字漢字漢字|\n", uint64(1), 9, 3)
	f.Fuzz(func(t *testing.T, doc string, seed uint64, columns, rows int) {
		columns, rows = 4+max(columns, -columns)&127, 2+max(rows, -rows)&63
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, o := range looks() {
			v := newScrolling(columns, rows)
			stream(t, o, doc, v, rng)
			if got, want := v.text(), whole(t, o, doc, columns); got != want {
				t.Fatalf("wrap %d: got\n%q\nwant\n%q", o.Wrap, got, want)
			}
			if v.unknown != "" {
				t.Errorf("the terminal was sent %s", v.unknown)
			}
		}
	})
}

// TestMarkdownBatches checks when text is drawn.
func TestMarkdownBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newScrolling(40, 10)
		m := newDocument(v, render.MarkdownOptions{Size: v.size, Theme: theme.Dark})
		write := func(text string) {
			t.Helper()
			if err := m.write(text); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(text string, writes int) {
			t.Helper()
			synctest.Wait()
			if got := strings.TrimSuffix(v.text(), "\n"); got != text || v.written() != writes {
				t.Errorf("%q after %d writes, want %q after %d", got, v.written(), text, writes)
			}
		}
		write("The")
		expect("The", 1)
		write(" first")
		write(" piece")
		expect("The", 1)
		time.Sleep(49 * time.Millisecond)
		expect("The", 1)
		time.Sleep(time.Millisecond)
		expect("The first piece", 2)
		time.Sleep(time.Second)
		write(" at")
		expect("The first piece at", 3)
		write(strings.Repeat("\nmore", 20_000))
		if v.written() != 4 {
			t.Errorf("%d writes after a flood, want 4", v.written())
		}
		if err := m.end(); err != nil {
			t.Fatal(err)
		}
		writes := v.written()
		write("x")
		synctest.Wait()
		if v.written() != writes+1 {
			t.Error("the first piece of the second text has to wait")
		}
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// warner is a terminal that has the screen show a warning when it is first written to.
type warner struct {
	warn func()
	sent bytes.Buffer
	once sync.Once
}

func (w *warner) Write(p []byte) (int, error) {
	w.once.Do(w.warn)
	return w.sent.Write(p)
}

// TestMarkdownLargePiece draws a large piece in slices, between which a warning is shown. On a busy machine what shows it may not
// run before the end, so that it is tried several times.
func TestMarkdownLargePiece(t *testing.T) {
	code := "```go\n" + strings.Repeat("\tx := \"a\" + f(1) // one\n", 30_000) + "```\n"
	for range 30 {
		if before := drawWithWarning(t, code); strings.Contains(before, "careful") && strings.Index(before, "careful") < len(before)*9/10 {
			return
		}
	}
	t.Error("the warning was not shown before the end of the code")
}

// drawWithWarning returns what was drawn at the end of a text if a warning is shown from when its drawing begins.
func drawWithWarning(t *testing.T, code string) string {
	var wg sync.WaitGroup
	var screen *render.Screen
	w := &warner{warn: func() { wg.Go(func() { screen.Warn("careful") }) }}
	size := func() (int, int) { return 80, 24 }
	screen = render.NewScreen(render.ScreenOptions{Out: w, Terminal: true, Size: size})
	answer := render.NewAnswer(screen, render.AnswerOptions{Out: w, Terminal: true, Markdown: &render.MarkdownOptions{Size: size, Theme: theme.Dark}})
	d := document{screen, answer}
	if err := d.write(code); err != nil {
		t.Fatal(err)
	}
	if err := d.end(); err != nil {
		t.Fatal(err)
	}
	before := w.sent.String()
	wg.Wait()
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(before, "// one"); n < 30_000 {
		t.Errorf("%d lines of code were shown", n)
	}
	return before
}

// TestMarkdownDrawsLittle checks that rows that do not change are not sent again.
func TestMarkdownDrawsLittle(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	m := newDocument(&out, render.MarkdownOptions{
		Size: func() (int, int) { return 20, 10 }, Theme: theme.Dark, Wrap: markdown.Auto,
		Terminal: render.Capabilities{Synchronized: true},
		Now:      func() time.Time { now = now.Add(time.Second); return now },
	})
	defer m.close()
	for _, step := range []struct{ text, want string }{
		{"one two", "one two"},
		{" three", " three"},
		{" four five", " four\nfive"},
		{" si", " si"},
		{"x **se", "x \x1b[1mse\x1b[0m"},
		{"ven** eight", "\x1b[?2026h\rfive six \x1b[1mseven\x1b[0m eight\x1b[?2026l"},
		{"\n\n", "\n\n"},
		{"nine", "nine"},
	} {
		out.Reset()
		if err := m.write(step.text); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != step.want {
			t.Errorf("after %q: sent %q, want %q", step.text, got, step.want)
		}
	}
}

// TestMarkdownResize makes the window narrower and wider while text arrives. The terminal
// breaks rows that do not fit any more, and joins them again.
func TestMarkdownResize(t *testing.T) {
	doc := documents(t)[0] + strings.Repeat("\nThe **last** paragraph is as long as it takes to fill some rows of the window.", 4)
	rng := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		v := newScrolling(60, 30)
		now := time.Now()
		m := newDocument(v, render.MarkdownOptions{Size: v.size, Theme: theme.Dark, Wrap: markdown.Auto, Now: func() time.Time {
			now = now.Add(time.Second)
			return now
		}})
		for rest := []byte(doc); len(rest) > 0; {
			n := min(1+rng.IntN(40), len(rest))
			if err := m.write(string(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			if rng.IntN(5) == 0 {
				v.resize(30 + rng.IntN(60))
			}
		}
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(strings.Fields(strings.NewReplacer("─", "", "│", "", "┼", "").Replace(v.text())), "")
		want := strings.Join(strings.Fields(strings.NewReplacer("─", "", "│", "", "┼", "").Replace(whole(t, render.MarkdownOptions{Theme: theme.Dark}, doc, 500))), "")
		if got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestMarkdownStops checks that an error of the terminal ends the writing.
func TestMarkdownStops(t *testing.T) {
	for _, o := range looks() {
		m := newDocument(brokenWriter{}, o)
		if err := m.write("text"); err == nil {
			t.Error("the first piece: no error")
		}
		if err := m.write("more"); err == nil {
			t.Error("the second piece: no error")
		}
		if err := m.close(); err == nil {
			t.Error("close: no error")
		}
	}
}

func TestDetectCapabilities(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want render.Capabilities
	}{
		{"nothing", nil, render.Capabilities{}},
		{"xterm", map[string]string{"TERM": "xterm-256color"}, render.Capabilities{}},
		{"true_color", map[string]string{"COLORTERM": "truecolor"}, render.Capabilities{TrueColor: true}},
		{"kitty", map[string]string{"TERM": "xterm-kitty"}, render.Capabilities{Hyperlinks: true, LineAnchors: true, Synchronized: true}},
		{"gnome", map[string]string{"VTE_VERSION": "7600", "COLORTERM": "truecolor"}, render.Capabilities{TrueColor: true, Hyperlinks: true, Synchronized: true}},
		{"old_gnome", map[string]string{"VTE_VERSION": "4800"}, render.Capabilities{}},
		{"kitty_in_tmux", map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/x", "TERM_PROGRAM": "WezTerm"}, render.Capabilities{}},
		{"forced", map[string]string{"FORCE_HYPERLINK": "1"}, render.Capabilities{Hyperlinks: true}},
		{"forbidden", map[string]string{"FORCE_HYPERLINK": "0", "TERM": "foot"}, render.Capabilities{Synchronized: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := render.DetectCapabilities(func(name string) string { return tt.env[name] }); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestMarkdownAsItIs has neither a theme nor a width to wrap at.
func TestMarkdownAsItIs(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"line", "a **b**\tc\n", "a **b**\tc\n"},
		{"no_line_feed", "a", "a\n"},
		{"empty", "", ""},
		{"blank_lines", "\n\na\n\n", "\n\na\n\n"},
		{"control", "\x1b]0;t\x07\r\n", "␛]0;t␇\n"},
		{"half_character", "a\xe6", "a\uFFFD\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			m := newDocument(&out, render.MarkdownOptions{})
			for i := range len(tt.in) {
				if err := m.write(tt.in[i : i+1]); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("got %q, want %q", out.String(), tt.want)
			}
		})
	}
}
