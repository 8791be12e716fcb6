package cli

import (
	"context"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/conversation"
)

// sessionInfo prints the session that --session names as a YAML document, or the same as
// JSON.
func (c *command) sessionInfo(ctx context.Context) (err error) {
	doc, v, err := c.exportSession(ctx, c.app.Conversations().Begin(conversation.Options{}))
	if err != nil {
		return err
	}
	return c.print(v, c.printable(doc))
}

// printable returns a document as standard output can show it.
func (c *command) printable(doc string) string {
	if c.OutTerminal {
		return text.Printable(doc)
	}
	return doc
}

// exportSession returns the session that --session names as a YAML document, and its value.
func (c *command) exportSession(ctx context.Context, conv *conversation.Conversation) (doc string, v value.Value, err error) {
	if err := conv.UseSession(ctx, c.opts.session); err != nil {
		return "", v, err
	}
	return conv.Export()
}

// roleInfo prints the role that the options name as the text of its file.
func (c *command) roleInfo() error {
	r, err := c.role()
	if err != nil {
		return err
	}
	return c.print(map[string]any{"name": r.Name, "file": value.OrNull(r.File), "text": r.Export()}, c.printable(r.Export()))
}
