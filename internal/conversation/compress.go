package conversation

import (
	"cmp"
	"context"

	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/session"
)

// Compression says how sessions that have become too long are compressed. The zero value of
// a field is its default.
type Compression struct {
	Threshold     *int   // tokens, 0 for never; nil leaves it to the model that is about to be used
	Model         string // id of the one that writes recaps; "" means that of the conversation
	Prompt        string // that asks for a recap
	ContextPrompt string // that introduces the recap
}

// compress replaces the older turns of the session by a recap if the question would take
// the session to its threshold. If that fails the user is warned and the session stays as
// long as it is; an error is only that of the emitter, or the end of ctx. What is said
// meanwhile is not part of the conversation, so it goes to no emitter.
func (t *turn) compress(ctx context.Context) error {
	c, how := t.c, t.c.service.Compression
	if c.session == nil || c.service.DryRun || !c.session.NeedsCompression(c.threshold(), t.q.User) {
		return nil
	}
	events, model := t.rc.Events, cmp.Or(how.Model, c.Settings().Model)
	if err := events.Emit(ctx, event.CompressionStarted{Model: model, Tokens: c.session.Tokens()}); err != nil {
		return err
	}
	done, err := c.session.Compress(ctx, session.Compaction{
		Summarize: func(ctx context.Context, messages []chat.Message) (string, chat.Usage, error) {
			rc := engine.RequestContext{
				Model: model, Steps: t.rc.Steps.At("compress"), Events: event.NewScope(event.Discard, event.Source{}, nil),
			}
			reply, err := c.service.Engine.Run(ctx, &rc, engine.Request{Messages: messages, Whole: true})
			t.spent = reply.Usage
			return reply.Text, reply.Usage, err
		},
		SummarizationPrompt:  how.Prompt,
		SummaryContextPrompt: how.ContextPrompt,
		Todo:                 t.listed(),
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	finished := event.CompressionFinished{Messages: done.Messages, Before: done.Before, After: done.After, Recap: done.Recap, Usage: t.spent}
	if err != nil {
		finished.Error = err.Error()
	}
	if emitErr := events.Emit(ctx, finished); emitErr != nil || err == nil {
		return emitErr
	}
	return events.Emit(ctx, event.Warning{Text: "the session stays as long as it is: " + err.Error()})
}

// threshold returns from how many tokens on the session is compressed, 0 for never: its own
// threshold, else the configuration's, else that of the model that it is about to use.
func (c *Conversation) threshold() int {
	if t := cmp.Or(c.session.Settings().CompressionThreshold, c.service.Compression.Threshold); t != nil {
		return *t
	}
	return session.Threshold(c.service.InputLimit(c.Settings().Model))
}
