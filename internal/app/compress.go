package app

import (
	"cmp"
	"context"

	"loki/internal/catalog"
	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/session"
)

// compress replaces the older turns of the session by a recap if the next message would
// take the session to its threshold. It returns what writing the recap used. If that
// fails the user is warned and the session stays as long as it is; an error is only that
// of the emitter, or the end of ctx. What is said meanwhile is not part of the
// conversation, so it goes to no emitter.
func (c *Conversation) compress(ctx context.Context, next chat.Message) (used chat.Usage, err error) {
	if c.session == nil || c.app.dryRun || !c.session.NeedsCompression(c.app.CompressionThreshold(c.session.Settings(), c.Settings().Model), next) {
		return chat.Usage{}, nil
	}
	cfg := c.app.Config
	model := cmp.Or(deref(cfg.SummarizationModel), c.Settings().Model)
	if err := c.events.Emit(ctx, event.CompressionStarted{Model: model, Tokens: c.session.Tokens()}); err != nil {
		return chat.Usage{}, err
	}
	done, err := c.session.Compress(ctx, session.Compaction{
		Summarize: func(ctx context.Context, messages []chat.Message) (string, chat.Usage, error) {
			reply, err := c.summarize(ctx, model, messages)
			used = reply.Usage
			return reply.Text, reply.Usage, err
		},
		SummarizationPrompt:  deref(cfg.SummarizationPrompt),
		SummaryContextPrompt: deref(cfg.SummaryContextPrompt),
	})
	if ctx.Err() != nil {
		return used, ctx.Err()
	}
	finished := event.CompressionFinished{Messages: done.Messages, Before: done.Before, After: done.After, Recap: done.Recap, Usage: used}
	if err != nil {
		finished.Error = err.Error()
	}
	if emitErr := c.events.Emit(ctx, finished); emitErr != nil || err == nil {
		return used, emitErr
	}
	return used, c.events.Emit(ctx, event.Warning{Text: "the session stays as long as it is: " + err.Error()})
}

// CompressionThreshold returns from how many tokens on a session with settings is
// compressed, 0 for never: its own threshold, else the configuration's, else that of the
// model that it is about to use.
func (a *App) CompressionThreshold(settings session.Settings, model string) int {
	switch {
	case settings.CompressionThreshold != nil:
		return *settings.CompressionThreshold
	case a.Config.CompressionThreshold != nil:
		return *a.Config.CompressionThreshold
	}
	m, err := a.Catalog.Resolve(model, catalog.Chat)
	if err != nil {
		return session.DefaultThreshold
	}
	return session.Threshold(m.MaxInputTokens)
}

// summarize returns the reply of the model that writes recaps.
func (c *Conversation) summarize(ctx context.Context, model string, messages []chat.Message) (engine.Reply, error) {
	e, err := c.app.Engine()
	if err != nil {
		return engine.Reply{}, err
	}
	rc := &engine.RequestContext{Model: model, Events: event.NewScope(event.Discard, event.Source{}, nil)}
	return e.Run(ctx, rc, engine.Request{Messages: messages, Whole: true})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
