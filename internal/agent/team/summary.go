package team

import (
	"context"
	"fmt"

	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// summaryPrompt asks a model to shorten what a child returned.
const summaryPrompt = `You shorten the result of the agent %s for the agent that started it, which reads nothing but your text.
- Begin with the conclusion.
- Keep word for word: code, commands, file paths with line numbers, error messages, names, numbers and identifiers.
- Keep every concrete recommendation and every open question.
- Leave out filler, repetitions and thinking aloud.
- Use a list if there are several findings.
- Aim at less than 30 %% of the length. Add nothing of your own.`

// Shorten has a model, that of a request, shorten the output of a child. The user does not see it.
func Shorten(ctx context.Context, e *engine.Engine, rc engine.RequestContext, s Summary) (string, chat.Usage, error) {
	rc.Events = event.NewScope(event.Discard, s.Collector.Events.Source, nil)
	rc.Steps = s.Steps
	if s.Collector.Budget != nil {
		rc.Budget = s.Collector.Budget
	}
	reply, err := e.Run(ctx, &rc, engine.Request{Whole: true, Messages: []chat.Message{
		chat.Text(chat.System, fmt.Sprintf(summaryPrompt, s.Agent)),
		chat.Text(chat.User, s.Output),
	}})
	return reply.Text, reply.Usage, err
}
