package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// documented has one event of every type: those that docs/events.md shows.
func documented() []event.Event {
	clock := time.Date(2026, 11, 21, 10, 30, 0, 0, time.FixedZone("CET", 3600))
	item, byDefault, temperature := 3, "yes", 0.2
	top := event.Source{Run: "0198c2a4", Agent: "research"}
	at := func(step int, node string) event.Source {
		src := top
		src.Step, src.Node = step, node
		return src
	}
	mapped := at(2, "summarise")
	mapped.Item = &item
	child := top.Child("critic", "agent_critic_9f3c21aa")
	usage := chat.Usage{InputTokens: 1200, CachedInputTokens: 800, OutputTokens: 210, ReasoningTokens: 64}
	events := []event.Event{
		{Source: top, Body: event.Started{Graph: "research", Node: "plan"}},
		{Body: event.Delta{Text: "The Rhine, the "}},
		{Body: event.Reasoning{Text: "Three rivers of <Europe> & no lakes."}},
		{Source: at(1, "plan"), Body: event.Reply{Model: "openai:gpt-5", Text: "1. Read the notes\n2. …", Stop: chat.StopEnd, Usage: usage}},
		{Source: mapped, Body: event.ToolCall{ID: "call_1", Name: "fs_cat", Arguments: `{"path":"notes.md"}`}},
		{Source: mapped, Body: event.ToolResult{ID: "call_1", Name: "fs_cat", Text: "notes.md: no such file", Failed: true}},
		{Source: event.Source{Run: "0198c2a4", Agent: "research", Step: 2}, Body: event.StepStarted{Nodes: []string{"sources", "summarise"}}},
		{Source: event.Source{Run: "0198c2a4", Agent: "research", Step: 2}, Body: event.StepFinished{Next: []string{"review"}}},
		{Source: at(2, "summarise"), Body: event.NodeStarted{NodeType: "map", Visit: 1, Parallel: true}},
		{Source: at(2, "sources"), Body: event.NodeFinished{
			NodeType: "script", Duration: 250 * time.Millisecond, Targets: []string{"review"}, Error: "script sources.py: exit status 1", Parallel: true,
		}},
		{Source: at(2, "summarise"), Body: event.MapProgress{Done: 40, Total: 200}},
		{Source: event.Source{Run: "0198c2a4", Agent: "research", Step: 1}, Body: event.StateUpdated{Values: []value.Member{
			{Name: "plan", Value: value.Of("1. Read the notes\n2. …")}, {Name: "score", Value: value.Of(1.0)},
		}}},
		{Source: at(3, "review"), Body: event.Question{ID: "review", Kind: "choice", Text: "Publish this?", Options: []string{"yes", "no"}, Default: &byDefault}},
		{Source: at(3, "review"), Body: event.Answer{ID: "review", Text: "yes", Via: event.ViaTerminal}},
		{Source: at(1, "plan"), Body: event.Retry{Attempt: 1, Error: "model openai:gpt-5: too many requests", Wait: 1500 * time.Millisecond}},
		{Source: child, Body: event.Warning{Text: "agents/critic/graph.yaml:4:1: unknown key \"sttings\""}},
		{Source: top, Body: event.Finished{
			Output: "Go 1.26 is out.", Duration: 2410 * time.Millisecond, Steps: 4, Failures: 1, Usage: usage.Add(chat.Usage{InputTokens: 300}),
		}},
		{Source: at(1, "plan"), Body: event.ModelCall{Model: "openai:gpt-5", Turn: 1}},
		{Body: event.CompressionStarted{Model: "openai:gpt-5", Tokens: 77_120}},
		{Body: event.CompressionFinished{
			Messages: 24, Before: 77_120, After: 9_340, Recap: "The user compares rivers.", Usage: chat.Usage{InputTokens: 67_900, OutputTokens: 180, Cost: 0.0867},
		}},
		{Body: event.Request{
			Model: "openai:gpt-5", Sampling: chat.Sampling{Temperature: &temperature, Effort: "low"}, MaxOutputTokens: 4096, Stream: true,
			Tools:    []chat.Tool{{Name: "fs_ls", Description: "List a directory.", Parameters: json.RawMessage(`{"type":"object"}`)}},
			Messages: []chat.Message{chat.Text(chat.User, "Name three rivers")},
		}},
	}
	events = append(
		events, event.Event{Source: mapped, Body: event.ToolOutput{Name: "deploy", Text: "3 of 12 files copied"}},
		event.Event{Source: top, Body: event.AgentWaits{On: []string{child.AgentID}}},
		event.Event{Source: child, Body: event.TodoUpdated{Goal: "Review the parser", Todos: []event.Todo{
			{ID: 1, Desc: "Read parse.go", Done: true}, {ID: 2, Desc: "Look for missing tests"},
		}}},
		event.Event{Source: top, Body: event.AutoContinue{Count: 3, Max: 10, Open: 2}},
		event.Event{Source: child, Body: event.MessageSent{To: "agent_scribe_07d1e5b2", Text: "parse.go has no fuzz test"}},
		event.Event{Source: top, Body: event.TaskUpdated{ID: "2", Subject: "Review the parser", Status: "in_progress", Owner: "auto:critic"}},
		event.Event{Source: child, Body: event.Escalation{ID: "esc_5b1f00c7", Text: "[ask] Which branch?", Options: []string{"main", "next"}}},
		event.Event{Source: child, Body: event.EscalationAnswered{ID: "esc_5b1f00c7", Text: "main"}},
		event.Event{Body: event.IndexStarted{Base: "notes", Model: "openai:text-embedding-3-small", Resumed: true}},
		event.Event{Body: event.IndexProgress{
			Base: "notes", Document: "/home/ada/notes/boats.md", Done: 120, Total: 400, Kept: 80, Chunks: 310,
			Usage: chat.Usage{InputTokens: 96_400, Cost: 0.001928}, Elapsed: 3 * time.Second, Left: 7 * time.Second,
		}},
		event.Event{Body: event.IndexFinished{
			Base: "notes", Files: 398, Chunks: 2104, Added: 310, Kept: 88, Removed: 3, Passed: 12, Failed: 2,
			Usage: chat.Usage{InputTokens: 402_000, Cost: 0.00804}, Duration: 9800 * time.Millisecond,
		}},
		event.Event{Source: top, Body: event.Retrieved{Base: "notes", Query: "Which boats are for hire?", Sources: []event.Passage{
			{Path: "/home/ada/notes/boats.md", Start: 12, End: 40, Score: 0.18}, {Path: "https://example.com/boats", Score: 0.09},
		}, Duration: 4 * time.Millisecond}},
		event.Event{Body: event.SessionNamed{Title: "rivers-of-europe", Usage: chat.Usage{InputTokens: 310, OutputTokens: 6, Cost: 0.0004}}},
		event.Event{Body: event.ServersStarting{Servers: []string{"git", "web"}}},
		event.Event{Body: event.ServersStarted{Servers: []string{"git"}, Failed: []string{"web"}}},
		event.Event{Source: at(3, "payment"), Body: event.Waiting{ID: "payment", Signal: "paid", Until: clock.Add(24 * time.Hour).UTC()}},
		event.Event{Source: at(3, "payment"), Body: event.Signal{ID: "payment", Name: "paid", Value: value.ObjectOf(value.Member{Name: "amount", Value: value.Of(12.5)}).Value()}},
		event.Event{Source: at(4, ""), Body: event.Undoing{Nodes: []string{"flight", "hotel"}, Error: `at node "pay": script pay.sh: bash failed with exit status 1`}},
		event.Event{Source: top, Body: event.Instructions{Files: []event.InstructionFile{{Path: "AGENTS.md", Bytes: 1830, State: "used", Changed: true}}, Changed: true}},
		event.Event{Source: top, Body: event.SkillLoaded{Name: "pdf", Directory: "/home/ada/.agents/skills/pdf", Sum: "9f3c21aa0d4e5b6c7a8990a1b2c3d4e5f60718293a4b5c6d7e8f901a2b3c4d5e", Bytes: 2114, By: "model"}},
		event.Event{Source: top, Body: event.Memory{Action: "proposed", Facts: []event.MemoryFact{{ID: "e4dd81", Scope: "user", Title: "Tabs in Go files"}}}},
		event.Event{Source: top, Body: event.JobStarted{ID: "job-3f9a12c0", Command: "npm run dev", Level: "network", Ports: []int{5173}}},
		event.Event{Source: top, Body: event.JobEnded{ID: "job-3f9a12c0", Command: "npm run dev", Status: "exited", Exit: new(1)}},
		event.Event{Source: at(2, "summarise"), Body: event.Limited{Client: "openai", Model: "gpt-5", Reason: "refused", Until: clock.Add(8 * time.Second).UTC(), AtOnce: 4}},
		event.Event{Source: top, Body: event.Plan{
			State: "accepted", Title: "Rename the flag", Summary: "It is misleading.", Open: []string{"Keep the old name?"}, Mode: "ask", Edited: true,
			Steps: []event.PlanStep{{Text: "Change flags.go", Files: []string{"flags.go"}, Commands: []string{"go test ./..."}}},
		}},
		event.Event{Source: top, Body: event.Steered{ID: "1", Text: "leave the tests alone"}},
	)
	for i := range events {
		events[i].Time = clock.Add(time.Duration(i) * 1234567 * time.Nanosecond)
	}
	return events
}

func line(t *testing.T, ev event.Event) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ev); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const page = "../../../docs/events.md"

// sections returns the parts of the page under "### `type`" headings, by type.
func sections(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(data), "\n## The report\n")
	parts := strings.Split(text, "\n### `")
	byType := make(map[string]string)
	for _, part := range parts[1:] {
		name, body, _ := strings.Cut(part, "`\n")
		byType[name] = body
	}
	return byType
}

// TestPageShowsRealEvents keeps docs/events.md true: each example is an event exactly
// as it is written, and each field is in the table.
func TestPageShowsRealEvents(t *testing.T) {
	byType := sections(t)
	for _, ev := range documented() {
		name := ev.Body.Type()
		t.Run(name, func(t *testing.T) {
			section, ok := byType[name]
			if !ok {
				t.Fatalf("%s has no section", page)
			}
			_, example, _ := strings.Cut(section, "```json\n")
			example, _, _ = strings.Cut(example, "\n```")
			want := line(t, ev)
			if example != want {
				t.Errorf("example\n%s\nbut the event is\n%s", example, want)
			}
			var shown, real map[string]any
			if err := json.Unmarshal([]byte(example), &shown); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(want), &real); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(shown, real) {
				t.Errorf("example parses as %v, the event as %v", shown, real)
			}
			for _, field := range fields(reflect.TypeOf(ev.Body)) {
				if !strings.Contains(section, "| `"+field+"` |") {
					t.Errorf("field %s is not described", field)
				}
			}
		})
	}
}

// fields lists the JSON names of a body's fields; those that custom marshalling adds
// come from an example.
func fields(body reflect.Type) []string {
	var names []string
	for f := range body.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	data, _ := json.Marshal(reflect.Zero(body).Interface())
	var object map[string]any
	_ = json.Unmarshal(data, &object)
	for name := range object {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// TestPageKnowsEveryType reads the types out of the source, so that a new one cannot
// be forgotten.
func TestPageKnowsEveryType(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "Type" || fn.Recv == nil {
			continue
		}
		lit := fn.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit)
		name, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		declared = append(declared, name)
	}
	if len(declared) < 17 {
		t.Fatalf("found only the types %v", declared)
	}
	var shown []string
	for _, ev := range documented() {
		shown = append(shown, ev.Body.Type())
	}
	slices.Sort(declared)
	slices.Sort(shown)
	if !slices.Equal(declared, shown) {
		t.Errorf("event.go has %v, the page is checked for %v", declared, shown)
	}
	byType := sections(t)
	for name := range byType {
		if !slices.Contains(declared, name) {
			t.Errorf("the page describes %s, which does not exist", name)
		}
	}
}

func TestPageKnowsEveryCode(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []fault.Code{
		fault.Failure, fault.Usage, fault.Config, fault.NotFound, fault.Provider, fault.Refused, fault.Tool, fault.Limit, fault.Suspended, fault.Canceled,
	} {
		row := "| `" + string(code) + "` | " + strconv.Itoa(fault.ExitCode(fault.New(code, "x"))) + " |"
		if !strings.Contains(string(data), row) {
			t.Errorf("%s lacks %q", page, row)
		}
	}
}

// TestMarshalFieldsAreUnique guards the flat form: a body's field must not hide one of
// the source.
func TestMarshalFieldsAreUnique(t *testing.T) {
	for _, ev := range documented() {
		item := 0
		ev.Source = event.Source{Run: "r", Agent: "a", AgentID: "agent_a_0", Depth: 1, Step: 1, Node: "n", Item: &item}
		dec := json.NewDecoder(strings.NewReader(line(t, ev)))
		if _, err := dec.Token(); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			if seen[name.(string)] {
				t.Errorf("%s has field %v twice", ev.Body.Type(), name)
			}
			seen[name.(string)] = true
			var skip json.RawMessage
			if err := dec.Decode(&skip); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"type", "time", "run", "agent", "agent_id", "depth", "step", "node", "item"} {
			if !seen[name] {
				t.Errorf("%s lacks %s", ev.Body.Type(), name)
			}
		}
	}
}

func TestMarshal(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	zero := 0
	for _, tt := range []struct {
		name string
		ev   event.Event
		want string
	}{
		{
			name: "body_without_fields", ev: event.Event{Time: at, Body: event.Started{}},
			want: `{"type":"started","time":"2026-01-02T03:04:05.000006Z"}`,
		},
		{
			name: "item_zero_is_told", ev: event.Event{Time: at, Source: event.Source{Node: "m", Item: &zero}, Body: event.Warning{Text: "w"}},
			want: `{"type":"warning","time":"2026-01-02T03:04:05.000006Z","node":"m","item":0,"text":"w"}`,
		},
		{
			name: "no_html_escapes", ev: event.Event{Time: at, Body: event.Delta{Text: "a < b && c > d"}},
			want: `{"type":"delta","time":"2026-01-02T03:04:05.000006Z","text":"a < b && c > d"}`,
		},
		{
			name: "html_in_finished", ev: event.Event{Time: at, Body: event.Finished{Output: "<p>", Duration: time.Microsecond}},
			want: `{"type":"finished","time":"2026-01-02T03:04:05.000006Z","output":"<p>","usage":{"input_tokens":0,"output_tokens":0},"seconds":0.000001}`,
		},
		{
			name: "child_of_a_map", ev: event.Event{
				Time: at, Source: event.Source{Run: "r"}.Child("critic", "agent_critic_0"),
				Body: event.Started{Model: "m", Prompt: "look"}.Under(event.Source{Node: "each", Item: &zero}),
			},
			want: `{"type":"started","time":"2026-01-02T03:04:05.000006Z","run":"r","agent":"critic","agent_id":"agent_critic_0","depth":1,"model":"m","prompt":"look","parent_node":"each","parent_item":0}`,
		},
		{
			name: "end_of_a_child", ev: event.Event{Time: at, Body: event.Finished{Outcome: "timed_out", Own: chat.Usage{InputTokens: 2}}},
			want: `{"type":"finished","time":"2026-01-02T03:04:05.000006Z","output":"","usage":{"input_tokens":0,"output_tokens":0},"outcome":"timed_out","own":{"input_tokens":2,"output_tokens":0},"seconds":0}`,
		},
		{
			name: "integers_and_floats_stay_apart", ev: event.Event{Time: at, Body: event.StateUpdated{Values: []value.Member{
				{Name: "a", Value: value.Of(1)}, {Name: "b", Value: value.Of(1.0)},
			}}},
			want: `{"type":"state_updated","time":"2026-01-02T03:04:05.000006Z","values":{"a":1,"b":1.0}}`,
		},
		{
			name: "duration_rounds_to_microseconds", ev: event.Event{Time: at, Body: event.Retry{Attempt: 2, Error: "e", Wait: 1500*time.Millisecond + 999}},
			want: `{"type":"retry","time":"2026-01-02T03:04:05.000006Z","attempt":2,"error":"e","wait_seconds":1.5}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := line(t, tt.ev); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestScopeStampsEvents(t *testing.T) {
	var c eventtest.Collector
	now := time.Unix(1000, 0)
	s := event.NewScope(&c, event.Source{Run: "r", Agent: "a"}, func() time.Time { return now })
	node := s.With(func(src *event.Source) { src.Step, src.Node = 2, "n" })
	if err := node.Emit(t.Context(), event.Warning{Text: "one"}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if err := s.Emit(t.Context(), event.Warning{Text: "two"}); err != nil {
		t.Fatal(err)
	}
	want := []event.Event{
		{Time: time.Unix(1000, 0), Source: event.Source{Run: "r", Agent: "a", Step: 2, Node: "n"}, Body: event.Warning{Text: "one"}},
		{Time: time.Unix(1001, 0), Source: event.Source{Run: "r", Agent: "a"}, Body: event.Warning{Text: "two"}},
	}
	if got := c.Events(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if s.Silent() {
		t.Error("a scope with an emitter reports that events are dropped")
	}
}

func TestSilentScope(t *testing.T) {
	for name, s := range map[string]event.Scope{"zero": {}, "nil_emitter": event.NewScope(nil, event.Source{Run: "r"}, nil)} {
		t.Run(name, func(t *testing.T) {
			if !s.Silent() {
				t.Error("not silent")
			}
			if err := s.With(func(src *event.Source) { src.Node = "n" }).Emit(t.Context(), event.Warning{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestScopesTakeTurns runs under the race detector: an emitter needs no lock of its own.
func TestScopesTakeTurns(t *testing.T) {
	inside, total := 0, 0
	var last time.Time
	e := event.Func(func(_ context.Context, ev event.Event) error {
		if inside++; inside != 1 {
			t.Error("calls overlap")
		}
		if ev.Time.Before(last) {
			t.Error("time runs backwards")
		}
		last = ev.Time
		total++
		inside--
		return nil
	})
	s := event.NewScope(e, event.Source{}, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			node := s.With(func(src *event.Source) { src.Step = i })
			for range 50 {
				if err := node.Emit(t.Context(), event.Delta{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total != 400 {
		t.Errorf("%d events arrived, want 400", total)
	}
}

func TestTee(t *testing.T) {
	var a, b eventtest.Collector
	full := errors.New("disk full")
	broken := event.Func(func(context.Context, event.Event) error { return full })
	ev := event.Event{Body: event.Warning{Text: "w"}}
	for _, tt := range []struct {
		name         string
		tee          event.Emitter
		wantA, wantB int
		wantErr      error
	}{
		{name: "both_in_turn", tee: event.Tee(&a, &b), wantA: 1, wantB: 1},
		{name: "nil_is_left_out", tee: event.Tee(nil, &a, nil), wantA: 1},
		{name: "none", tee: event.Tee()},
		{name: "stops_at_the_first_error", tee: event.Tee(&a, broken, &b), wantA: 1, wantErr: full},
		{name: "discard", tee: event.Tee(event.Discard, &b), wantB: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b = eventtest.Collector{}, eventtest.Collector{}
			if err := tt.tee.Emit(t.Context(), ev); !errors.Is(err, tt.wantErr) {
				t.Errorf("error %v, want %v", err, tt.wantErr)
			}
			if got := len(a.Events()); got != tt.wantA {
				t.Errorf("the first got %d events, want %d", got, tt.wantA)
			}
			if got := len(b.Events()); got != tt.wantB {
				t.Errorf("the second got %d events, want %d", got, tt.wantB)
			}
		})
	}
}

func TestTeeKeepsItsList(t *testing.T) {
	var a, b eventtest.Collector
	list := []event.Emitter{&a, nil, &b}
	tee := event.Tee(list...)
	if list[1] != nil || list[2] != &b {
		t.Error("Tee changed the caller's list")
	}
	list[0] = event.Discard
	if err := tee.Emit(t.Context(), event.Event{Body: event.Warning{}}); err != nil {
		t.Fatal(err)
	}
	if len(a.Events()) != 1 {
		t.Error("the caller's list is still used")
	}
}

func TestBodies(t *testing.T) {
	var c eventtest.Collector
	for _, body := range []event.Body{event.Delta{Text: "a"}, event.Warning{Text: "w"}, event.Delta{Text: "b"}} {
		if err := c.Emit(t.Context(), event.Event{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := eventtest.Bodies[event.Delta](&c), []event.Delta{{Text: "a"}, {Text: "b"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCollectorEventsAreACopy(t *testing.T) {
	var c eventtest.Collector
	if err := c.Emit(t.Context(), event.Event{Body: event.Delta{Text: "a"}}); err != nil {
		t.Fatal(err)
	}
	c.Events()[0].Body = event.Delta{Text: "changed"}
	if got := eventtest.Bodies[event.Delta](&c)[0].Text; got != "a" {
		t.Errorf("the collector now holds %q", got)
	}
}

func BenchmarkMarshalDelta(b *testing.B) {
	ev := event.Event{Time: time.Unix(0, 0), Source: event.Source{Run: "r", Node: "n"}, Body: event.Delta{Text: " and then"}}
	for b.Loop() {
		if _, err := ev.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestThrough has events pass two emitters, one after the other, also where events were dropped.
func TestThrough(t *testing.T) {
	var first, second eventtest.Collector
	in := func(next event.Emitter) event.Emitter { return event.Tee(&first, next) }
	outer := event.NewScope(&second, event.Source{Run: "r"}, nil)
	for _, s := range []event.Scope{outer.Through(in), event.Scope{}.Through(in), outer} {
		if err := s.Emit(t.Context(), event.Warning{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(first.Events()) != 2 || len(second.Events()) != 2 || first.Events()[0].Run != "r" {
		t.Errorf("events %+v and %+v", first.Events(), second.Events())
	}
}

// TestOnce: a warning that concerns more than a question passes a scope once, whatever the
// scopes that share its emitter; others pass as often as they come.
func TestOnce(t *testing.T) {
	t.Parallel()
	var got eventtest.Collector
	s := event.NewScope(&got, event.Source{}, nil)
	node := s.With(func(src *event.Source) { src.Node = "n" }).Through(func(next event.Emitter) event.Emitter { return next })
	for range 2 {
		for _, w := range []event.Warning{{Text: "once", Once: true}, {Text: "always"}} {
			if err := event.FromContext(event.NewContext(t.Context(), node)).Emit(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if err := s.Emit(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := eventtest.Bodies[event.Warning](&got); len(got) != 5 {
		t.Errorf("%v", got)
	}
	if err := event.FromContext(t.Context()).Emit(t.Context(), event.Warning{}); err != nil {
		t.Error(err)
	}
}
