package render_test

import (
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

const reply = "# Rivers\n\nThe **Rhine**, the *Danube* and the `Po`, which is long enough to be wrapped.\n\n" +
	"| River | km |\n|---|--:|\n| Rhine | 1233 |\n| Danube | 2850 |\n\n- one\n- two"

// deltas emits text in pieces of a few bytes.
func (s *stage) deltas(text string) {
	for text != "" {
		n := min(5, len(text))
		s.emit(event.Delta{Text: text[:n]})
		s.wait(10 * ms)
		text = text[n:]
	}
}

// TestAnswerAsMarkdown plays answers that are drawn as Markdown, while other things happen
// on the terminal.
func TestAnswerAsMarkdown(t *testing.T) {
	for _, tt := range []struct {
		name     string
		scenario func(*stage)
	}{
		{"streamed", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.wait(300 * ms)
			s.shot("waiting")
			s.emit(event.Reasoning{Text: "Which **rivers**?"})
			s.wait(100 * ms)
			s.shot("thinking")
			s.deltas(reply[:60])
			s.wait(100 * ms)
			s.shot("paragraph")
			s.deltas(reply[60:140])
			s.wait(100 * ms)
			s.shot("table")
			s.deltas(reply[140:])
			s.emit(event.Reply{Text: reply, Stop: chat.StopEnd})
			s.emit(event.Finished{Output: reply})
		}},
		{"fast", func(s *stage) { // no spinner flashes
			s.emit(event.Started{Model: "m"})
			s.wait(140 * ms)
			s.shot("waiting")
			s.emit(event.Delta{Text: reply})
			s.emit(event.Finished{Output: reply})
		}},
		{"not_streamed", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.emit(event.Reply{Text: reply})
			s.emit(event.Finished{Output: reply})
		}},
		{"graph", func(s *stage) {
			s.emit(event.Started{Graph: "g", Node: "n"})
			s.emit(event.Finished{Output: reply, Duration: time.Second, Steps: 1})
		}},
		{"warned_in_the_middle", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.deltas(reply[:120])
			s.wait(100 * ms)
			s.shot("before")
			s.emit(event.Warning{Text: "careful"})
			s.shot("after")
			s.deltas(reply[120:])
			s.emit(event.Finished{Output: reply})
		}},
		{"asked_in_the_middle", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.deltas(reply[:120])
			s.wait(100 * ms)
			s.screen.Pause()
			s.deltas(reply[120:150])
			s.emit(event.Warning{Text: "held back"})
			s.shot("paused")
			s.screen.Resume()
			s.shot("resumed")
			s.deltas(reply[150:])
			s.emit(event.Finished{Output: reply})
		}},
		{"tool_loop", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.deltas("Let me **look**")
			s.emit(event.Reply{Text: "Let me **look**", Stop: chat.StopToolCalls})
			s.emit(event.ToolCall{ID: "1", Name: "fs_cat", Arguments: `{}`})
			s.wait(300 * ms)
			s.shot("tool")
			s.emit(event.ToolResult{ID: "1", Name: "fs_cat", Text: "b"})
			s.deltas("There is *b*.")
			s.emit(event.Reply{Text: "There is *b*.", Stop: chat.StopEnd})
			s.emit(event.Finished{Output: "Let me **look**\nThere is *b*."})
		}},
		{"retried", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.deltas("**half an")
			s.emit(event.Retry{Attempt: 1, Error: "connection reset", Wait: 2 * time.Second})
			s.wait(300 * ms)
			s.shot("again")
			s.deltas("**half an answer**")
			s.emit(event.Reply{Text: "**half an answer**"})
			s.emit(event.Finished{Output: "**half an answer**"})
		}},
		{"cut_off", func(s *stage) {
			s.emit(event.Started{Model: "m"})
			s.deltas("**half")
			s.emit(event.Finished{Output: "**half", Error: "broken", Code: "provider"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, setup{
				terminal: true, answer: true, outTerminal: true, columns: 50, rows: 30,
				markdown: &render.MarkdownOptions{Theme: theme.Dark, Wrap: markdown.Auto},
			}, tt.scenario)
			golden(t, "answer_markdown/"+tt.name, s.shots.String()+"-- end --\n"+s.vt.screen())
			if x, _ := s.vt.cursor(); x != 0 {
				t.Errorf("the cursor is left in column %d", x)
			}
			if strings.Contains(s.vt.raw(), "**rivers**") && strings.Contains(s.out.String(), "rivers") {
				t.Error("reasoning is part of the answer")
			}
		})
	}
}
