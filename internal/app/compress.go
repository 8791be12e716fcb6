package app

import (
	"cmp"
	"context"

	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/session"
)

// Compress replaces the older turns of the session by a recap if the session has grown
// beyond its threshold, and reports whether it did. What is said meanwhile is not part of
// the conversation, so it goes to no emitter.
func (c *Conversation) Compress(ctx context.Context) (done bool, err error) {
	cfg := c.app.Config
	if c.session == nil || c.app.dryRun || c.session.Verdict() == session.Discard && !c.session.Stored() ||
		!c.session.NeedsCompression(cfg.CompressionThreshold) {
		return false, nil
	}
	_, err = c.session.Compress(ctx, session.Compaction{
		Summarize:            c.summarize,
		KeepTokens:           c.threshold() / 2, // else two long turns would be compressed again and again
		SummarizationPrompt:  deref(cfg.SummarizationPrompt),
		SummaryContextPrompt: deref(cfg.SummaryContextPrompt),
	})
	return err == nil, err
}

// threshold returns from how many tokens on the session is compressed.
func (c *Conversation) threshold() int {
	if own := c.session.Settings().CompressionThreshold; own != nil {
		return *own
	}
	return c.app.Config.CompressionThreshold
}

// summarize returns the reply of the model that writes recaps.
func (c *Conversation) summarize(ctx context.Context, messages []chat.Message) (string, error) {
	e, err := c.app.Engine()
	if err != nil {
		return "", err
	}
	rc := &engine.RequestContext{
		Model:    cmp.Or(deref(c.app.Config.SummarizationModel), c.Settings().Model),
		NoStream: true,
		Events:   event.NewScope(event.Discard, event.Source{}, nil),
	}
	reply, err := e.Run(ctx, rc, engine.Request{Messages: messages})
	return reply.Text, err
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
