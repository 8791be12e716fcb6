package session

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"loki/internal/chat"
	"loki/internal/fault"
)

// Texts of a compaction that sets none.
const (
	// DefaultSummarizationPrompt asks for the recap.
	DefaultSummarizationPrompt = "Write down, in at most 200 words, what one must know of our conversation so far to go on with it " +
		"alone: what I want, what was decided or found out, the names, numbers, paths and commands that matter, and what is still open."

	// DefaultSummaryContextPrompt introduces the recap to the model.
	DefaultSummaryContextPrompt = "Recap of the conversation so far:"
)

// DefaultKeep is how many turns a compaction leaves alone.
const DefaultKeep = 2

// Compaction says how to replace the older part of a conversation by a recap.
type Compaction struct {
	// Summarize returns a model's reply to messages: the conversation and then a
	// request for a recap. There are no tool calls and no images among them, so no
	// tools need to be declared, and any chat model will do. Required.
	Summarize func(ctx context.Context, messages []chat.Message) (string, error)

	// Keep is how many of the last turns stay word for word. 0 means [DefaultKeep], a
	// negative number none. There is always a turn that does not stay.
	Keep int

	// KeepTokens bounds what the turns that stay count together: the oldest of them go
	// until they fit. 0 is no bound.
	KeepTokens int

	SummarizationPrompt  string // "" means [DefaultSummarizationPrompt]
	SummaryContextPrompt string // "" means [DefaultSummaryContextPrompt]

	// Todo is the list of what is left to do, put in front of the recap; "" for none.
	Todo string
}

// Compressed says what a compaction has done.
type Compressed struct {
	Messages      int // how many live messages were replaced
	Kept          int // how many stay, without the role messages
	Before, After int // tokens of the live messages
}

// NeedsCompression reports whether the live messages count as many tokens as the
// session's threshold, or that given for sessions without one, or more. A threshold of
// 0 is never reached, nor is one by a conversation in which the user said nothing.
func (s *Session) NeedsCompression(threshold int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.state.Settings.CompressionThreshold; own != nil {
		threshold = *own
	}
	return threshold > 0 && s.view.history.atLeast(threshold) && s.view.history.lastUser() >= 0
}

// Compress replaces all turns but the last few by a recap that Summarize writes of
// them. The instructions of the conversation stay as they are and the recap goes
// behind them; a recap that is there already becomes part of the new one. The
// messages that go are still in the log.
//
// Turns may be added while Summarize works; they stay. An error, also of Summarize,
// leaves the session as it was. Without a message of the user to summarize it is of
// code Usage.
func (s *Session) Compress(ctx context.Context, c Compaction) (Compressed, error) {
	s.mu.Lock()
	h := s.view.history
	before := h.tokens()
	s.mu.Unlock()

	end := c.split(&h)
	if end <= h.lead {
		return Compressed{}, fault.New(fault.Usage, "there is nothing to compress: the session has no messages of yours")
	}
	reply, err := c.Summarize(ctx, c.request(&h, end))
	if err != nil {
		return Compressed{}, fmt.Errorf("compressing the session: %w", err)
	}
	summary := strings.TrimSpace(chat.WithoutThinking(reply))
	if summary == "" {
		return Compressed{}, fault.New(fault.Provider, "compressing the session: the model returned an empty recap")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	o := compactOp{recap: c.recap(summary), count: end - h.lead, last: h.live[end-1], at: s.now()}
	if _, ok := o.group(&s.view.history); !ok {
		return Compressed{}, fault.New(fault.Failure, "compressing the session: its messages were replaced meanwhile")
	}
	s.state.Summary, s.stale = summary, true
	err = s.change(ctx, o)
	now := &s.view.history
	return Compressed{Messages: end - h.lead, Kept: len(now.live) - now.lead, Before: before, After: now.tokens()}, err
}

// split returns the index of the first live message that stays. It is where a turn
// begins, or the end of the list.
func (c Compaction) split(h *history) int {
	starts := h.turns()
	if len(starts) == 0 {
		return 0
	}
	keep := c.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	keep = min(max(keep, 0), len(starts)-1)
	if c.KeepTokens > 0 {
		kept := 0
		end := len(h.live)
		for n := 1; n <= keep; n++ {
			for start := starts[len(starts)-n]; end > start; end-- {
				kept += h.counter.Message(h.live[end-1], false)
			}
			if kept > c.KeepTokens {
				keep = n - 1
			}
		}
	}
	if keep == 0 {
		return len(h.live)
	}
	return starts[len(starts)-keep]
}

func (c Compaction) recap(summary string) string {
	intro := c.SummaryContextPrompt
	if intro == "" {
		intro = DefaultSummaryContextPrompt
	}
	if last, _ := utf8.DecodeLastRuneInString(intro); !unicode.IsSpace(last) {
		intro += "\n"
	}
	if c.Todo == "" {
		return intro + summary
	}
	return "Active todo list:\n" + strings.Trim(c.Todo, "\n") + "\n\n" + intro + summary
}

// request returns the messages that ask for a recap of the live ones before end.
func (c Compaction) request(h *history, end int) []chat.Message {
	prompt := c.SummarizationPrompt
	if prompt == "" {
		prompt = DefaultSummarizationPrompt
	}
	var list []chat.Message
	for i, m := range h.live[:end] {
		if i < h.lead && m.Role != chat.System {
			continue // examples say nothing about the conversation
		}
		m = flat(m)
		last := len(list) - 1
		switch {
		case m.Text() == "":
		case last >= 0 && list[last].Role == m.Role: // results of several calls
			list[last] = chat.Text(m.Role, list[last].Text()+"\n\n"+m.Text())
		default:
			list = append(list, m)
		}
	}
	if last := len(list) - 1; list[last].Role == chat.User {
		return append(list[:last], chat.Text(chat.User, list[last].Text()+"\n\n"+prompt))
	}
	return append(list, chat.Text(chat.User, prompt))
}

// maxResult is how much of a tool's result is shown to the model that summarizes, in
// bytes.
const maxResult = 4000

// flat returns m as a message of text only, of the system, the user or the assistant.
func flat(m chat.Message) chat.Message {
	var parts []string
	for _, p := range m.Parts {
		switch p.Type {
		case chat.TextPart:
			if p.Text != "" {
				parts = append(parts, p.Text)
			}
		case chat.ImagePart:
			parts = append(parts, "[an image]")
		}
	}
	text := strings.Join(parts, "\n")
	switch m.Role {
	case chat.ToolRole:
		outcome := "result"
		if m.Failed {
			outcome = "error"
		}
		return chat.Text(chat.User, fmt.Sprintf("[%s of the tool %s]\n%s", outcome, m.ToolName, shorten(text, maxResult)))
	case chat.Assistant:
		text = chat.WithoutThinking(text)
		for _, call := range m.ToolCalls {
			text += fmt.Sprintf("\n[calls the tool %s with %s]", call.Name, shorten(call.Arguments, maxResult))
		}
		text = strings.TrimPrefix(text, "\n")
	}
	return chat.Text(m.Role, text)
}

// shorten returns text with its middle left out if it is longer than limit bytes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := text[:limit/2], text[len(text)-limit/2:]
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s",
		strings.ToValidUTF8(head, ""), len(text)-limit, strings.ToValidUTF8(tail, ""))
}

// compactOp replaces the first live messages behind the role messages by a recap.
type compactOp struct {
	recap string
	count int          // how many
	last  chat.Message // the last of them
	at    time.Time
}

func (o compactOp) group(h *history) (group, bool) {
	end := h.lead + o.count
	if end > len(h.live) || !reflect.DeepEqual(h.live[end-1], o.last) {
		return group{}, false
	}
	return group{mark: mark{Mark: markCompaction, Keep: len(h.live) - end, Recap: o.recap, At: o.at}}, true
}
