package render_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

const ms = time.Millisecond

func sequential(s *stage) {
	s.emit(event.Started{Graph: "writer", Node: "plan"})
	s.node("plan", event.NodeStarted{NodeType: "llm", Visit: 1})
	s.node("plan", event.Delta{Text: "the plan"})
	s.wait(300 * ms)
	s.shot("planning")
	s.node("plan", event.ToolCall{ID: "1", Name: "fs_cat", Arguments: `{"path":"notes.md"}`})
	s.wait(200 * ms)
	s.shot("reading")
	s.node("plan", event.ToolResult{ID: "1", Name: "fs_cat", Text: "the notes"})
	s.node("plan", event.Reply{Model: "openai:gpt-5", Text: "the plan", Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 1200, CachedInputTokens: 800, OutputTokens: 210}})
	s.wait(900 * ms)
	s.node("plan", event.NodeFinished{NodeType: "llm", Duration: 1400 * ms, Targets: []string{"draft"}})
	s.emit(event.StateUpdated{Values: []value.Member{
		{Name: "plan", Value: value.Of("the plan,\n\x1b[31min " + strings.Repeat("many ", 200) + "words")}, {Name: "score", Value: value.Of(3)},
	}})
	s.node("draft", event.NodeStarted{NodeType: "script", Visit: 2})
	s.wait(50 * ms)
	s.shot("draft is too young to be drawn")
	s.node("draft", event.NodeFinished{NodeType: "script", Duration: 50 * ms, Targets: []string{"fin"}})
	s.node("fin", event.NodeStarted{NodeType: "end", Visit: 1})
	s.node("fin", event.NodeFinished{NodeType: "end", End: true})
	s.emit(event.Finished{Output: "done", Duration: 1450 * ms, Steps: 3, Usage: chat.Usage{InputTokens: 3000, OutputTokens: 210}})
	s.shot("end")
}

func fanOut(s *stage) {
	s.emit(event.Started{Graph: "wide", Node: "split"})
	s.node("split", event.NodeStarted{NodeType: "script", Visit: 1})
	s.node("split", event.NodeFinished{NodeType: "script", Duration: 20 * ms, Targets: []string{"zeta", "alpha", "中文"}})
	s.emit(event.StepStarted{Nodes: []string{"alpha", "zeta", "中文"}})
	for _, id := range []string{"alpha", "zeta", "中文"} {
		s.node(id, event.NodeStarted{NodeType: "llm", Visit: 1, Parallel: true})
	}
	s.wait(500 * ms)
	s.shot("three at work")
	s.node("zeta", event.NodeFinished{NodeType: "llm", Duration: 500 * ms, Targets: []string{"join"}, Parallel: true})
	s.shot("zeta is done")
	s.wait(700 * ms)
	s.node("alpha", event.NodeFinished{NodeType: "llm", Duration: 1200 * ms, Targets: []string{"join"}, Parallel: true})
	s.node("中文", event.NodeFinished{NodeType: "llm", Duration: 1204 * ms, Targets: []string{"join"}, Parallel: true})
	s.emit(event.StepFinished{Next: []string{"join"}})
	s.node("join", event.NodeStarted{NodeType: "end", Visit: 1})
	s.node("join", event.NodeFinished{NodeType: "end", End: true})
	s.emit(event.Finished{Duration: 1240 * ms, Steps: 3})
	s.shot("end")
}

// TestWideStep: of many nodes side by side not all are named, and not each shows that it
// starts, unless the user wants to know more.
func TestWideStep(t *testing.T) {
	for _, tt := range []struct {
		verbose, nodes int
		starts         int // lines of nodes that start
		want           string
	}{
		{0, 50, 0, "super-step start: n00, n01, n02, n03, n04, and 45 more\n"},
		{1, 50, 50, "super-step start: n00, n01, n02, n03, n04, and 45 more\n"},
		{0, 3, 3, "super-step start: n00, n01, n02\n"},
	} {
		var out bytes.Buffer
		screen := render.NewScreen(render.ScreenOptions{Out: &out})
		narrator := render.NewNarrator(screen, render.NarratorOptions{Verbose: tt.verbose})
		emit := func(node string, body event.Body) {
			if err := narrator.Emit(t.Context(), event.Event{Source: event.Source{Run: "r", Node: node}, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		ids := make([]string, tt.nodes)
		for i := range ids {
			ids[i] = fmt.Sprintf("n%02d", i)
		}
		emit("", event.Started{Graph: "g", Node: "a"})
		emit("", event.StepStarted{Nodes: ids})
		for _, id := range ids {
			emit(id, event.NodeStarted{NodeType: "script", Visit: 1, Parallel: true})
		}
		for _, id := range ids {
			emit(id, event.NodeFinished{NodeType: "script", Parallel: true, Targets: []string{"z"}})
		}
		emit("", event.StepFinished{Next: []string{"z"}})
		emit("z", event.NodeStarted{NodeType: "end", Visit: 1})
		screen.Close()
		text := out.String()
		if !strings.Contains(text, tt.want) || strings.Count(text, "(script) start") != tt.starts || strings.Count(text, "(script) done") != tt.nodes || !strings.Contains(text, "z (end) start") {
			t.Errorf("verbose %d, %d nodes:\n%s", tt.verbose, tt.nodes, text)
		}
	}
}

func mapping(s *stage) {
	s.emit(event.Started{Graph: "batch", Node: "each"})
	s.node("each", event.NodeStarted{NodeType: "map", Visit: 1})
	item := 7
	src := s.run
	src.Node, src.Item = "each", &item
	s.at(src, event.NodeStarted{NodeType: "llm", Visit: 1, Parallel: true})
	s.at(src, event.Retry{Attempt: 1, Error: "too many requests", Wait: 2 * time.Second})
	s.at(src, event.NodeFinished{NodeType: "llm", Duration: 10 * ms, Parallel: true})
	for i := 1; i <= 200; i++ {
		s.node("each", event.MapProgress{Done: i, Total: 200})
		s.wait(10 * ms)
		if i == 40 {
			s.shot("a fifth")
		}
	}
	s.shot("all")
	s.node("each", event.NodeFinished{NodeType: "map", Duration: 2 * time.Second, Targets: []string{"few"}})
	s.node("few", event.NodeStarted{NodeType: "map", Visit: 1})
	for i := 1; i <= 3; i++ {
		s.node("few", event.MapProgress{Done: i, Total: 3})
	}
	s.node("few", event.NodeFinished{NodeType: "map", Duration: 3 * ms, Targets: []string{"fin"}})
	s.node("fin", event.NodeStarted{NodeType: "end", Visit: 1})
	s.node("fin", event.NodeFinished{NodeType: "end", End: true})
	s.emit(event.Finished{Duration: 2003 * ms, Steps: 3, Usage: chat.Usage{InputTokens: 9, OutputTokens: 1, Estimated: true}})
}

// limited is a map whose provider takes two calls at once, and a node whose call waits.
func limited(s *stage) {
	s.emit(event.Started{Graph: "batch", Node: "each"})
	s.node("each", event.NodeStarted{NodeType: "map", Visit: 1})
	item := 1
	src := s.run
	src.Node, src.Item = "each", &item
	for i := range 100 {
		s.node("each", event.MapProgress{Done: i + 1, Total: 500})
		s.wait(600 * ms)
		if i == 0 {
			s.at(src, event.Limited{Client: "st", Model: "m", Reason: "concurrency", AtOnce: 2})
			s.shot("too early to tell")
		}
	}
	s.shot("4 minutes are left")
	s.node("each", event.NodeFinished{NodeType: "map", Duration: time.Minute, Targets: []string{"one"}})
	s.node("one", event.NodeStarted{NodeType: "llm", Visit: 1})
	for range 2 {
		s.node("one", event.Limited{Client: "st", Model: "m", Reason: "refused", Until: time.Now().Add(7 * time.Second), AtOnce: 1})
	}
	s.node("one", event.Limited{Client: "st", Model: "m", Reason: "concurrency", Until: time.Now().Add(17 * time.Second), AtOnce: 1})
	s.wait(8 * time.Second)
	for range 2 {
		s.node("one", event.Limited{Reason: "spending"})
	}
	s.node("one", event.Limited{Reason: "spending", Waited: 1000})
	s.node("one", event.NodeFinished{NodeType: "llm", Duration: 7 * time.Second, Targets: []string{"fin"}})
	s.emit(event.Finished{Duration: 67 * time.Second, Steps: 2})
}

func tolerated(s *stage) {
	s.emit(event.Started{Graph: "brave", Node: "fetch"})
	s.node("fetch", event.NodeStarted{NodeType: "script", Visit: 1})
	s.node("fetch", event.Retry{Attempt: 1, Error: "exit status 7"})
	s.wait(200 * ms)
	s.shot("second attempt")
	s.node("fetch", event.NodeFinished{
		NodeType: "script", Duration: 200 * ms, Targets: []string{"fin"},
		Error: "script fetch.py: exit status 1:\n  Traceback (most recent call last):\n  \x1b]0;title\x07" + strings.Repeat("deep ", 40) + "trouble",
	})
	s.node("fin", event.NodeStarted{NodeType: "end", Visit: 1})
	s.emit(event.Warning{Text: "graph.yaml:3:1: unknown key \"sttings\""})
	s.node("fin", event.Warning{Text: "the output is empty"})
	s.node("fin", event.NodeFinished{NodeType: "end", End: true})
	s.emit(event.Finished{Duration: 201 * ms, Steps: 2, Failures: 1})
}

func fatal(s *stage) {
	s.emit(event.Started{Graph: "broken", Node: "ask"})
	s.node("ask", event.NodeStarted{NodeType: "llm", Visit: 1})
	s.node("ask", event.ToolResult{ID: "1", Name: "fs_rm", Text: "permission denied", Failed: true})
	s.node("ask", event.ToolResult{ID: "2", Name: "execute_command", Text: `{"output":"x","notice":"This call at level write changed .eslintrc.js."}`, Sandbox: "write"})
	s.node("ask", event.ToolResult{ID: "3", Name: "mcp", Text: `{"notice":"text of others"}`})
	s.wait(300 * ms)
	s.shot("asking")
	s.node("ask", event.NodeFinished{NodeType: "llm", Duration: 300 * ms, Error: "model openai:gpt-5: the API key was refused"})
	s.emit(event.Finished{Duration: 301 * ms, Error: `at node "ask": model openai:gpt-5: the API key was refused`, Code: "provider"})
}

func nested(s *stage) {
	child := s.run.Child("critic", "graph_agent_critic_9f3c21aa")
	childNode := child
	childNode.Node = "read"
	s.emit(event.Started{Graph: "parent", Node: "review"})
	s.node("review", event.NodeStarted{NodeType: "agent", Visit: 1})
	s.at(child, event.Started{Graph: "critic", Node: "read", Prompt: "Find\nmistakes"}.Under(event.Source{Node: "review"}))
	s.at(childNode, event.NodeStarted{NodeType: "llm", Visit: 1})
	s.wait(200 * ms)
	s.shot("the child reads")
	s.at(childNode, event.Reply{Model: "ollama:qwen", Stop: chat.StopLength, Usage: chat.Usage{InputTokens: 10, OutputTokens: 4, ReasoningTokens: 1, Estimated: true}})
	s.at(childNode, event.NodeFinished{NodeType: "llm", Duration: 200 * ms, Targets: []string{"fin"}, Error: "cut off"})
	s.at(child, event.Warning{Text: "no tools"})
	s.at(child, event.Finished{Duration: 210 * ms, Steps: 1, Failures: 1, Usage: chat.Usage{InputTokens: 10, OutputTokens: 4}})
	s.node("review", event.NodeFinished{NodeType: "agent", Duration: 220 * ms, Targets: []string{"fin"}})
	s.node("fin", event.NodeStarted{NodeType: "end", Visit: 1})
	s.node("fin", event.NodeFinished{NodeType: "end", End: true})
	s.emit(event.Finished{Duration: 221 * ms, Steps: 2, Usage: chat.Usage{InputTokens: 10, OutputTokens: 4}})
}

func canceled(s *stage) {
	s.emit(event.Started{Graph: "long", Node: "one"})
	s.emit(event.StepStarted{Nodes: []string{"one", "two"}})
	s.node("one", event.NodeStarted{NodeType: "llm", Visit: 1, Parallel: true})
	s.node("two", event.NodeStarted{NodeType: "llm", Visit: 1, Parallel: true})
	s.wait(time.Second)
	s.shot("before Ctrl-C")
	s.node("one", event.NodeFinished{NodeType: "llm", Duration: time.Second, Error: event.Interrupted, Parallel: true})
	s.emit(event.Finished{Duration: time.Second, Error: "context canceled", Code: string(fault.Canceled)})
	s.shot("after")
}

func asking(s *stage) {
	s.emit(event.Started{Graph: "polite", Node: "ok"})
	s.node("ok", event.NodeStarted{NodeType: "approval", Visit: 1})
	s.node("ok", event.Question{ID: "ok/1", Text: "Publish this?\nIt is long.", Options: []string{"yes", "no"}})
	s.wait(200 * ms)
	s.shot("asked")
	s.node("ok", event.Answer{ID: "ok/1", Text: "yes, but\nsoon", Here: true})
	s.node("ok", event.NodeFinished{NodeType: "approval", Duration: 5 * time.Second, Targets: []string{"fin"}})
	s.emit(event.Finished{Duration: 5 * time.Second, Error: "no user can be asked", Code: string(fault.Suspended)})
}

// TestNarration plays every scenario off and on a terminal. What stays on the terminal is
// what is shown off it, except for the progress of maps and the start of agents.
func TestNarration(t *testing.T) {
	for _, tt := range []struct {
		name     string
		scenario func(*stage)
		narrator render.NarratorOptions
	}{
		{name: "sequential", scenario: sequential},
		{name: "sequential_v", scenario: sequential, narrator: render.NarratorOptions{Verbose: 1}},
		{name: "sequential_vv", scenario: sequential, narrator: render.NarratorOptions{Verbose: 2}},
		{name: "sequential_quiet", scenario: sequential, narrator: render.NarratorOptions{Quiet: true, Verbose: 1}},
		{name: "fan_out", scenario: fanOut},
		{name: "map", scenario: mapping},
		{name: "limited", scenario: limited},
		{name: "tolerated", scenario: tolerated},
		{name: "tolerated_quiet", scenario: tolerated, narrator: render.NarratorOptions{Quiet: true}},
		{name: "fatal", scenario: fatal},
		{name: "fatal_v", scenario: fatal, narrator: render.NarratorOptions{Verbose: 1}},
		{name: "nested", scenario: nested},
		{name: "nested_v", scenario: nested, narrator: render.NarratorOptions{Verbose: 1}},
		{name: "canceled", scenario: canceled},
		{name: "canceled_v", scenario: canceled, narrator: render.NarratorOptions{Verbose: 1}},
		{name: "asking", scenario: asking},
		{name: "asking_hidden", scenario: asking, narrator: render.NarratorOptions{HideQuestions: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			off := play(t, setup{narrator: tt.narrator}, tt.scenario)
			plain := off.plain.String()
			golden(t, "narration/"+tt.name, plain)
			if strings.ContainsAny(plain, "\x1b\r\x07") {
				t.Error("control characters off a terminal")
			}

			on := play(t, setup{terminal: true, columns: 200, rows: 60, narrator: tt.narrator}, tt.scenario)
			golden(t, "narration/"+tt.name+".terminal", on.shots.String())
			stays := wrap(regexp.MustCompile(`(?m)^(warning:|▸) .*`).ReplaceAllStringFunc(withoutProgress(plain), func(w string) string { return text.WrapWords(w, 200) }), 200)
			if got := on.vt.screen(); strings.TrimSpace(got) != strings.TrimSpace(stays) {
				t.Errorf("on the terminal stays\n%s\nbut off it is shown\n%s", got, stays)
			}
			if x, y := on.vt.cursor(); x != 0 || y != strings.Count(stays, "\n") {
				t.Errorf("the cursor is left at column %d, row %d", x, y)
			}
		})
	}
}

// withoutProgress drops the lines that only a stream other than a terminal gets.
func withoutProgress(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if last := fields[len(fields)-1]; strings.Contains(last, "/200") || strings.Contains(last, "/3") || strings.Contains(line, "/500") || strings.Contains(line, " started: ") {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}

// wrap breaks lines as the emulator does, at so many characters.
func wrap(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for runes := []rune(line); ; runes = runes[columns:] {
			if len(runes) <= columns {
				b.WriteString(strings.TrimRight(string(runes), " ") + "\n")
				break
			}
			b.WriteString(strings.TrimRight(string(runes[:columns]), " ") + "\n")
		}
	}
	return b.String()
}

func TestNarrationInColor(t *testing.T) {
	scenario := func(s *stage) { tolerated(s); fatal(s) }
	s := play(t, setup{color: true}, scenario)
	golden(t, "narration/color", strings.ReplaceAll(s.plain.String(), "\x1b", "ESC"))
}

func TestNarratorCountsEachRunAnew(t *testing.T) {
	s := play(t, setup{}, func(s *stage) { fanOut(s); fanOut(s) })
	if got := strings.Count(s.plain.String(), "graph done in 1.24s, 5 nodes\n"); got != 2 {
		t.Errorf("%d of 2 runs have 5 nodes:\n%s", got, s.plain.String())
	}
}

func TestNarratorIgnoresBrokenScreen(t *testing.T) {
	n := render.NewNarrator(render.NewScreen(render.ScreenOptions{Out: brokenWriter{}}), render.NarratorOptions{})
	if err := n.Emit(t.Context(), event.Event{Body: event.Warning{Text: "w"}}); err != nil {
		t.Errorf("the work ends because the display is gone: %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
