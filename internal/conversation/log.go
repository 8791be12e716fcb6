package conversation

import (
	"context"
	"fmt"
	"time"

	"loki/internal/conversation/session"
)

// Which sessions without a name are kept in a scope, and for how long after their last use.
const (
	maxUnnamed   = 1000
	unnamedBytes = 256 << 20 // of their messages
	unnamedAge   = 90 * 24 * time.Hour
)

func unnamedLimits() session.Limits {
	return session.Limits{Sessions: maxUnnamed, Bytes: unnamedBytes, Since: time.Now().Add(-unnamedAge)}
}

// promptStore is a store of sessions that keeps the log of prompts.
type promptStore interface {
	Record(ctx context.Context, scope session.Scope, initial session.Settings, t session.Turn, limits session.Limits) (session.ID, error)
}

// logs reports whether questions outside of sessions are kept as sessions without a name.
func (c *Conversation) logs() bool {
	save := c.values.saveSession
	return c.values.promptLog && (save == nil || *save) && !c.service.InDatabase && !c.values.dryRun && !c.service.Unkept && !c.options.Unrecorded && c.options.Owner == nil
}

// log keeps a turn outside of sessions as a session without a name and returns the id of that. A turn that cannot be kept is a
// warning: its answer has been given.
func (c *Conversation) log(ctx context.Context, settings session.Settings, t session.Turn) (id session.ID, ok bool) {
	store, err := c.service.Sessions()
	if err == nil {
		prompts, can := store.(promptStore)
		if !can {
			return "", true
		}
		id, err = prompts.Record(ctx, "", settings, t, unnamedLimits())
	}
	if err != nil {
		c.warn(ctx, fmt.Errorf("the question and its answer are not kept, so --search and --continue will not find them (prompt_log: false keeps none): %w", err))
	}
	return id, err == nil
}

// inForce returns what is in force, for a session that begins with it.
func (c *Conversation) inForce() session.Settings {
	s := session.Settings{Settings: c.Settings()}
	if c.role != nil {
		s.RoleName = c.role.Name
	}
	if c.agent != nil {
		c.agentSettings(&s)
	}
	return s
}
