package cli

import (
	"context"
	"io"

	"loki/internal/app"
	"loki/internal/catalog"
	"loki/internal/fault"
	"loki/internal/session"
	"loki/internal/yamldoc"
)

// sessionInfo prints the session that --session names as a YAML document, or the same as
// JSON.
func (c *command) sessionInfo(ctx context.Context) (err error) {
	conv := c.app.Converse(app.ConversationOptions{})
	if err := conv.UseSession(ctx, c.opts.session); err != nil {
		return err
	}
	s := conv.Session()
	if !s.Stored() {
		return session.NotFound(session.Alias(s.Name()))
	}
	facts := session.Facts{Path: c.app.SessionFile(s)}
	if m, err := c.app.Catalog.Resolve(conv.Settings().Model, catalog.Chat); err == nil {
		facts.MaxInputTokens = m.MaxInputTokens
	}
	text := s.Export(facts)
	if c.opts.output == outputText {
		_, err := io.WriteString(c.Out, text)
		return err
	}
	doc, err := yamldoc.Parse("session "+s.Name(), []byte(text))
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
