package render_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// story is a graph run with everything a report has: a node that fails once, a map, a
// child agent, and a question without an answer.
func story() []event.Event {
	top := event.Source{Run: "0198c2a4", Agent: "research"}
	at := func(step int, node string) event.Source {
		src := top
		src.Step, src.Node = step, node
		return src
	}
	item := 0
	mapped := at(2, "summarise")
	mapped.Item = &item
	critic := top.Child("critic", "graph_agent_critic_9f3c21aa")
	read := critic
	read.Node = "read"
	usage := chat.Usage{InputTokens: 1200, OutputTokens: 210}
	events := []event.Event{
		{Source: top, Body: event.Started{Graph: "research", Node: "plan"}},
		{Source: at(1, "plan"), Body: event.NodeStarted{NodeType: "llm", Visit: 1}},
		{Source: at(1, "plan"), Body: event.Delta{Text: "a <plan>"}},
		{Source: at(1, "plan"), Body: event.Reply{Model: "openai:gpt-5", Text: "a <plan>", Stop: chat.StopEnd, Usage: usage}},
		{Source: at(1, "plan"), Body: event.NodeFinished{NodeType: "llm", Duration: 1400 * time.Millisecond, Targets: []string{"sources", "summarise"}}},
		{Source: at(2, "sources"), Body: event.NodeStarted{NodeType: "script", Visit: 1, Parallel: true}},
		{Source: at(2, "summarise"), Body: event.NodeStarted{NodeType: "map", Visit: 1, Parallel: true}},
		{Source: mapped, Body: event.NodeStarted{NodeType: "llm", Visit: 1}},
		{Source: mapped, Body: event.Reply{Model: "ollama:qwen", Stop: chat.StopLength, Usage: chat.Usage{InputTokens: 300, OutputTokens: 20, Estimated: true}}},
		{Source: mapped, Body: event.NodeFinished{NodeType: "llm", Duration: time.Hour, Error: "not the map's own"}},
		{Source: at(2, "sources"), Body: event.NodeFinished{NodeType: "script", Duration: 250 * time.Millisecond, Targets: []string{"review"}, Error: "script sources.py: exit status 1", Parallel: true}},
		{Source: at(2, "sources"), Body: event.Warning{Text: "sources.py printed nothing"}},
		{Source: at(2, "summarise"), Body: event.NodeFinished{NodeType: "map", Duration: 800 * time.Millisecond, Targets: []string{"review"}, Parallel: true}},
		{Source: critic, Body: event.Started{Graph: "critic", Node: "read", Prompt: "Is it true?"}.Under(mapped)},
		{Source: read, Body: event.NodeStarted{NodeType: "llm", Visit: 1}},
		{Source: read, Body: event.Reply{Usage: chat.Usage{InputTokens: 70, OutputTokens: 8}}},
		{Source: read, Body: event.ToolCall{ID: "1", Name: "fs_cat", Arguments: "{}"}},
		{Source: read, Body: event.ToolResult{ID: "1", Name: "fs_cat", Text: "no such file", Failed: true}},
		{Source: read, Body: event.Warning{Text: "no tools"}},
		{Source: critic, Body: event.Finished{
			Output: "the child's", Error: "it took too long", Code: "limit", Outcome: "timed_out", Duration: time.Second,
			Usage: chat.Usage{InputTokens: 70, OutputTokens: 8}, Own: chat.Usage{InputTokens: 70, OutputTokens: 8},
		}},
		{Source: at(3, "review"), Body: event.NodeStarted{NodeType: "approval", Visit: 1}},
		{Source: at(3, "review"), Body: event.Question{ID: "review/1", Text: "Go on?", Options: []string{"yes", "no"}}},
		{Source: at(3, "review"), Body: event.Answer{ID: "review/1", Text: "no"}},
		{Source: at(3, "review"), Body: event.NodeFinished{NodeType: "approval", Duration: 3 * time.Second, Targets: []string{"review"}}},
		{Source: at(4, "review"), Body: event.NodeStarted{NodeType: "approval", Visit: 2}},
		{Source: at(4, "review"), Body: event.Question{ID: "review/2", Text: "Publish this?", Options: []string{"yes", "no"}}},
		{Source: at(4, "review"), Body: event.NodeFinished{NodeType: "approval", Duration: time.Millisecond, Error: "no user can be asked here"}},
		{Source: top, Body: event.Finished{
			Duration: 5451 * time.Millisecond, Steps: 3, Failures: 1, Usage: usage.Add(chat.Usage{InputTokens: 370, OutputTokens: 28, Estimated: true}),
			Error: `at node "review": no user can be asked here`, Code: "suspended",
		}},
	}
	for i := range events {
		events[i].Time = time.Date(2026, 11, 21, 9, 30, 0, i*1000, time.UTC)
	}
	return events
}

func emitAll(t *testing.T, e event.Emitter, events []event.Event) {
	t.Helper()
	for _, ev := range events {
		if err := e.Emit(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
}

var errSuspended = fault.New(fault.Suspended, "graph execution failed for agent research: node \"review\" asks \"Publish this?\"").
	WithHint("loki --resume 0198c2a4 --answer TEXT")

func TestReport(t *testing.T) {
	single := []event.Event{
		{Body: event.Started{Model: "openai:gpt-5"}},
		{Body: event.Reply{Text: "Rhine,", Stop: chat.StopToolCalls, Usage: chat.Usage{InputTokens: 5, OutputTokens: 1}}},
		{Body: event.Reply{Text: "Po & <Elbe>", Stop: chat.StopLength, Usage: chat.Usage{InputTokens: 5, OutputTokens: 1}}},
		{Body: event.Finished{Output: "Rhine,\nPo & <Elbe>", Duration: 1234567 * time.Nanosecond, Usage: chat.Usage{InputTokens: 10, OutputTokens: 2}}},
	}
	failed := []event.Event{
		{Body: event.Started{Model: "openai:gpt-5"}},
		{Body: event.Finished{Output: "Rhi", Duration: time.Second, Error: "broken", Code: "provider"}},
	}
	item := 2
	knowledge := append([]event.Event{
		{Body: event.IndexFinished{Base: "notes", Files: 3, Chunks: 9, Added: 3, Duration: time.Second}},
		{Body: event.Retrieved{Base: "notes", Query: "Which boats?", Sources: []event.Passage{{Path: "/n/boats.md", Start: 3, End: 9, Score: 0.5}, {Path: "https://example.com", Score: 0.25}}}},
		{Source: event.Source{Agent: "x", Node: "find", Item: &item}, Body: event.Retrieved{Base: "x", Sources: []event.Passage{{Path: "/n/a.md", Start: 1, End: 1, Score: 1}}}},
	}, single...)
	for _, tt := range []struct {
		name   string
		events []event.Event
		err    error
	}{
		{name: "knowledge", events: knowledge},
		{name: "graph", events: story(), err: errSuspended},
		{name: "single", events: single},
		{name: "failed_then_fine", events: append(failed, single...)},
		{name: "fine_then_failed", events: append(single, failed...)},
		{name: "never_began", err: fault.New(fault.NotFound, "no agent is called reserch").WithHint("did you mean research?")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			r := render.NewReport(&out)
			emitAll(t, r, tt.events)
			if out.Len() > 0 {
				t.Error("something is written before the end")
			}
			if err := r.Close(tt.err); err != nil {
				t.Fatal(err)
			}
			golden(t, "report/"+tt.name, out.String())
			if !json.Valid(out.Bytes()) {
				t.Error("the report is not JSON")
			}
		})
	}
}

// TestPageShowsRealReport keeps the example of docs/events.md true.
func TestPageShowsRealReport(t *testing.T) {
	var out bytes.Buffer
	r := render.NewReport(&out)
	emitAll(t, r, story())
	if err := r.Close(errSuspended); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## The report\n")
	if !ok {
		t.Fatal("docs/events.md has no section on the report")
	}
	_, example, _ := strings.Cut(section, "```json\n")
	example, _, _ = strings.Cut(example, "```")
	if example != out.String() {
		t.Errorf("docs/events.md shows\n%s\nbut the report is\n%s", example, out.String())
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(example), &object); err != nil {
		t.Fatal(err)
	}
	for name := range object {
		if !strings.Contains(section, "| `"+name+"` |") {
			t.Errorf("field %s is not described", name)
		}
	}
}

func TestNDJSON(t *testing.T) {
	var out bytes.Buffer
	n := render.NewNDJSON(&out, nil)
	events := story()
	emitAll(t, n, events)
	if err := n.Close(errSuspended); err != nil {
		t.Fatal(err)
	}
	golden(t, "ndjson/graph", out.String())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(events) {
		t.Fatalf("%d lines for %d events", len(lines), len(events))
	}
	for i, line := range lines {
		var got struct{ Type, Node string }
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if got.Type != events[i].Body.Type() || got.Node != events[i].Node {
			t.Errorf("line %d is %s of %q, the event %s of %q", i+1, got.Type, got.Node, events[i].Body.Type(), events[i].Node)
		}
	}
}

// TestNDJSONEndsWithFinished whatever happened.
func TestNDJSONEndsWithFinished(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC) }
	const usage = `"usage":{"input_tokens":0,"output_tokens":0}`
	for _, tt := range []struct {
		name   string
		events []event.Event
		err    error
		want   string
	}{
		{
			name: "never_began", err: fault.New(fault.Config, "no model"),
			want: `{"type":"finished","time":"2026-11-21T09:30:00.000000Z","output":"",` + usage + `,"error":"no model","code":"config","seconds":0}`,
		},
		{
			name: "cut_off", events: []event.Event{{Time: now(), Body: event.Started{Model: "m"}}}, err: errors.New("broken"),
			want: `{"type":"finished","time":"2026-11-21T09:30:00.000000Z","output":"",` + usage + `,"error":"broken","code":"failure","seconds":0}`,
		},
		{
			name: "child_finished_only", events: []event.Event{{Time: now(), Source: event.Source{AgentID: "agent_a_1", Depth: 1}, Body: event.Finished{Output: "child"}}},
			want: `{"type":"finished","time":"2026-11-21T09:30:00.000000Z","output":"",` + usage + `,"seconds":0}`,
		},
		{
			name: "second_answer_cut_off", events: []event.Event{{Time: now(), Body: event.Finished{}}, {Time: now(), Body: event.Started{}}},
			want: `{"type":"finished","time":"2026-11-21T09:30:00.000000Z","output":"",` + usage + `,"seconds":0}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			n := render.NewNDJSON(&out, now)
			emitAll(t, n, tt.events)
			if err := n.Close(tt.err); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != len(tt.events)+1 {
				t.Fatalf("%d lines after %d events", len(lines), len(tt.events))
			}
			if got := lines[len(lines)-1]; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestMachineOutputStopsWithItsReader(t *testing.T) {
	if err := render.NewNDJSON(brokenWriter{}, nil).Emit(t.Context(), event.Event{Body: event.Delta{}}); err == nil {
		t.Error("NDJSON: no error, though there is no reader")
	}
	if err := render.NewReport(brokenWriter{}).Close(nil); err == nil {
		t.Error("report: no error, though there is no reader")
	}
}

func BenchmarkNDJSONDelta(b *testing.B) {
	var out bytes.Buffer
	n := render.NewNDJSON(&out, nil)
	ev := event.Event{Source: event.Source{Run: "r", Node: "n"}, Body: event.Delta{Text: " and then"}}
	for b.Loop() {
		out.Reset()
		if err := n.Emit(b.Context(), ev); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNarratorMap is what a map of many items costs while a terminal watches.
func BenchmarkNarratorMap(b *testing.B) {
	s := render.NewScreen(render.ScreenOptions{Out: discard{}, Terminal: true})
	defer s.Close()
	n := render.NewNarrator(s, render.NarratorOptions{})
	src := event.Source{Node: "each"}
	if err := n.Emit(b.Context(), event.Event{Source: src, Body: event.NodeStarted{NodeType: "map"}}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := n.Emit(b.Context(), event.Event{Source: src, Body: event.MapProgress{Done: 1, Total: 2}}); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkNarratorNodes is what telling a node costs while 32 others run.
func BenchmarkNarratorNodes(b *testing.B) {
	s := render.NewScreen(render.ScreenOptions{Out: discard{}, Terminal: true, Color: true})
	defer s.Close()
	n := render.NewNarrator(s, render.NarratorOptions{})
	emit := func(node string, body event.Body) {
		if err := n.Emit(b.Context(), event.Event{Source: event.Source{Node: node}, Body: body}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 32 {
		emit(fmt.Sprint("n", i), event.NodeStarted{NodeType: "llm", Parallel: true})
	}
	for b.Loop() {
		emit("x", event.NodeStarted{NodeType: "llm", Parallel: true})
		emit("x", event.NodeFinished{NodeType: "llm", Parallel: true})
	}
}
