package render_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

func streamed(s *stage) {
	s.emit(event.Started{Model: "openai:gpt-5"})
	s.wait(500 * ms)
	s.shot("waiting")
	s.emit(event.Reasoning{Text: "Three \x1b[31mrivers"})
	s.emit(event.Reasoning{Text: " of Europe.\nNot"})
	s.emit(event.Reasoning{Text: " lakes.\n"})
	s.emit(event.Reasoning{Text: "Good."})
	s.wait(200 * ms)
	s.shot("thinking")
	s.emit(event.Delta{Text: "The Rhine,"})
	s.emit(event.Delta{Text: " the \x1b]0;title\x07Danube"})
	s.wait(200 * ms)
	s.shot("answering")
	s.emit(event.Delta{Text: "\nand the Po."})
	s.emit(event.Reply{Text: "The Rhine, the \x1b]0;title\x07Danube\nand the Po.", Stop: chat.StopEnd})
	s.emit(event.Finished{Output: "The Rhine, the \x1b]0;title\x07Danube\nand the Po."})
}

func toolLoop(s *stage) {
	s.emit(event.Started{Model: "m"})
	s.emit(event.Delta{Text: "Let me look."})
	s.emit(event.Reply{Text: "Let me look.", Stop: chat.StopToolCalls})
	s.emit(event.ToolCall{ID: "1", Name: "fs_cat", Arguments: `{"path":"a"}`})
	s.emit(event.ToolCall{ID: "2", Name: "fs_ls", Arguments: `{}`})
	s.wait(300 * ms)
	s.shot("tools")
	s.emit(event.ToolResult{ID: "1", Name: "fs_cat", Text: "no such file", Failed: true})
	s.emit(event.ToolResult{ID: "2", Name: "fs_ls", Text: "b"})
	s.wait(200 * ms)
	s.shot("model again")
	s.emit(event.Reply{Text: "There is b.", Stop: chat.StopEnd})
	s.emit(event.Finished{Output: "Let me look.\nThere is b."})
}

// TestAnswer plays answers with standard output and standard error on one terminal, and
// with neither on any.
func TestAnswer(t *testing.T) {
	child := event.Source{}.Child("child", "agent_child_1")
	for _, tt := range []struct {
		name     string
		scenario func(*stage)
		want     string // standard output off a terminal
	}{
		{name: "streamed", scenario: streamed, want: "The Rhine, the \x1b]0;title\x07Danube\nand the Po.\n"},
		{name: "tool_loop", scenario: toolLoop, want: "Let me look.\nThere is b.\n"},
		{name: "ends_with_line_feed", want: "one\n", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Delta{Text: "one\n"})
			s.emit(event.Reply{Text: "one\n"})
			s.emit(event.Finished{Output: "one\n"})
		}},
		{name: "empty", want: "", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Reply{})
			s.emit(event.Finished{})
		}},
		{name: "not_streamed", want: "all at once\n", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Reply{Text: "all at once"})
			s.emit(event.Finished{Output: "all at once"})
		}},
		{name: "end_of_stream_lost", want: "all at once\n", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Delta{Text: "all at"})
			s.emit(event.Reply{Text: "all at once"})
			s.emit(event.Finished{Output: "all at once"})
		}},
		{name: "failed_in_the_middle", want: "half an ans\n", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Delta{Text: "half an ans"})
			s.emit(event.Finished{Output: "half an ans", Error: "broken", Code: "provider"})
		}},
		{name: "retried", want: "half an\nhalf an answer\n", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Delta{Text: "half an"})
			s.emit(event.Retry{Attempt: 1, Error: "connection reset", Wait: 2 * time.Second})
			s.wait(300 * ms)
			s.shot("again")
			s.emit(event.Delta{Text: "half an answer"})
			s.emit(event.Reply{Text: "half an answer"})
			s.emit(event.Finished{Output: "half an answer"})
		}},
		{name: "graph", want: "the report\n", scenario: func(s *stage) {
			s.emit(event.Started{Graph: "g", Node: "n"})
			s.node("n", event.NodeStarted{NodeType: "llm", Visit: 1})
			s.node("n", event.Reasoning{Text: "hmm"})
			s.node("n", event.Delta{Text: "hidden"})
			s.node("n", event.Reply{Text: "hidden"})
			s.at(child, event.Started{Model: "m"})
			s.at(child, event.Delta{Text: "hidden too"})
			s.at(child, event.Finished{Output: "hidden too"})
			s.wait(200 * ms)
			s.shot("running")
			s.emit(event.Finished{Output: "the report\n\n", Duration: time.Second, Steps: 1})
		}},
		{name: "graph_without_output", want: "", scenario: func(s *stage) {
			s.emit(event.Started{Graph: "g", Node: "n"})
			s.emit(event.Finished{Output: "\n", Steps: 1})
		}},
		{name: "warned_in_the_middle", want: "one two\n", scenario: func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Delta{Text: "one "})
			s.emit(event.Warning{Text: "careful"})
			s.emit(event.Delta{Text: "two"})
			s.emit(event.Reply{Text: "one two"})
			s.emit(event.Finished{Output: "one two"})
		}},
		{name: "two_answers", want: "first\nsecond\n", scenario: func(s *stage) {
			for _, text := range []string{"first", "second"} {
				s.emit(event.Started{Model: "m"})
				s.emit(event.Delta{Text: text})
				s.emit(event.Reply{Text: text})
				s.emit(event.Finished{Output: text})
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			off := play(t, setup{answer: true}, tt.scenario)
			if got := off.out.String(); got != tt.want {
				t.Errorf("standard output is %q, want %q", got, tt.want)
			}
			if err := off.plain.String(); strings.ContainsAny(err, "\x1b|") {
				t.Errorf("standard error has more than lines: %q", err)
			}
			one := play(t, setup{terminal: true, answer: true, outTerminal: true}, tt.scenario)
			golden(t, "answer/"+tt.name, one.shots.String()+"-- end --\n"+one.vt.screen())
			if x, _ := one.vt.cursor(); x != 0 {
				t.Errorf("the cursor is left in column %d", x)
			}
			if strings.Contains(one.vt.raw(), "\x1b]") {
				t.Error("a model set the title of the terminal")
			}
		})
	}
}

func TestAnswerInColor(t *testing.T) {
	s := play(t, setup{terminal: true, color: true, answer: true, outTerminal: true}, streamed)
	golden(t, "answer/streamed_color", strings.NewReplacer("\x1b", "ESC", "\r", "CR").Replace(s.vt.raw()))
}

// TestAnswerToFile has people watch standard error on a terminal while the answer goes to
// a file.
func TestAnswerToFile(t *testing.T) {
	s := play(t, setup{terminal: true, answer: true}, streamed)
	golden(t, "answer/to_file", s.shots.String()+"-- end --\n"+s.vt.screen())
	if want := "The Rhine, the \x1b]0;title\x07Danube\nand the Po.\n"; s.out.String() != want {
		t.Errorf("the file holds %q, want %q", s.out.String(), want)
	}
}

func TestQuietAnswer(t *testing.T) {
	s := play(t, setup{terminal: true, answer: true, answerQuiet: true, narrator: render.NarratorOptions{Quiet: true}}, streamed)
	if got := s.vt.raw(); got != "" {
		t.Errorf("standard error has %q", got)
	}
}

func TestAnswerStopsWithItsOutput(t *testing.T) {
	for _, body := range []event.Body{event.Delta{Text: "a"}, event.Reply{Text: "a"}, event.Finished{Output: "a"}} {
		a := render.NewAnswer(render.NewScreen(render.ScreenOptions{Out: brokenWriter{}}), render.AnswerOptions{Out: brokenWriter{}})
		if err := a.Emit(t.Context(), event.Event{Body: body}); err == nil {
			t.Errorf("%s: no error, though there is no reader", body.Type())
		}
	}
}

// TestAnswerCutOff ends the work without a finished event.
func TestAnswerCutOff(t *testing.T) {
	var out strings.Builder
	a := render.NewAnswer(render.NewScreen(render.ScreenOptions{Out: &out}), render.AnswerOptions{Out: &out})
	for _, body := range []event.Body{event.Started{Model: "m"}, event.Delta{Text: "half"}} {
		if err := a.Emit(t.Context(), event.Event{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	if out.String() != "half\n" {
		t.Errorf("got %q, want the line ended once", out.String())
	}
}

// TestUsageBelowAnAnswer: it is the last line on the screen, and says once what was used.
func TestUsageBelowAnAnswer(t *testing.T) {
	one := chat.Usage{InputTokens: 1200, CachedInputTokens: 1000, OutputTokens: 30, Cost: 0.01234}
	guess := chat.Usage{InputTokens: 5, OutputTokens: 1, Estimated: true, Cost: 0.00001, CostUnknown: true}
	for _, tt := range []struct {
		name    string
		o       render.AnswerOptions
		graph   string
		replies []chat.Usage
		want    string
	}{
		{"one", render.AnswerOptions{Usage: true}, "", []chat.Usage{one}, "▸ 1,200 tokens in (1,000 cached), 30 out, $0.0123\n"},
		{"sum", render.AnswerOptions{Usage: true, Replies: true}, "", []chat.Usage{one, one}, "▸ 2,400 tokens in (2,000 cached), 60 out, $0.0247\n"},
		{"estimated", render.AnswerOptions{Usage: true}, "", []chat.Usage{guess}, "▸ 5 tokens in, 1 out, estimated, ~<$0.0001+\n"},
		{"told_by_the_narrator", render.AnswerOptions{Usage: true, Replies: true}, "", []chat.Usage{one}, ""},
		{"nothing_used", render.AnswerOptions{Usage: true}, "", []chat.Usage{{}}, ""},
		{"not_wanted", render.AnswerOptions{}, "", []chat.Usage{one}, ""},
		{"quiet", render.AnswerOptions{Usage: true, Quiet: true}, "", []chat.Usage{one}, ""},
		{"graph", render.AnswerOptions{Usage: true}, "g", []chat.Usage{one}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, screen bytes.Buffer
			tt.o.Out = &out
			s := render.NewScreen(render.ScreenOptions{Out: &screen})
			a := render.NewAnswer(s, tt.o)
			events := []event.Body{event.Started{Graph: tt.graph, Model: "m"}}
			var sum chat.Usage
			for _, u := range tt.replies {
				sum = sum.Add(u)
				events = append(events, event.Reply{Text: "x", Usage: u})
			}
			for _, body := range append(events, event.Finished{Output: "x", Usage: sum}) {
				if err := a.Emit(t.Context(), event.Event{Body: body}); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if screen.String() != tt.want {
				t.Errorf("got %q, want %q", screen.String(), tt.want)
			}
		})
	}
}
