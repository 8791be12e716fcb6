package builtin

import (
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// imageMark replaces an image in an echo. It has a line of its own.
const imageMark = "[image]"

// echoReply repeats the last user message, word by word.
func echoReply(req provider.Request) reply {
	var b strings.Builder
	before := chat.PartType("")
	for _, part := range lastUser(req).Parts {
		text := part.Text
		switch part.Type {
		case chat.ImagePart:
			text = imageMark
		case chat.TextPart:
		default:
			continue
		}
		if before != "" && (before == chat.ImagePart || part.Type == chat.ImagePart) {
			b.WriteByte('\n')
		}
		b.WriteString(text)
		before = part.Type
	}
	return textReply(req, wordChunks(b.String()))
}
