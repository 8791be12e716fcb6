package redact_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/event/redact"
)

const secret = "tok-12345"

// bodies returns one event of each type, with the secret in every text that may have it.
func bodies() []event.Body {
	text := "a " + secret + " b"
	return []event.Body{
		event.Delta{Text: text},
		event.Reasoning{Text: text},
		event.Reply{Text: text},
		event.ToolCall{Arguments: `{"a":"` + secret + `"}`},
		event.ToolResult{Text: text, Arguments: text, OriginalArguments: text},
		event.ToolOutput{Text: text},
		event.NodeFinished{Error: text},
		event.Question{Text: text, Options: []string{text}, Default: &text},
		event.Answer{Text: text},
		event.StateUpdated{Values: []value.Member{{Name: "k", Value: value.ListOf(value.ObjectOf(value.Member{Name: secret, Value: value.Of(text)}).Value(), value.Of(1)).Value()}}},
		event.Retry{Error: text},
		event.Undoing{Error: text},
		event.Warning{Text: text},
		event.CompressionFinished{Recap: text, Error: text},
		event.SessionNamed{Title: text},
		event.IndexProgress{Document: text},
		event.IndexFinished{Error: text},
		event.Retrieved{Query: text, Sources: []event.Passage{{Path: text}}},
		event.Finished{Output: text, Error: text},
		event.Request{
			Schema: json.RawMessage(`{"title":"` + secret + `"}`),
			Tools:  []chat.Tool{{Name: "t", Description: text, Parameters: json.RawMessage(`{"title":"` + secret + `"}`)}},
			Messages: []chat.Message{{
				Parts:     []chat.Part{{Type: chat.TextPart, Text: text}, {Type: chat.ImagePart, URL: "https://example.com/?key=" + secret}},
				ToolCalls: []chat.ToolCall{{ID: "1", Name: "t", Arguments: `{"a":"` + secret + `"}`}},
			}},
		},
		event.Started{Prompt: text},
		event.TodoUpdated{Goal: text, Todos: []event.Todo{{ID: 1, Desc: text}}},
		event.MessageSent{Text: text},
		event.Steered{Text: text},
		event.TaskUpdated{Subject: text},
		event.Escalation{Text: text, Options: []string{text}},
		event.EscalationAnswered{Text: text},
		event.Signal{Name: "paid", Value: value.Of(text)},
		event.Waiting{},
		event.AgentWaits{},
		event.AutoContinue{},
		event.Instructions{},
		event.SkillLoaded{},
		event.Memory{Facts: []event.MemoryFact{{Title: text}}},
		event.JobStarted{Command: text},
		event.JobEnded{Command: text, Notice: text},
		event.Plan{Title: text, Summary: text, Open: []string{text}, Reason: text, Steps: []event.PlanStep{{Text: text, Files: []string{text}, Commands: []string{text}}}},
		event.ModelCall{},
		event.StepStarted{},
		event.StepFinished{},
		event.NodeStarted{},
		event.MapProgress{FailedItems: []string{text}},
		event.Limited{},
		event.CompressionStarted{},
		event.IndexStarted{},
		event.ServersStarting{},
		event.ServersStarted{},
	}
}

// TestEveryEvent checks that bodies has each type of event, so that a new one cannot be
// forgotten.
func TestEveryEvent(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../event.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^func \(\w+\) Type\(\) string +\{ return "(\w+)" \}`).FindAllSubmatch(src, -1) {
		want = append(want, string(m[1]))
	}
	for _, b := range bodies() {
		got = append(got, b.Type())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 20 {
		t.Errorf("(-declared +tested):\n%s", diff)
	}
}

// TestStartedState checks what is not a part of the JSON of an event.
func TestStartedState(t *testing.T) {
	t.Parallel()
	var got []value.Member
	e := secrets("TOKEN", secret).Emitter(event.Func(func(_ context.Context, ev event.Event) error {
		got = ev.Body.(event.Started).State
		return nil
	}))
	if err := e.Emit(t.Context(), event.Event{Body: event.Started{State: []value.Member{{Name: "k", Value: value.Of("a " + secret)}}}}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Value.String() != `"a ***TOKEN***"` {
		t.Errorf("state %v", got)
	}
}

// TestEmitter checks that an event passes whole, with marks for what was secret, and that the
// original stays as it is.
func TestEmitter(t *testing.T) {
	t.Parallel()
	s := secrets("TOKEN", secret)
	for _, body := range bodies() {
		raw := func(ev event.Event) string {
			text, err := ev.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		var got eventtest.Collector
		ev := event.Event{Time: time.Unix(0, 0), Body: body}
		before := raw(ev)
		if err := s.Emitter(&got).Emit(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
		if len(got.Events()) != 1 {
			t.Errorf("%s: %d events", body.Type(), len(got.Events()))
			continue
		}
		if diff := cmp.Diff(strings.ReplaceAll(before, secret, "***TOKEN***"), raw(got.Events()[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body.Type(), diff)
		}
		if after := raw(ev); after != before {
			t.Errorf("%s: the original became %s", body.Type(), after)
		}
	}
	var none *redact.Secrets
	var got eventtest.Collector
	if none.Emitter(&got) != event.Emitter(&got) || s.Emitter(nil) != nil {
		t.Error("without secrets or listeners there is an emitter of its own")
	}
}

// Pieces of an answer are put together as far as a secret may be in them, stream by stream.
func TestEmitterOfPieces(t *testing.T) {
	t.Parallel()
	at := func(node string, body event.Body) event.Event {
		return event.Event{Source: event.Source{Node: node}, Body: body}
	}
	item := func(n int, body event.Body) event.Event {
		return event.Event{Source: event.Source{Node: "a", Item: &n}, Body: body}
	}
	for _, tt := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"split", []event.Event{at("a", event.Delta{Text: "x tok-"}), at("a", event.Delta{Text: "123"}), at("a", event.Delta{Text: "45 y"})}, "a:x |a:***TOKEN*** y"},
		{"begun_only", []event.Event{at("a", event.Delta{Text: "x tok-"}), at("a", event.Delta{Text: "other"}), at("a", event.Warning{Text: "end"})}, "a:x |a:tok-other|end"},
		{"released", []event.Event{at("a", event.Delta{Text: "x tok-1"}), at("a", event.Warning{Text: "end"})}, "a:x |a:tok-1|end"},
		{"void", []event.Event{at("a", event.Delta{Text: "x tok-1"}), at("a", event.Retry{}), at("a", event.Delta{Text: "2345"})}, "a:x |retry|a:2345"},
		{"two_streams", []event.Event{at("a", event.Delta{Text: "tok-"}), at("b", event.Delta{Text: "12345"}), at("a", event.Delta{Text: "12345"})}, "b:12345|a:***TOKEN***"},
		{"items", []event.Event{at("a", event.Delta{Text: "tok-"}), item(0, event.Delta{Text: "123"}), item(1, event.Delta{Text: "12345"}), at("a", event.Delta{Text: "123"}), at("a", event.Delta{Text: "45"})}, "a:123|a:12345|a:***TOKEN***"},
		{"thought", []event.Event{at("a", event.Reasoning{Text: "x tok-"}), at("a", event.Delta{Text: "y tok-"}), at("a", event.Reasoning{Text: "12345"}), at("a", event.Delta{Text: "12"}), at("a", event.Warning{Text: "end"})}, "a?x |a:y |a?***TOKEN***|a:tok-12|end"},
		{"both_released", []event.Event{at("a", event.Delta{Text: "tok-1"}), at("a", event.Reasoning{Text: "tok-2"}), at("a", event.Reasoning{Text: "tok-"}), at("a", event.Warning{Text: "end"})}, "a?tok-2|a?tok-|a:tok-1|end"},
		{"long_without", []event.Event{at("a", event.Delta{Text: "a long text without any"})}, "a:a long text without any"},
		{"letter_by_letter", letters(at, "-tok-12345-"), "a:-|a:***TOKEN***|a:-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			e := secrets("TOKEN", secret).Emitter(event.Func(func(_ context.Context, ev event.Event) error {
				switch b := ev.Body.(type) {
				case event.Delta:
					got = append(got, ev.Node+":"+b.Text)
				case event.Reasoning:
					got = append(got, ev.Node+"?"+b.Text)
				case event.Warning:
					got = append(got, b.Text)
				default:
					got = append(got, b.Type())
				}
				return nil
			}))
			for _, ev := range tt.events {
				if err := e.Emit(t.Context(), ev); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The first line of a secret of several is a secret, too, but as long as more may come it is held back with what follows.
func TestEmitterOfLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"whole", "before a-first-line-that-is-long-enough\nsecond-line\nlast-line after", "before ***KEY*** after"},
		{"begun", "before a-first-line-that-is-long-enough\nother", "before ***KEY***\nother"},
		{"ends", "before a-first-line-that-is-long-enough\nsec", "before ***KEY***\nsec"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			e := secrets("KEY", "a-first-line-that-is-long-enough\nsecond-line\nlast-line").Emitter(event.Func(func(_ context.Context, ev event.Event) error {
				if b, ok := ev.Body.(event.Delta); ok {
					got.WriteString(b.Text)
				}
				return nil
			}))
			for _, r := range tt.text {
				if err := e.Emit(t.Context(), event.Event{Body: event.Delta{Text: string(r)}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Emit(t.Context(), event.Event{Body: event.Warning{}}); err != nil {
				t.Fatal(err)
			}
			if got := regexp.MustCompile(`\*\*\*KEY[^*]*\*\*\*`).ReplaceAllString(got.String(), "***KEY***"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEmitterOfErrors checks that an event that cannot be passed on is reported, also when
// it is text that was held back.
func TestEmitterOfErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, held := range []event.Body{event.Delta{Text: "tok-"}, event.Reasoning{Text: "tok-"}} {
		var passed []string
		e := secrets("TOKEN", secret).Emitter(event.Func(func(_ context.Context, ev event.Event) error {
			passed = append(passed, ev.Body.Type())
			return full
		}))
		if err := e.Emit(t.Context(), event.Event{Body: held}); err != nil {
			t.Errorf("%s is held back: %v", held.Type(), err)
		}
		if err := e.Emit(t.Context(), event.Event{Body: event.Warning{Text: "end"}}); !errors.Is(err, full) || len(passed) != 1 || passed[0] != held.Type() {
			t.Errorf("passed on were %q: %v", passed, err)
		}
	}
}

func letters(at func(string, event.Body) event.Event, text string) []event.Event {
	var all []event.Event
	for _, r := range text {
		all = append(all, at("a", event.Delta{Text: string(r)}))
	}
	return all
}
