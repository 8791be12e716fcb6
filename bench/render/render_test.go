// Package render measures how fast Markdown is rendered as it arrives. The window has 120
// columns, and text is wrapped at its edge.
package render

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"loki/internal/frontend/render"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
	"loki/internal/llm/event"
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
	"code_python": "```python\n" + strings.Repeat("@dataclass\nclass Plan(Base):\n    \"\"\"A plan of nodes.\"\"\"\n\n    ids: list[str] = field(default_factory=list)\n\n"+
		"    def apply(self, state: State, results: list[Result]) -> State:\n        # In the order of ids.\n        for i, r in enumerate(results):\n"+
		"            if r.error is not None:\n                raise RuntimeError(f\"node {self.ids[i]!r}: {r.error}\")\n            state = state.updated(r.key, r.value)\n        return state\n\n", 2) + "```\n\n",
	"code_json": "```json\n[\n" + strings.Repeat("  {\"id\": \"plan\", \"type\": \"llm\", \"step\": 3, \"cost\": 0.0125, \"done\": true, \"targets\": [\"review\", null]},\n", 10) + "]\n```\n\n",
	"code_bash": "```bash\n#!/bin/bash\nset -euo pipefail\n" + strings.Repeat("for file in \"$dir\"/*.txt; do\n  # skip what is empty\n  if [ ! -s \"$file\" ]; then continue; fi\n"+
		"  count=$(grep -c 'node' \"$file\" || true)\n  echo \"${file##*/}: $count\" >> \"$HOME/report.txt\"\ndone\n", 4) + "```\n\n",
	"code_typescript": "```typescript\n" + strings.Repeat("// Applies the results in the order of ids.\nexport async function apply(state: State, results: readonly Result[]): Promise<State> {\n"+
		"  for (const [i, r] of results.entries()) {\n    if (r.error !== undefined) {\n      throw new Error(`node ${ids[i]}: ${r.error}`);\n    }\n    state = { ...state, [r.key]: r.value };\n  }\n  return state;\n}\n\n", 3) + "```\n\n",
	"code_yaml": "```yaml\nname: research\nnodes:\n" + strings.Repeat("  plan: # first\n    type: llm\n    instructions: \"Plan the work on {{topic}}.\"\n    temperature: 0.2\n    tools: [fs_read, fs_grep]\n    next: [search, review]\n    prompt: |\n      Write the plan\n      as a list.\n", 5) + "```\n\n",
	"code_sql": "```sql\n" + strings.Repeat("-- What each model cost last month.\nSELECT m.name, COUNT(*) AS calls, SUM(c.cost) AS total\nFROM calls c\nLEFT JOIN models m ON m.id = c.model_id\n"+
		"WHERE c.created_at >= DATE '2026-10-01' AND c.state <> 'failed'\nGROUP BY m.name\nHAVING SUM(c.cost) > 0.5\nORDER BY total DESC\nLIMIT 20;\n\n", 3) + "```\n\n",
	"code_cpp": "```cpp\n#include <vector>\n" + strings.Repeat("// Applies the results in the order of ids.\ntemplate <typename T>\nstd::vector<T> apply(const State& state, const std::vector<Result<T>>& results) {\n"+
		"  std::vector<T> out;\n  for (size_t i = 0; i < results.size(); ++i) {\n    if (!results[i].ok()) throw std::runtime_error(\"node \" + ids[i]);\n    out.push_back(results[i].value);\n  }\n  return out;\n}\n\n", 3) + "```\n\n",
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

// answer draws Markdown as the program does.
type answer struct {
	screen *render.Screen
	answer *render.Answer
}

func newAnswer(w io.Writer, o render.MarkdownOptions) answer {
	screen := render.NewScreen(render.ScreenOptions{Out: w, Terminal: true, Size: size})
	return answer{screen, render.NewAnswer(screen, render.AnswerOptions{Out: w, Terminal: true, Markdown: &o})}
}

func (a answer) write(text string) {
	_ = a.answer.Emit(context.Background(), event.Event{Body: event.Delta{Text: text}})
}

func (a answer) end() { _ = a.answer.Emit(context.Background(), event.Event{Body: event.Reply{}}) }

func (a answer) close() {
	_ = a.answer.Close()
	_ = a.screen.Close()
}

// pauses is a terminal that notes the longest time that nothing was written to it.
type pauses struct {
	last    time.Time
	longest time.Duration
}

func (p *pauses) Write(b []byte) (int, error) {
	now := time.Now()
	p.longest = max(p.longest, now.Sub(p.last))
	p.last = now
	return len(b), nil
}

// BenchmarkFlood is a piece of 2 MB. It reports the longest time without a write to the terminal.
func BenchmarkFlood(b *testing.B) {
	flood := func(name string) string {
		code := texts[name]
		head, body, _ := strings.Cut(strings.TrimSuffix(code, "```\n\n"), "\n")
		return head + "\n" + strings.Repeat(body, (2<<20)/len(body)) + "```\n\n"
	}
	for name, text := range map[string]string{
		"prose": strings.Repeat(texts["prose"], (2<<20)/len(texts["prose"])), "code_plain": flood("code_plain"), "code_go": flood("code_go"), "code_python": flood("code_python"),
		"one_line": "```javascript\n" + strings.Repeat("var a=[1,'x',{b:/re/g}];f(a);", 72<<10) + "\n```\n",
		"unclosed": "```javascript\n" + strings.Repeat("'a \"b `c /* d \\", 128<<10) + "\n```\n",
		"braces":   "```json\n" + strings.Repeat("{\"a\":[", 300<<10) + "\n```\n",
	} {
		b.Run(name, func(b *testing.B) {
			p := &pauses{}
			m := newAnswer(p, options())
			defer m.close()
			b.SetBytes(int64(len(text)))
			shortest := time.Hour
			for b.Loop() {
				p.last, p.longest = time.Now(), 0
				m.write(text)
				m.end()
				shortest = min(shortest, p.longest)
			}
			b.ReportMetric(float64(shortest.Microseconds())/1e3, "ms-pause")
		})
	}
}

// BenchmarkTerminal is all that happens between a model's text and the terminal, with text
// that comes as fast as it is taken, in pieces of 64 bytes.
func BenchmarkTerminal(b *testing.B) {
	for name, source := range texts {
		b.Run(name, func(b *testing.B) {
			m := newAnswer(io.Discard, options())
			defer m.close()
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				for rest := source; rest != ""; {
					n := min(64, len(rest))
					m.write(rest[:n])
					rest = rest[n:]
				}
				if i%1024 == 0 { // the answer keeps what came of a reply
					m.end()
				}
			}
		})
	}
}

// BenchmarkFirstPiece is the time from the first piece of an answer to the terminal's first
// byte, everything included that is built once for an answer.
func BenchmarkFirstPiece(b *testing.B) {
	for b.Loop() {
		m := newAnswer(io.Discard, options())
		m.write("Hello **world")
		b.StopTimer()
		m.close()
		b.StartTimer()
	}
}

// BenchmarkPiece is a piece that is drawn at once, in a paragraph of three rows.
func BenchmarkPiece(b *testing.B) {
	now := time.Now()
	o := options()
	o.Now = func() time.Time { now = now.Add(time.Second); return now }
	m := newAnswer(io.Discard, o)
	defer m.close()
	m.write(strings.Repeat("The **scheduler** keeps a list. ", 10))
	n := 0
	for b.Loop() {
		if n++; n%20 == 0 {
			m.write("\n\n" + strings.Repeat("The **scheduler** keeps a list. ", 10))
		}
		m.write("token ")
	}
}

// TestMemory renders 50 MB and looks at what is live in between.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	m := newAnswer(io.Discard, options())
	defer m.close()
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
			m.write(doc)
			sent += len(doc)
		}
		m.end()
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
