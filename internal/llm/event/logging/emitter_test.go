package logging_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// story is what a test tells, step by step.
type story struct {
	t  *testing.T
	to event.Emitter
}

func (s story) emit(ctx context.Context, src event.Source, bodies ...event.Body) {
	s.t.Helper()
	for _, b := range bodies {
		if err := s.to.Emit(ctx, event.Event{Time: noon, Source: src, Body: b}); err != nil {
			s.t.Fatal(err)
		}
	}
}

var top = event.Source{Run: "0198c2a4", Agent: "research"}

func at(src event.Source, step int, node string) event.Source {
	src.Step, src.Node = step, node
	return src
}

func members(pairs ...string) []value.Member {
	var m []value.Member
	for i := 0; i < len(pairs); i += 2 {
		m = append(m, value.Member{Name: pairs[i], Value: value.Of(pairs[i+1])})
	}
	return m
}

var stories = map[string]func(*testing.T, story){
	"run": func(t *testing.T, s story) {
		ctx, zero := t.Context(), 0
		s.emit(ctx, top, event.Started{Graph: "research", Node: "plan"})
		plan := at(top, 1, "plan")
		s.emit(ctx, plan, event.NodeStarted{NodeType: "llm", Visit: 1},
			event.ModelCall{Model: "openai:gpt-5", Turn: 1}, event.Delta{Text: "secret thought"},
			event.Limited{Reason: "spending"},
			event.Limited{Reason: "spending", Waited: 1000},
			event.Limited{Client: "openai", Reason: "concurrency"},
			event.Retry{Attempt: 1, Error: "too many requests", Wait: time.Second},
			event.ModelCall{Model: "openai:gpt-5", Turn: 1},
			event.Reply{Model: "openai:gpt-5", Text: "secret thought", Stop: chat.StopToolCalls, Usage: chat.Usage{InputTokens: 12, OutputTokens: 3}},
			event.ToolCall{ID: "c1", Name: "fs_cat", Arguments: "secret thought"},
			event.ToolCall{ID: "c2", Name: "fs_rm", Arguments: "{}"},
			event.ToolResult{ID: "c1", Name: "fs_cat", Text: "secret thought"},
			event.ToolResult{ID: "c2", Name: "fs_rm", Text: strings.Repeat("no permission ", 40), Failed: true},
			event.NodeFinished{NodeType: "llm", Duration: 1400 * time.Millisecond, Targets: []string{"a", "b"}})
		s.emit(ctx, at(top, 1, ""), event.StateUpdated{Values: members("plan", "1. read", "token", "plainkey")})
		s.emit(ctx, at(top, 2, ""), event.StepStarted{Nodes: []string{"a", "b"}})
		s.emit(ctx, at(top, 2, "b"), event.NodeStarted{NodeType: "script", Visit: 1, Parallel: true})
		s.emit(ctx, at(top, 2, "a"), event.NodeStarted{NodeType: "map", Visit: 1, Parallel: true})
		item := at(top, 2, "a")
		item.Item = &zero
		s.emit(ctx, item, event.ModelCall{Model: "openai:gpt-5", Turn: 1})
		s.emit(ctx, at(top, 2, "a"), event.MapProgress{Done: 1, Total: 1}, event.NodeFinished{NodeType: "map", Duration: 250 * time.Millisecond, Targets: []string{"plan"}})
		s.emit(ctx, at(top, 2, "b"), event.NodeFinished{NodeType: "script", Duration: 250 * time.Millisecond, Targets: []string{"plan"}, Error: "b.sh: exit status 1"})
		s.emit(ctx, at(top, 2, ""), event.StateUpdated{Values: members("found", "x")}, event.StepFinished{Next: []string{"plan"}})
		s.emit(ctx, at(top, 3, "plan"), event.NodeStarted{NodeType: "llm", Visit: 2},
			event.Question{ID: "q", Text: "secret thought"}, event.Answer{ID: "q", Text: "secret thought"},
			event.NodeFinished{NodeType: "llm", Duration: 100 * time.Millisecond, Targets: []string{"done"}})
		s.emit(ctx, at(top, 4, "done"), event.NodeStarted{NodeType: "end", Visit: 1},
			event.NodeFinished{NodeType: "end", Duration: 30 * time.Microsecond, End: true})
		s.emit(ctx, top, event.Finished{Output: "secret thought", Duration: 2410 * time.Millisecond, Steps: 4, Failures: 1})
	},
	"failed": func(t *testing.T, s story) {
		ctx := t.Context()
		s.emit(ctx, top, event.Started{Graph: "research", Node: "plan", Resumed: true})
		s.emit(ctx, at(top, 3, "plan"), event.NodeStarted{NodeType: "script", Visit: 1},
			event.NodeFinished{NodeType: "script", Duration: time.Second, Error: "exit status 3"})
		s.emit(ctx, top, event.Finished{Error: `at node "plan": exit status 3`, Code: "tool", Duration: time.Second})
	},
	"suspended_and_canceled": func(t *testing.T, s story) {
		for _, code := range []string{"suspended", "canceled"} {
			s.emit(t.Context(), top, event.Started{Graph: "research", Node: "plan"}, event.Finished{Error: "because", Code: code})
		}
		s.emit(t.Context(), top, event.Started{Graph: "research", Node: "plan"}, event.Finished{Error: "waits for: secret thought", Reason: "waits", Code: "suspended"})
	},
	// Two children of the same name side by side keep their own counts; one of them has a child.
	"children": func(t *testing.T, s story) {
		ctx, zero, one := t.Context(), 0, 1
		s.emit(ctx, top, event.Started{Graph: "research", Node: "each"})
		each := []event.Source{at(top, 1, "each"), at(top, 1, "each")}
		each[0].Item, each[1].Item = &zero, &one
		critics := []event.Source{top.Child("critic", "agent_critic_1"), top.Child("critic", "agent_critic_2")}
		for i, child := range critics {
			s.emit(ctx, child, event.Started{Graph: "critic", Node: "read", Prompt: "secret thought"}.Under(each[i]))
		}
		for _, child := range critics {
			s.emit(ctx, at(child, 1, "read"), event.NodeStarted{NodeType: "llm", Visit: 1}, event.NodeFinished{NodeType: "llm", Duration: time.Second})
		}
		read := at(critics[1], 1, "read")
		scribe := critics[1].Child("scribe", "agent_scribe_3")
		s.emit(ctx, scribe, event.Started{Model: "openai:gpt-5", Prompt: "secret thought"}.Under(read))
		s.emit(ctx, read, event.AgentWaits{On: []string{scribe.AgentID}})
		s.emit(ctx, scribe, event.TodoUpdated{Goal: "secret thought", Todos: []event.Todo{{ID: 1, Desc: "secret thought", Done: true}, {ID: 2}}},
			event.AutoContinue{Count: 1, Max: 10, Open: 1}, event.MessageSent{To: "agent_critic_1", Text: "secret thought"},
			event.Escalation{ID: "esc_1", Text: "secret thought"}, event.EscalationAnswered{ID: "esc_1", Text: "secret thought"},
			event.Escalation{ID: "esc_2", Text: "secret thought"}, event.EscalationAnswered{ID: "esc_2", TimedOut: true},
			event.Finished{Duration: time.Second, Output: "secret thought", Outcome: "done", Usage: chat.Usage{InputTokens: 7}})
		s.emit(ctx, read, event.AgentWaits{}, event.TaskUpdated{ID: "1", Subject: "secret thought", Status: "completed", Owner: "auto:scribe"})
		s.emit(ctx, critics[0], event.Finished{Steps: 1, Duration: time.Second})
		s.emit(ctx, critics[1], event.Finished{Duration: time.Second, Error: "it took too long", Code: "limit", Outcome: "timed_out"})
	},
	"answer": func(t *testing.T, s story) {
		ctx := t.Context()
		s.emit(ctx, event.Source{}, event.Warning{Text: "config.yaml:3:1: unknown key"},
			event.IndexStarted{Base: "notes", Model: "builtin:hash", Resumed: true}, event.IndexProgress{Base: "notes", Document: "secret thought"},
			event.IndexFinished{Base: "notes", Files: 3, Chunks: 20, Added: 1, Kept: 2, Removed: 4, Passed: 5, Failed: 6, Usage: chat.Usage{InputTokens: 70}, Duration: time.Second},
			event.IndexFinished{Base: "notes", Error: "no space left on device", Duration: time.Second},
			event.Started{Model: "openai:gpt-5"},
			event.Retrieved{Base: "notes", Query: "secret thought", Sources: make([]event.Passage, 5), Duration: 4 * time.Millisecond}, event.ModelCall{Model: "openai:gpt-5", Turn: 1},
			event.Reply{Model: "openai:gpt-5", Text: "secret thought", Stop: chat.StopEnd}, event.Finished{Duration: time.Second, Output: "secret thought"},
			event.Started{Model: "openai:gpt-5"}, event.Finished{Duration: time.Second, Error: "model openai:gpt-5: no such model", Code: "provider"})
	},
}

func TestEmitter(t *testing.T) {
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			logger, lines := open(t, logging.Options{Level: "trace"})
			tell(t, story{t, logging.Emitter(logger)})
			var got strings.Builder
			for _, line := range lines() {
				l, ok := logging.Parse(line)
				if !ok {
					t.Fatalf("broken line %q", line)
				}
				_, level, _ := strings.Cut(line, "[")
				level, _, _ = strings.Cut(level, "]")
				got.WriteString(level + " " + l.Message + "\n")
			}
			for _, bad := range []string{"secret thought", "plainkey"} {
				if strings.Contains(got.String(), bad) {
					t.Errorf("%q is in the log", bad)
				}
			}
			path := filepath.Join("testdata", name+".log")
			if *update {
				if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// TestEmitterLevels shows what the usual levels leave of a run.
func TestEmitterLevels(t *testing.T) {
	for _, tt := range []struct {
		name, level, filter string
		noSnapshots         bool
		has, lacks          []string
	}{
		{name: "info", level: "info", has: []string{"run started at plan", "run finished at done in 2410ms", "plan: 2 visit(s), total 1500ms, avg 750ms, max 1400ms"}, lacks: []string{"DEBUG", "state after"}},
		{name: "warn", level: "warn", has: []string{"exit status 1"}, lacks: []string{"INFO"}},
		{name: "graph_only", filter: "graph=debug,engine=error", has: []string{"keys=plan,token"}, lacks: []string{"tool is called", "state={"}},
		{name: "engine_only", filter: "engine=debug,error", has: []string{"tool is called"}, lacks: []string{"run started"}},
		{name: "no_snapshots", level: "trace", noSnapshots: true, has: []string{"plan -> a"}, lacks: []string{"state after"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logger, lines := open(t, logging.Options{Level: tt.level, Filter: tt.filter})
			e := logging.Emitter(logger)
			stories["run"](t, story{t, event.Func(func(ctx context.Context, ev event.Event) error {
				if b, ok := ev.Body.(event.Started); ok {
					b.NoSnapshots = tt.noSnapshots
					ev.Body = b
				}
				return e.Emit(ctx, ev)
			})})
			text := strings.Join(lines(), "\n")
			for _, s := range tt.has {
				if !strings.Contains(text, s) {
					t.Errorf("%q is missing in\n%s", s, text)
				}
			}
			for _, s := range tt.lacks {
				if strings.Contains(text, s) {
					t.Errorf("%q is in\n%s", s, text)
				}
			}
		})
	}
}
