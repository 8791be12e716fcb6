package engine

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// isCutOff reports whether the reply ended before the model was done. Its text and its tool
// calls may then lack their end.
func (t turnResult) isCutOff() bool {
	return t.Stop == chat.StopLength || t.Stop == chat.StopFiltered
}

// judge returns the error of a reply that cannot be used although the provider delivered it,
// and warns of a reply that was cut off. said is the text of all turns so far.
func (c *call) judge(ctx context.Context, t turnResult, said string) error {
	made, blank := len(t.Message.ToolCalls), strings.TrimSpace(said) == ""
	switch {
	case t.Stop == chat.StopFiltered:
		return c.failure(provider.Refused, "the provider broke the reply off for its content rules (%s)", t.Stop)
	case made > 0 && !c.hasTools():
		return c.failure(provider.BadReply, "the model called tool %q, but was given none: enabled_tools names the tools that it may use", t.Message.ToolCalls[0].Name)
	case t.Stop == chat.StopLength && made == 0 && (c.req.Whole || blank):
		return c.cutOffError(t)
	case t.Stop == chat.StopLength:
		return c.rc.Events.Emit(ctx, event.Warning{Text: c.cutOffText(t) + "; " + c.moreOutput(t)})
	case made > 0:
		return nil
	case t.Stop == chat.StopToolCalls:
		return c.failure(provider.BadReply, "the reply ends with a tool call, but holds none that can be read%s", t.body())
	case blank && len(c.req.Stop) > 0: // it ends where it begins
		return nil
	case blank: // another try may bring one
		if thoughts := reasoningOf(t.Message); thoughts != "" {
			return c.failure(provider.Transient, "the reply has no answer and no tool call, only reasoning (stop reason %s): %s", t.Stop, text.Cut(thoughts, maxThoughts))
		}
		return c.failure(provider.Transient, "the reply is empty: it has neither text nor a tool call (stop reason %s, %d output tokens, %d of them reasoning)%s",
			t.Stop, t.Usage.OutputTokens, t.Usage.ReasoningTokens, t.body())
	}
	return nil
}

func (c *call) failure(kind provider.ErrorKind, format string, args ...any) error {
	return fmt.Errorf("model %s: %w", c.model.ID, &provider.Error{Kind: kind, Msg: fmt.Sprintf(format, args...)})
}

// maxThoughts is how much of its reasoning the error of a reply without an answer shows, in bytes.
const maxThoughts = 2000

func reasoningOf(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == chat.ReasoningPart {
			b.WriteString(p.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// body returns the beginning of what the server sent, as the end of a message.
func (t turnResult) body() string {
	if t.Body == "" {
		return ""
	}
	return ": " + t.Body
}

// incompleteError returns the error of a request whose calls never arrive complete.
func (c *call) incompleteError(t turnResult) error {
	if t.isCutOff() {
		return c.cutOffError(t)
	}
	return fault.New(fault.Provider, "the tool calls of %s arrive broken: its server sends parts that belong to none of the calls for certain", c.model.ID).
		WithHint("set no_stream: true for the model in config.yaml, so that replies come in one piece")
}

// cutOffError returns the error of a reply that was cut off where a whole one is needed.
func (c *call) cutOffError(t turnResult) error {
	return fault.New(fault.Provider, "%s", c.cutOffText(t)).WithHint("%s", c.moreOutput(t))
}

// cutOffText returns a sentence on what the output limit did to a reply.
func (c *call) cutOffText(t turnResult) string {
	what := "the answer of " + c.model.ID
	switch {
	case len(t.Message.ToolCalls) > 0:
		what = "a tool call of " + c.model.ID
	case t.Message.Text() == "" && !t.Window:
		return "model " + c.model.ID + " wrote nothing before it reached " + c.limit(t) + ": its reasoning counts, too"
	}
	if t.Window {
		return what + " was cut off because the context window of the model is full" + c.window()
	}
	return what + " was cut off at " + c.limit(t)
}

// limit returns the name of the limit that a reply has reached.
func (c *call) limit(t turnResult) string {
	switch {
	case t.Limit > 0:
		return fmt.Sprintf("the output limit of the request (max_tokens of %d)", t.Limit)
	case c.model.OutputLimit > 0:
		return fmt.Sprintf("the model's own output limit (%d tokens)", c.model.OutputLimit)
	case t.Usage.OutputTokens > 0 && !t.Usage.Estimated:
		return fmt.Sprintf("the server's own output limit (after %d tokens)", t.Usage.OutputTokens)
	}
	return "the server's own output limit"
}

// window returns the size of the context window, if it is known, in brackets.
func (c *call) window() string {
	if c.model.MaxInputTokens == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d tokens)", c.model.MaxInputTokens)
}

// moreOutput returns how to get a longer reply.
func (c *call) moreOutput(t turnResult) string {
	if t.Window {
		return "compress the session (.compress session), begin a new one, attach less, or take a model with a larger context window"
	}
	if t.Limit > 0 && t.Limit == c.model.OutputLimit {
		return "the model writes no more at once: ask for less, or for the rest"
	}
	if t.Limit > 0 && t.Limit == c.rc.MaxOutputTokens {
		return "--max-output, .set max_output_tokens or the request asks for it: raise it there, or ask for less"
	}
	return "to raise it, set max_output_tokens and require_max_tokens: true for the model in config.yaml, or ask for less"
}
