package cli

import (
	"context"
	"io"

	"loki/internal/conversation"
	"loki/internal/fault"
	"loki/internal/yamldoc"
)

// sessionInfo prints the session that --session names as a YAML document, or the same as
// JSON.
func (c *command) sessionInfo(ctx context.Context) (err error) {
	conv := c.app.Conversations().Begin(conversation.Options{})
	if err := conv.UseSession(ctx, c.opts.session); err != nil {
		return err
	}
	text, err := conv.Export()
	if err != nil {
		return err
	}
	if c.opts.output == outputText {
		_, err := io.WriteString(c.Out, text)
		return err
	}
	doc, err := yamldoc.Parse("session "+conv.Session().Name(), []byte(text))
	if err != nil {
		return fault.Wrap(fault.Failure, err, "")
	}
	v, _ := doc.Root().Value()
	return printJSON(c.Out, v)
}

// roleInfo prints the role that the options name as the text of its file.
func (c *command) roleInfo() error {
	r, err := c.role()
	if err != nil {
		return err
	}
	if c.opts.output == outputText {
		_, err := io.WriteString(c.Out, r.Export())
		return err
	}
	return printJSON(c.Out, map[string]any{"name": r.Name, "file": orNull(r.File), "text": r.Export()})
}
