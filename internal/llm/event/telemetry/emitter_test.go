package telemetry

import (
	"context"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// story tells events, each a millisecond after the one before.
type story struct {
	t   *testing.T
	to  event.Emitter
	now time.Time
}

func newStory(t *testing.T, to event.Emitter) *story {
	return &story{t, to, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
}

func (s *story) emit(ctx context.Context, src event.Source, bodies ...event.Body) {
	s.t.Helper()
	for _, b := range bodies {
		s.now = s.now.Add(time.Millisecond)
		if err := s.to.Emit(ctx, event.Event{Time: s.now, Source: src, Body: b}); err != nil {
			s.t.Fatal(err)
		}
	}
}

var top = event.Source{Run: "0198c2a4", Agent: "research"}

func at(src event.Source, step int, node string) event.Source {
	src.Step, src.Node = step, node
	return src
}

func item(src event.Source, i int) event.Source {
	src.Item = &i
	return src
}

var (
	call  = event.ModelCall{Model: "claude:opus", Turn: 1}
	reply = event.Reply{Model: "claude:opus", Text: "secret thought", Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 12, OutputTokens: 3}}
	done  = event.NodeFinished{NodeType: "llm", Targets: []string{"end"}}
)

var stories = map[string]func(context.Context, *story){
	// A chain, a fan-out of a map and a node with tools, the end.
	"run": func(ctx context.Context, s *story) {
		s.emit(ctx, top, event.Warning{Text: "before the run"})
		s.emit(ctx, top, event.Started{Graph: "research", Node: "plan"})
		plan := at(top, 1, "plan")
		s.emit(ctx, plan, event.NodeStarted{NodeType: "llm", Visit: 1}, call, event.Delta{Text: "secret"}, reply,
			event.NodeFinished{NodeType: "llm", Targets: []string{"each", "tools"}})
		s.emit(ctx, at(top, 2, ""), event.StepStarted{Nodes: []string{"each", "tools"}})
		each, tools := at(top, 2, "each"), at(top, 2, "tools")
		s.emit(ctx, each, event.NodeStarted{NodeType: "map", Visit: 1, Parallel: true})
		s.emit(ctx, tools, event.NodeStarted{NodeType: "llm", Visit: 1, Parallel: true})
		s.emit(ctx, item(each, 0), call)
		s.emit(ctx, item(each, 1), call)
		s.emit(ctx, tools, call)
		s.emit(ctx, item(each, 1), reply)
		s.emit(ctx, each, event.MapProgress{Done: 1, Total: 2})
		s.emit(ctx, tools, event.Reply{Model: "claude:opus", Stop: chat.StopToolCalls, Usage: chat.Usage{InputTokens: 9, CachedInputTokens: 8, OutputTokens: 7, ReasoningTokens: 6, Estimated: true}},
			event.ToolCall{ID: "c1", Name: "fs_cat", Arguments: "secret arguments"}, event.ToolCall{ID: "c2", Name: "fs_rm"},
			event.ToolResult{ID: "c2", Name: "fs_rm", Text: "secret refusal", Failed: true},
			event.ToolResult{ID: "c1", Name: "fs_cat", Text: "secret file"},
			event.ModelCall{Model: "claude:opus", Turn: 2}, reply, done)
		s.emit(ctx, item(each, 0), reply)
		s.emit(ctx, each, event.NodeFinished{NodeType: "map", Duration: 10 * time.Millisecond, Targets: []string{"end"}})
		s.emit(ctx, at(top, 2, ""), event.StepFinished{Next: []string{"end"}})
		s.emit(ctx, at(top, 3, "end"), event.NodeStarted{NodeType: "end", Visit: 1}, event.NodeFinished{NodeType: "end", End: true})
		s.emit(ctx, top, event.Finished{Output: "secret output", Steps: 3})
	},
	"failures": func(ctx context.Context, s *story) {
		s.emit(ctx, top, event.Started{Graph: "research", Node: "plan", Resumed: true})
		s.emit(ctx, at(top, 4, "plan"), event.NodeStarted{NodeType: "llm", Visit: 1},
			call, event.Retry{Attempt: 1, Error: "secret reason", Wait: time.Second},
			call, event.Warning{Text: "secret warning"},
			event.NodeFinished{NodeType: "llm", Targets: []string{"ask"}, Error: "secret reason"})
		s.emit(ctx, at(top, 5, "ask"), event.NodeStarted{NodeType: "approval", Visit: 1},
			event.Question{ID: "q1", Text: "secret question"}, event.Answer{ID: "q1", Text: "secret answer"},
			event.NodeFinished{NodeType: "approval", Targets: []string{"work"}})
		s.emit(ctx, at(top, 6, "work"), event.NodeStarted{NodeType: "llm", Visit: 1}, event.ToolCall{ID: "c1", Name: "fs_cat"})
		s.emit(ctx, top, event.Finished{Error: "secret reason", Code: "canceled", Steps: 5, Failures: 1})
	},
	"suspended": func(ctx context.Context, s *story) {
		s.emit(ctx, top, event.Started{Graph: "research", Node: "ask"})
		s.emit(ctx, at(top, 1, "ask"), event.NodeStarted{NodeType: "approval", Visit: 1}, event.Question{ID: "q1", Text: "secret question"})
		s.emit(ctx, top, event.Finished{Error: "secret reason", Code: "suspended"})
	},
	// The same child twice at once, with one of its own in each, and one whose parent is unknown.
	"children": func(ctx context.Context, s *story) {
		s.emit(ctx, top, event.Started{Graph: "research", Node: "each"})
		each := at(top, 1, "each")
		s.emit(ctx, each, event.NodeStarted{NodeType: "map", Visit: 1})
		a, b := top.Child("critic", "agent_critic_a"), top.Child("critic", "agent_critic_b")
		s.emit(ctx, a, event.Started{Graph: "critic", Node: "read", Prompt: "secret prompt"}.Under(item(each, 0)))
		s.emit(ctx, b, event.Started{Graph: "critic", Node: "read"}.Under(item(each, 1)))
		readA, readB := at(a, 1, "read"), at(b, 1, "read")
		s.emit(ctx, readA, event.NodeStarted{NodeType: "llm", Visit: 1})
		s.emit(ctx, readB, event.NodeStarted{NodeType: "llm", Visit: 1}, event.ToolCall{ID: "c1", Name: "agent__spawn"})
		deepA, deepB := a.Child("scribe", "agent_scribe_a"), b.Child("scribe", "agent_scribe_b")
		s.emit(ctx, deepB, event.Started{Model: "claude:opus"}.Under(readB), call)
		s.emit(ctx, deepA, event.Started{Model: "claude:opus"}.Under(readA), call, reply, event.Finished{Outcome: "done"})
		s.emit(ctx, readB, event.ToolResult{ID: "c1", Name: "agent__spawn"}, event.AgentWaits{On: []string{"agent_scribe_b"}})
		s.emit(ctx, deepB, reply, event.TodoUpdated{}, event.AutoContinue{Count: 1, Max: 10, Open: 2},
			event.Escalation{ID: "esc_1", Text: "secret question"}, event.EscalationAnswered{ID: "esc_1", Text: "secret answer"},
			event.Finished{Code: "limit", Error: "secret reason", Outcome: "timed_out"})
		s.emit(ctx, readB, done)
		s.emit(ctx, readA, done)
		s.emit(ctx, a, event.Finished{Outcome: "done"})
		s.emit(ctx, b, event.Finished{Outcome: "done"})
		s.emit(ctx, top.Child("lone", "agent_lone"), event.Started{Graph: "lone", Node: "x"}.Under(event.Source{AgentID: "agent_gone"}), event.Finished{})
		s.emit(ctx, each, event.NodeFinished{NodeType: "map", End: true})
		s.emit(ctx, top, event.Finished{})
	},
	"answer": func(ctx context.Context, s *story) {
		s.emit(ctx, event.Source{}, event.Started{Model: "local"}, event.ModelCall{Model: "local", Turn: 1},
			event.Finished{Error: "secret reason", Code: "provider"})
	},
	"knowledge": func(ctx context.Context, s *story) {
		s.emit(ctx, event.Source{}, event.Started{Model: "local"}, event.IndexProgress{Base: "notes"},
			event.Retrieved{Base: "notes", Query: "secret question", Sources: []event.Passage{{Path: "secret.md"}}, Duration: time.Millisecond},
			call, reply, event.Finished{})
	},
	// Shutdown ends what the program's end cut off.
	"cut_off": func(ctx context.Context, s *story) {
		s.emit(ctx, top, event.Started{Graph: "research", Node: "plan"})
		s.emit(ctx, at(top, 1, ""), event.StepStarted{Nodes: []string{"a", "b"}})
		s.emit(ctx, at(top, 1, "a"), event.NodeStarted{NodeType: "llm", Visit: 1}, call)
	},
}

func TestTree(t *testing.T) {
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			sink := newSink(t)
			tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL)
			tell(t.Context(), newStory(t, tracer.Emitter()))
			if err := tracer.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			got := tree(sink.received())
			if strings.Contains(got, "secret") {
				t.Errorf("content was sent without being asked for")
			}
			path := filepath.Join("testdata", name+".tree")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			trace := ""
			for _, s := range sink.received() {
				if id := hex.EncodeToString(s.TraceId); trace == "" {
					trace = id
				} else if id != trace {
					t.Errorf("spans of the traces %s and %s", trace, id)
				}
				if s.EndTimeUnixNano < s.StartTimeUnixNano {
					t.Errorf("%s ends before it begins", s.Name)
				}
			}
		})
	}
}

func TestContentOnRequest(t *testing.T) {
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	for _, name := range []string{"run", "failures"} {
		stories[name](t.Context(), newStory(t, tracer.Emitter()))
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	got := tree(sink.received())
	for _, want := range []string{
		`gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"text","content":"secret thought"}],"finish_reason":"stop"}]`,
		"gen_ai.tool.call.arguments=secret arguments", "gen_ai.tool.call.result=secret file",
		"loki.question.text=secret question", "loki.question.answer=secret answer", `FAILED"secret reason"`, "secret warning",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

func TestParentFromEnvironment(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, "TRACEPARENT="+parent, "TRACESTATE=vendor=1")
	for range 2 {
		stories["answer"](t.Context(), newStory(t, tracer.Emitter()))
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	spans := sink.received()
	if len(spans) != 4 {
		t.Fatalf("%d spans, want 4", len(spans))
	}
	for _, s := range spans {
		if got := hex.EncodeToString(s.TraceId); got != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is of trace %s", s.Name, got)
		}
		parentID, flags := hex.EncodeToString(s.ParentSpanId), uint32(0x101)
		if s.Name == "answer" {
			flags = 0x301
			if parentID != "b7ad6b7169203331" {
				t.Errorf("the answer is under %s", parentID)
			}
		}
		if s.Flags != flags || s.TraceState != "vendor=1" {
			t.Errorf("%s has flags %#x, state %q", s.Name, s.Flags, s.TraceState)
		}
	}
}

func TestUnsampledParent(t *testing.T) {
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	stories["run"](t.Context(), newStory(t, tracer.Emitter()))
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(sink.received()); n != 0 {
		t.Errorf("%d spans were sent", n)
	}
}

// TestEmittersAreApart shows that equal sources of two emitters do not meet.
func TestEmittersAreApart(t *testing.T) {
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL)
	a, b := newStory(t, tracer.Emitter()), newStory(t, tracer.Emitter())
	a.emit(t.Context(), event.Source{}, event.Started{}, call)
	b.emit(t.Context(), event.Source{}, event.Started{}, call, reply, event.Finished{})
	a.emit(t.Context(), event.Source{}, reply, event.Finished{})
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := tree(sink.received()); strings.Count(got, "answer (3ms)\n  chat opus (1ms)") != 2 || strings.Contains(got, "FAILED") {
		t.Errorf("got\n%s", got)
	}
}

func TestNilTracer(t *testing.T) {
	var tracer *Tracer
	if e := tracer.Emitter(); e != nil {
		t.Errorf("emitter %v", e)
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNothingIsOpenAfterARun(t *testing.T) {
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL)
	e := tracer.Emitter()
	stories["children"](t.Context(), newStory(t, e))
	if n := len(tracer.open); n != 0 {
		t.Errorf("%d runs are open", n)
	}
	if n := len(e.(*emitter).runs); n != 0 {
		t.Errorf("the emitter holds %d runs", n)
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	newStory(t, e).emit(t.Context(), top, event.Started{}, event.Finished{}) // dropped
}
