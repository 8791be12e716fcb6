// Package render measures how fast Markdown is rendered as it arrives. The window has 120
// columns, and text is wrapped at its edge.
package render

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"loki/internal/render"
	"loki/internal/render/markdown"
	"loki/internal/render/theme"
)

const columns, rows = 120, 40

// texts are what models answer with, about 1 KB each.
var texts = map[string]string{
	"plain": strings.Repeat("The scheduler keeps a list of tasks that are ready to run, and hands them out in the order of their ids. "+
		"A task that fails is put back, unless it has failed too often.\n"+
		"Nothing here is surprising: the list is short, the locks are held briefly, and every step is written down.\n\n", 4),
	"prose": strings.Repeat("The **scheduler** keeps a list of `tasks` that are *ready* to run, and hands them out in the order of their ids. "+
		"See [the manual](https://example.com/manual) for what happens to a task that fails.\n\n"+
		"- Nothing here is **surprising**: the list is short\n- the locks are held `briefly`\n- and every step is written down\n\n"+
		"## How it works\n\nFirst, the frontier is computed; then, all nodes of it run at once. Their writes are merged in a fixed order.\n\n", 2),
	"chinese":    strings.Repeat("调度器保存一个**准备运行**的任务列表，并按照编号的顺序分发它们。失败的任务会被放回，除非它失败得太频繁。\n\n", 8),
	"table":      "| Name | Type | Meaning |\n|---|---|---|\n" + strings.Repeat("| `timeout` | duration | how long a **step** may take before it is given up |\n", 14) + "\n",
	"code_plain": "```text\n" + strings.Repeat("2026-11-21 03:46:01 INFO  scheduler: node plan finished in 1.4s, next: summarise, review\n", 12) + "```\n\n",
	"code_go": "```go\n" + strings.Repeat("// apply folds the results into the state, in the order of ids.\nfunc (p *Plan) apply(s State, results []Result) (State, error) {\n"+
		"\tfor i, r := range results {\n\t\tif r.Err != nil {\n\t\t\treturn s, fmt.Errorf(\"node %q: %w\", p.ids[i], r.Err)\n\t\t}\n\t\ts = s.With(r.Key, r.Value)\n\t}\n\treturn s, nil\n}\n", 3) + "```\n\n",
}

func renderer() *markdown.Renderer {
	return markdown.New(markdown.Options{Styles: render.Styles(theme.Dark(), true), Wrap: markdown.Auto, Hyperlinks: true})
}

// BenchmarkRenderer renders in pieces of 64 bytes; the time of drawing is not in it.
func BenchmarkRenderer(b *testing.B) {
	for name, source := range texts {
		b.Run(name, func(b *testing.B) {
			r := renderer()
			var out []byte
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := source; rest != ""; {
					n := min(64, len(rest))
					r.Write([]byte(rest[:n]))
					rest = rest[n:]
					out = r.Commit(out[:0], columns)
				}
			}
		})
	}
}

func size() (int, int) { return columns, rows }

func options() render.MarkdownOptions {
	return render.MarkdownOptions{
		Size: size, Theme: theme.Dark, Wrap: markdown.Auto,
		Terminal: render.Capabilities{TrueColor: true, Hyperlinks: true, Synchronized: true},
	}
}

// BenchmarkTerminal is all that happens between a model's text and the terminal, with text
// that comes as fast as it is taken, in pieces of 64 bytes.
func BenchmarkTerminal(b *testing.B) {
	for name, source := range texts {
		b.Run(name, func(b *testing.B) {
			m := render.NewMarkdown(io.Discard, options())
			defer m.Close()
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := source; rest != ""; {
					n := min(64, len(rest))
					_, _ = m.WriteString(rest[:n])
					rest = rest[n:]
				}
			}
		})
	}
}

// BenchmarkFirstPiece is the time from the first piece of an answer to the terminal's first
// byte, everything included that is built once for an answer.
func BenchmarkFirstPiece(b *testing.B) {
	for b.Loop() {
		m := render.NewMarkdown(io.Discard, options())
		_, _ = m.WriteString("Hello **world")
		b.StopTimer()
		_ = m.Close()
		b.StartTimer()
	}
}

// BenchmarkPiece is a piece that is drawn at once, in a paragraph of three rows.
func BenchmarkPiece(b *testing.B) {
	now := time.Now()
	o := options()
	o.Now = func() time.Time { now = now.Add(time.Second); return now }
	m := render.NewMarkdown(io.Discard, o)
	defer m.Close()
	_, _ = m.WriteString(strings.Repeat("The **scheduler** keeps a list. ", 10))
	n := 0
	for b.Loop() {
		if n++; n%20 == 0 {
			_, _ = m.WriteString("\n\n" + strings.Repeat("The **scheduler** keeps a list. ", 10))
		}
		_, _ = m.WriteString("token ")
	}
}

// TestMemory renders 50 MB and looks at what is live in between.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	m := render.NewMarkdown(io.Discard, options())
	defer m.Close()
	doc := texts["prose"] + texts["plain"] + texts["table"] + texts["code_plain"]
	const total = 50 << 20
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	var first, most uint64
	start := time.Now()
	for sent := 0; sent < total; {
		for range 256 {
			_, _ = m.WriteString(doc)
			sent += len(doc)
		}
		if sent%(4<<20) < 256*len(doc) {
			now := heap()
			if first == 0 {
				first = now
			}
			most = max(most, now)
		}
	}
	t.Logf("%.0f MB/s, heap %d KB at first, %d KB at most", total/1e6/time.Since(start).Seconds(), first>>10, most>>10)
	if most > first+4<<20 {
		t.Errorf("the heap grows from %d KB to %d KB", first>>10, most>>10)
	}
}

// BenchmarkGoldmark is what parsing alone costs with the goldmark library, to compare.
func BenchmarkGoldmark(b *testing.B) {
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	for name, source := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				parser.Parse(text.NewReader([]byte(source)))
			}
		})
	}
}
