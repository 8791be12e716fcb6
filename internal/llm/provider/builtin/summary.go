package builtin

import (
	"slices"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/builtin/extract"
)

// noText is the answer to a request without a text to summarize.
const noText = "There is no text to summarize: put it into the message, after the instruction."

// extractReply summarizes the text of the last user message, sentence by sentence.
//
// The system message is the instruction. The user message may hold one too, as
// [extract.SplitAsk] finds it, which wins where both say how long the summary
// may be. Without a system message a user message that is nothing but an instruction
// has no text. Of a question with passages, the text is the passages that the words of the question are in.
func extractReply(req provider.Request) reply {
	system := ""
	for _, m := range req.Messages {
		if m.Role == chat.System {
			system = m.Text()
		}
	}
	message := lastUser(req).Text()
	question, passages := extract.SplitPassages(message)
	if len(passages) > 0 {
		limits := extract.ReadLimits(question, system)
		return textReply(req, slices.Values(limits.Layout(extract.Answer(question, passages, limits))))
	}
	ask, text := extract.SplitAsk(message)
	if system == "" && ask == "" && extract.IsAsk(message) {
		ask, text = message, ""
	}
	limits := extract.ReadLimits(ask, system)
	sentences := extract.Summarize(text, limits)
	if len(sentences) == 0 {
		return textReply(req, slices.Values([]string{noText}))
	}
	return textReply(req, slices.Values(limits.Layout(sentences)))
}
