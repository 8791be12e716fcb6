package session

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// The default texts of a compaction.
const (
	// DefaultSummarizationPrompt asks for the recap.
	DefaultSummarizationPrompt = "Write down, in at most 200 words, what one must know of our conversation so far to continue it " +
		"alone: what I want, what was decided or found out, the names, numbers, paths and commands that matter, and what is still open."

	// DefaultSummaryContextPrompt introduces the recap to the model.
	DefaultSummaryContextPrompt = "Recap of the conversation so far:"
)

// DefaultKeep is how many turns a compaction leaves alone.
const DefaultKeep = 2

// DefaultThreshold is the number of tokens from which a session is compressed if the
// input limit of its model is unknown.
const DefaultThreshold = 16_000

// Threshold returns the number of tokens from which a session without a configured
// threshold is compressed: 60 % of the input limit of its model, or [DefaultThreshold]
// if that is unknown.
func Threshold(maxInputTokens int) int {
	if maxInputTokens <= 0 {
		return DefaultThreshold
	}
	return int(int64(maxInputTokens) * 6 / 10)
}

// Compaction says how to replace the older part of a conversation by a recap.
type Compaction struct {
	// Summarize returns a model's reply to messages, the conversation and then a
	// request for a recap, and what that used. There are no tool calls and no images
	// among them, so no tools need to be declared, and any chat model will do. Required.
	Summarize func(ctx context.Context, messages []chat.Message) (string, chat.Usage, error)

	// Keep is how many of the last turns stay word for word, whatever their size. 0
	// means [DefaultKeep], a negative number none.
	Keep int

	SummarizationPrompt  string // "" means [DefaultSummarizationPrompt]
	SummaryContextPrompt string // "" means [DefaultSummaryContextPrompt]

	// Carry returns what is added to the recap of the messages that go, word for word; nil adds nothing.
	Carry func(gone []chat.Message) string

	// Todo is the list of what is left to do, put in front of the recap; "" for none.
	Todo string
}

// Compressed is the result of a compaction.
type Compressed struct {
	Messages      int // how many live messages were replaced
	Kept          int // how many stay, without the role messages
	Before, After int // tokens of the live messages
	Recap         string
}

// NeedsCompression reports whether the live messages and the ones that will follow count threshold
// tokens or more and there is something to compress, which is not so in a
// conversation of [DefaultKeep] turns. A threshold of 0 is never reached. Where the turns
// that stay reach it by themselves the older ones have to count a quarter of it: else
// each turn would be preceded by a compression that hardly helps.
func (s *Session) NeedsCompression(threshold int, next ...chat.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.view.history
	end := (Compaction{}).split(h)
	if threshold <= 0 || end <= h.lead {
		return false
	}
	more := 0
	for _, m := range next {
		more += h.counter.Message(m, false)
	}
	if !h.atLeast(threshold - more) {
		return false
	}
	goes := h.between(h.lead, end, threshold/4)
	return goes >= threshold/4 || h.tokens()-goes+more < threshold
}

// Compress replaces all turns but the last few by a recap that Summarize writes of
// them. The instructions of the conversation stay as they are and the recap goes
// behind them; a recap that is there already becomes part of the new one. The
// messages that go are still in the log.
//
// Turns may be added while Summarize works; they stay. An error, also of Summarize,
// leaves the session as it was. If all turns stay it has code Usage.
func (s *Session) Compress(ctx context.Context, c Compaction) (Compressed, error) {
	s.mu.Lock()
	h := s.view.history
	before := h.tokens()
	s.mu.Unlock()

	end := c.split(&h)
	if end <= h.lead {
		return Compressed{}, fault.New(fault.Usage, "there is nothing to compress: the session has no more turns than a compression keeps")
	}
	reply, usage, err := c.Summarize(ctx, c.request(&h, end))
	if err != nil {
		return Compressed{}, fmt.Errorf("compressing the session: %w", err)
	}
	summary := strings.TrimSpace(chat.WithoutThinking(reply))
	if summary == "" {
		return Compressed{}, fault.New(fault.Provider, "compressing the session: the model returned an empty recap")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	recap := c.recap(summary)
	if c.Carry != nil {
		recap = strings.TrimSpace(recap + "\n\n" + c.Carry(h.live[:end]))
	}
	o := compactOp{recap: recap, count: end - h.lead, last: h.live[end-1], usage: usage, at: s.now()}
	if _, ok := o.group(&s.view.history); !ok {
		return Compressed{}, fault.New(fault.Failure, "compressing the session: its messages were replaced meanwhile")
	}
	s.state.Summary, s.stale = summary, true
	err = s.change(ctx, o)
	now := &s.view.history
	return Compressed{Messages: end - h.lead, Kept: len(now.live) - now.lead, Before: before, After: now.tokens(), Recap: summary}, err
}

// split returns the index of the first live message that stays. It is where a turn
// begins, or the end of the list. If all turns stay it is that of the first one.
func (c Compaction) split(h *history) int {
	keep := c.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	starts := h.turns()
	switch keep = min(max(keep, 0), len(starts)); {
	case len(starts) == 0:
		return h.lead
	case keep == len(starts):
		return h.lead // also what precedes the first question
	case keep == 0:
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
	return "[ACTIVE TODO LIST]\n" + strings.Trim(c.Todo, "\n") + "\n\n" + intro + summary
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
	said := strings.Join(parts, "\n")
	switch m.Role {
	case chat.ToolRole:
		outcome := "result"
		if m.Failed {
			outcome = "error"
		}
		return chat.Text(chat.User, fmt.Sprintf("[%s of the tool %s]\n%s", outcome, m.ToolName, shorten(said, maxResult)))
	case chat.Assistant:
		said = chat.WithoutThinking(said)
		for _, call := range m.ToolCalls {
			said += fmt.Sprintf("\n[calls the tool %s with %s]", call.Name, shorten(call.Arguments, maxResult))
		}
		said = strings.TrimPrefix(said, "\n")
	}
	return chat.Text(m.Role, said)
}

// shorten returns s with its middle left out if it is longer than limit bytes.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := text.Ends(s, limit)
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, len(s)-len(head)-len(tail), tail)
}

// compactOp replaces the first live messages behind the role messages by a recap.
type compactOp struct {
	recap string
	count int          // how many
	last  chat.Message // the last of them
	usage chat.Usage   // of writing the recap
	at    time.Time
}

func (o compactOp) group(h *history) (group, bool) {
	end := h.lead + o.count
	if end > len(h.live) || !reflect.DeepEqual(h.live[end-1], o.last) {
		return group{}, false
	}
	return group{mark: mark{Mark: markCompaction, Keep: len(h.live) - end, Recap: o.recap, Usage: o.usage, At: o.at}}, true
}
