package render_test

import (
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

func building(s *stage) {
	usage := chat.Usage{InputTokens: 96_400, Cost: 0.001928}
	s.emit(event.IndexStarted{Base: "notes", Model: "openai:text-embedding-3-small"})
	s.wait(200 * ms)
	s.shot("begins")
	s.emit(event.IndexProgress{Base: "notes", Done: 120, Total: 400, Kept: 80, Chunks: 310, Usage: usage, Elapsed: 3 * time.Second, Left: 7 * time.Second})
	s.wait(200 * ms)
	s.shot("goes on")
	s.emit(event.Warning{Text: "https://example.com/gone: 404 Not Found"})
	s.emit(event.IndexProgress{Base: "notes", Done: 390, Total: 400, Kept: 88, Chunks: 2000, Usage: usage, Elapsed: 9 * time.Second, Left: 65 * time.Second})
	s.wait(200 * ms)
	s.shot("slow")
	s.emit(event.IndexFinished{
		Base: "notes", Files: 398, Chunks: 2104, Added: 310, Kept: 88, Removed: 3, Passed: 12, Failed: 2, Usage: usage, Duration: 9800 * ms,
	})
	s.shot("end")
	s.emit(event.IndexStarted{Base: "\x1b]0;x\x07evil", Model: "builtin:hash", Resumed: true})
	s.emit(event.IndexFinished{Base: "\x1b]0;x\x07evil", Files: 1, Chunks: 1, Kept: 1, Duration: 12 * ms})
	s.emit(event.IndexStarted{Base: "broken", Model: "builtin:hash"})
	s.wait(200 * ms)
	s.shot("another")
	s.emit(event.IndexFinished{Base: "broken", Error: "disk full"})
	s.shot("failed")
}

// TestBuild plays a build off a terminal and on terminals of two widths.
func TestBuild(t *testing.T) {
	off := play(t, setup{}, building)
	golden(t, "knowledge/build", off.plain.String())
	for name, columns := range map[string]int{"80": 80, "40": 40} {
		on := play(t, setup{terminal: true, columns: columns, rows: 24}, building)
		golden(t, "knowledge/build."+name, on.shots.String()+"-- closed --\n"+on.vt.screen())
	}
	if quiet := play(t, setup{narrator: render.NarratorOptions{Quiet: true}}, building).plain.String(); strings.Count(quiet, "\n") != 1 {
		t.Errorf("more than the warning is shown:\n%s", quiet)
	}
}

var found = []event.Passage{
	{Path: "/home/ada/notes/boats.md", Start: 12, End: 40, Score: 0.18},
	{Path: "https://example.com/a%20b", Score: 0.1},
	{Path: "/home/ada/notes/boats.md", Start: 88, End: 88, Score: 0.0912},
	{Path: "https://example.com/a%20b", Score: 0.09},
	{Path: "/srv/day \x1b[31m#1.txt", Start: 1, End: 2, Score: 0.05},
	{Path: "jina:https://example.com", Score: 0.01},
	{Path: "/home/ada/notes/boats.pdf", Page: 3, LastPage: 3, Score: 0.01},
	{Path: "/home/ada/notes/boats.pdf", Page: 3, LastPage: 4, Score: 0.01},
}

func TestSources(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    render.SourceOptions
		want string
	}{
		{"plain", render.SourceOptions{Dir: "/home/ada"}, ` 1. notes/boats.md:12-40
 2. https://example.com/a%20b
 3. notes/boats.md:88
 4. /srv/day #1.txt:1-2
 5. jina:https://example.com
 6. notes/boats.pdf, page 3
 7. notes/boats.pdf, pages 3-4`},
		{"scores", render.SourceOptions{Dir: "/srv/x", Scores: true}, ` 1. /home/ada/notes/boats.md:12-40 (0.180)
 2. https://example.com/a%20b (0.100)
 3. /home/ada/notes/boats.md:88 (0.091)
 4. ../day #1.txt:1-2 (0.050)
 5. jina:https://example.com (0.010)
 6. /home/ada/notes/boats.pdf, page 3 (0.010)
 7. /home/ada/notes/boats.pdf, pages 3-4 (0.010)`},
		{"links", render.SourceOptions{Dir: "/home/ada", Host: "pc", Terminal: render.Capabilities{Hyperlinks: true}}, ` 1. <file://pc/home/ada/notes/boats.md|notes/boats.md:12-40>
 2. <https://example.com/a%20b|https://example.com/a%20b>
 3. <file://pc/home/ada/notes/boats.md|notes/boats.md:88>
 4. <file://pc/srv/day%20%1B%5B31m%231.txt|/srv/day #1.txt:1-2>
 5. jina:https://example.com
 6. <file://pc/home/ada/notes/boats.pdf|notes/boats.pdf, page 3>
 7. <file://pc/home/ada/notes/boats.pdf|notes/boats.pdf, pages 3-4>`},
		{"anchors", render.SourceOptions{Dir: "/home/ada/notes", Terminal: render.Capabilities{Hyperlinks: true, LineAnchors: true}}, ` 1. <file:///home/ada/notes/boats.md#12|boats.md:12-40>
 2. <https://example.com/a%20b|https://example.com/a%20b>
 3. <file:///home/ada/notes/boats.md#88|boats.md:88>
 4. <file:///srv/day%20%1B%5B31m%231.txt#1|/srv/day #1.txt:1-2>
 5. jina:https://example.com
 6. <file:///home/ada/notes/boats.pdf|boats.pdf, page 3>
 7. <file:///home/ada/notes/boats.pdf|boats.pdf, pages 3-4>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(tt.o.Sources(found), "\n")
			got = strings.ReplaceAll(got, "\x1b]8;;\x1b\\", ">")
			got = strings.ReplaceAll(strings.ReplaceAll(got, "\x1b]8;;", "<"), "\x1b\\", "|")
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestSourcesBelowAnswer: the list follows the answer, and one of a question that failed or of a
// node is not there.
func TestSourcesBelowAnswer(t *testing.T) {
	scenario := func(s *stage) {
		s.emit(event.Started{Model: "m"})
		s.emit(event.Retrieved{Base: "notes", Query: "Which boats?", Sources: found})
		s.node("find", event.Retrieved{Base: "other", Query: "Which boats?", Sources: found[1:]})
		s.emit(event.Delta{Text: "The red ones."})
		s.emit(event.Reply{Text: "The red ones."})
		s.emit(event.Finished{Output: "The red ones."})
		s.emit(event.Started{Model: "m"})
		s.emit(event.Finished{Output: "No search."})
		s.emit(event.Started{Model: "m"})
		s.emit(event.Retrieved{Base: "notes", Query: "Which planes?"})
		s.emit(event.Finished{Output: "None."})
		s.emit(event.Started{Model: "m"})
		s.emit(event.Retrieved{Base: "notes", Query: "Which boats?", Sources: found})
		s.emit(event.Finished{Output: "The r", Error: "broken"})
	}
	sources := &render.SourceOptions{Dir: "/home/ada/notes", Terminal: render.Capabilities{Hyperlinks: true}}
	on := play(t, setup{terminal: true, answer: true, outTerminal: true, sources: sources}, scenario)
	golden(t, "knowledge/sources", on.vt.screen())
	off := play(t, setup{answer: true, sources: sources, narrator: render.NarratorOptions{Verbose: 1}}, scenario)
	golden(t, "knowledge/sources_v", off.plain.String())
	if without := play(t, setup{answer: true}, scenario).plain.String(); without != "" {
		t.Errorf("shown without being asked for:\n%s", without)
	}
}
