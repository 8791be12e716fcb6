package conversation

import (
	"cmp"
	"context"

	"loki/internal/agent/workspace/skill"
	"loki/internal/base/fault/steps"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
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
// the session to its threshold. Sessions of interactive conversations are compressed after a turn
// instead, see [Conversation.Tell].
func (t *turn) compress(ctx context.Context) error {
	c := t.c
	if c.session == nil || t.kit.Foreign != nil || c.values.dryRun || c.options.Interactive || !c.session.NeedsCompression(c.threshold(), t.q.User) {
		return nil
	}
	_, used, err := c.compact(ctx, t.rc.Events, t.rc.Steps.At("compress"), c.todoRecap(t.q.Todo))
	t.spent = used
	return err
}

// compact is recap with events. If it fails the user is warned and the session stays as long as it is;
// an error is only that of the emitter, or the end of ctx.
func (c *Conversation) compact(ctx context.Context, events event.Scope, st steps.Steps, listed string) (done session.Compressed, used chat.Usage, err error) {
	if err := events.Emit(ctx, event.CompressionStarted{Model: c.recapModel(), Tokens: c.session.Tokens()}); err != nil {
		return done, used, err
	}
	done, used, err = c.recap(ctx, st, listed)
	if ctx.Err() != nil {
		return done, used, ctx.Err()
	}
	finished := event.CompressionFinished{Messages: done.Messages, Before: done.Before, After: done.After, Recap: done.Recap, Usage: used}
	if err != nil {
		finished.Error = err.Error()
	}
	if emitErr := events.Emit(ctx, finished); emitErr != nil || err == nil {
		return done, used, emitErr
	}
	return done, used, events.Emit(ctx, event.Warning{Text: "the session stays as long as it is: " + err.Error()})
}

// recap replaces the older turns of the session by a recap. What is said meanwhile is not part of
// the conversation, so it goes to no emitter. Listed is the todo list that the recap has, "" for none.
func (c *Conversation) recap(ctx context.Context, st steps.Steps, listed string) (done session.Compressed, used chat.Usage, err error) {
	how := c.service.Compression
	done, err = c.session.Compress(ctx, session.Compaction{
		Summarize: func(ctx context.Context, messages []chat.Message) (string, chat.Usage, error) {
			rc := engine.RequestContext{
				Model: c.recapModel(), Steps: st, Events: event.NewScope(event.Discard, event.Source{}, nil), Hooks: c.hooks(),
			}
			reply, err := c.engine().Run(ctx, &rc, engine.Request{Messages: messages, Whole: true})
			used = reply.Usage
			return reply.Text, reply.Usage, err
		},
		SummarizationPrompt:  how.Prompt,
		SummaryContextPrompt: how.ContextPrompt,
		Carry:                skill.Carry,
		Todo:                 listed,
	})
	if err == nil {
		c.tracker.Reset() // its recap need not have them
	}
	return done, used, err
}

// recapModel returns the id of the model that writes recaps.
func (c *Conversation) recapModel() string {
	return cmp.Or(c.service.Compression.Model, c.Settings().Model)
}

// threshold returns from how many tokens on the session is compressed, 0 for never: its own
// threshold, else the configuration's, else that of the model that it is about to use.
func (c *Conversation) threshold() int {
	if t := cmp.Or(c.session.Settings().CompressionThreshold, c.values.threshold); t != nil {
		return *t
	}
	return session.Threshold(c.inputLimit(c.Settings().Model))
}
