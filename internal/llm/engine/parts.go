package engine

import (
	"strings"

	"loki/internal/llm/chat"
)

// partsBuilder builds the parts of a message from pieces, in the order of the pieces.
type partsBuilder struct {
	parts []chat.Part
	open  strings.Builder // the text of the last part so far
}

func (b *partsBuilder) text(s string) { b.add(chat.TextPart, s) }

// reasoning adds a piece of reasoning; a signature ends the part it belongs to.
func (b *partsBuilder) reasoning(s, signature string) {
	b.add(chat.ReasoningPart, s)
	if signature != "" {
		b.parts[len(b.parts)-1].Signature = signature
	}
}

func (b *partsBuilder) add(t chat.PartType, s string) {
	if n := len(b.parts); n == 0 || b.parts[n-1].Type != t || b.parts[n-1].Signature != "" {
		b.close()
		b.parts = append(b.parts, chat.Part{Type: t})
	}
	b.open.WriteString(s)
}

func (b *partsBuilder) close() {
	if n := len(b.parts); n > 0 {
		b.parts[n-1].Text = b.open.String()
		b.open.Reset()
	}
}

func (b *partsBuilder) finish() []chat.Part {
	b.close()
	return b.parts
}
