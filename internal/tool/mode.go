package tool

import (
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
)

// Reading is a tool of which calls can be held at [sandbox.Read], so that they change nothing.
type Reading interface {
	Tool
	// Reading returns how a model sees the tool where its calls are held so; ok is false if nothing can hold them.
	Reading() (declared chat.Tool, ok bool)
}

// mode returns the mode of the conversation.
func (b *Box) mode() chat.Mode {
	if b.o.Mode == nil {
		return chat.ModeAsk
	}
	return b.o.Mode()
}

// atMost returns the highest level at which programs run, empty for any.
func (b *Box) atMost() sandbox.Level {
	if b.mode() == chat.ModePlan {
		return sandbox.Read
	}
	return b.o.AtMost
}

// offer returns how the model sees a tool now; ok is false if the tool is not offered in the mode of the conversation.
func (b *Box) offer(e entry) (declared chat.Tool, ok bool) {
	h := e.tool.Hints()
	if b.mode() != chat.ModePlan {
		return e.declared, !h.Planning
	}
	reading, confined := e.tool.(Reading)
	_, ofUser := e.tool.(FromFile)
	switch {
	case confined:
		return reading.Reading()
	case ofUser:
		return e.declared, false
	case strings.HasPrefix(e.declared.Name, "mcp__"):
		_, each := e.tool.(Judged)
		return e.declared, (h.ReadOnly || each) && b.o.Trusts != nil && b.o.Trusts(e.declared.Name)
	}
	return e.declared, h.ReadOnly && !h.Writes
}

// notOffered returns the result of a call of a tool that is not offered now.
func (b *Box) notOffered(e entry) outcome {
	if e.tool.Hints().Planning {
		return failure("%s was not run: there is no plan to propose outside of plan mode. Continue with the work.", e.declared.Name)
	}
	advice := " Use the tools that you are offered, and report what you find."
	if _, ok := b.tools().lookup("plan__propose"); ok {
		advice = " Use the tools that you are offered, then propose a plan with plan__propose."
	}
	return failure("%s was not run: plan mode is on, in which nothing is changed.%s", e.declared.Name, b.advice(advice))
}
