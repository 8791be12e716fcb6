package command

import (
	"context"

	"loki/internal/chat"
	"loki/internal/conversation"
)

func chatCommands() []Command { return nil }

// chat sends a prompt to the model.
func (c *Console) chat(ctx context.Context, text string) error {
	asked := conversation.Asked{User: chat.Text(chat.User, text), Text: text}
	answer, err := c.conv.Ask(ctx, conversation.Question{Asked: asked})
	if err != nil {
		return err
	}
	return c.conv.Record(context.WithoutCancel(ctx), asked, answer)
}
