package conversation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
)

// note remembers what was said as the last conversation of the present directory: the session,
// if it is stored, or else the turn, if turns outside of sessions are kept and the user does not
// decide later whether the session is. t is nil if nothing was said just now; logged is the session
// without a name that the turn became, "" for none.
func (c *Conversation) note(ctx context.Context, t *session.Turn, logged session.ID) {
	recents := c.service.Recents
	if recents.Path == "" || c.values.dryRun || c.service.Unkept || c.options.Unrecorded || c.options.Owner != nil || c.passing {
		return
	}
	r := session.Recent{Scope: c.Scope()}
	switch s := c.session; {
	case s != nil && s.Stored() && !s.Undecided():
		r.Session = s.ID()
	case logged != "":
		r.Session = logged
	case t == nil, c.messagesFile() == nil && !c.logs(), s != nil && (!s.Temporary() || s.Settings().SaveSession != nil || s.Verdict() == session.Query):
		return
	default:
		st := session.State{Settings: c.inForce()}
		r.State, r.Role, r.User, r.Reply, r.Usage, r.URLs = string(st.Encode()), t.Role, t.User, t.Reply, t.Usage, t.DataURLs
	}
	if c.agent != nil {
		if r.Agent = c.agent.Dir; c.agent.ByName() {
			r.Agent = c.agent.Name
		}
	}
	c.recent = &r
	dir, err := c.service.directory()
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was removed, so nothing is continued there
		return
	case err == nil:
		r.Dir = dir
		err = recents.Note(r)
	}
	if err != nil {
		c.warn(ctx, fmt.Errorf("--continue will not find this conversation: %w", err))
	}
}

// Recent returns what was remembered last of the conversation, for [Conversation.GoOn]; nil for nothing.
func (c *Conversation) Recent() *session.Recent { return c.recent }

// directory returns the present directory as the last conversations of directories are found by.
func (s *Service) directory() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if s.SourceOf != nil {
		dir = s.SourceOf(dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, nil
}

// Recent returns the last conversation of the present directory: with the agent of scope, which
// is "" for none, or with any if scope is nil. If there is none the error has code NotFound.
func (s *Service) Recent(scope *session.Scope) (session.Recent, error) {
	none := fault.New(fault.NotFound, "no conversation of this directory is remembered")
	dir, err := s.directory()
	if err != nil {
		return session.Recent{}, err
	}
	r, ok, err := s.Recents.Last(dir, scope)
	switch {
	case err != nil || ok:
	case !s.Save && !s.PromptLog:
		err = none.WithHint("with prompt_log: true in the configuration questions outside of sessions are remembered, too; loki --list sessions lists the sessions")
	default:
		err = none.WithHint("ask something first, or continue a session: loki --list sessions lists them")
	}
	return r, err
}

// GoOn continues the last conversation of a directory: in its session, or in a new one without
// a name that begins with its turn. The agent it was with has been entered.
func (c *Conversation) GoOn(ctx context.Context, r session.Recent) error {
	ctx = c.context(ctx)
	if c.session != nil {
		return fault.New(fault.Usage, "leave session %s before continuing another conversation", c.session.Name())
	}
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	if r.Session != "" {
		s, err := store.Open(ctx, r.Scope, r.Session)
		if errors.Is(err, session.ErrNotFound) {
			return fault.Wrap(fault.NotFound, err, "the last conversation of this directory was deleted").
				WithHint("loki --list sessions lists the sessions there are")
		}
		if err != nil {
			return err
		}
		return c.goOnIn(ctx, store, s)
	}
	settings, err := r.Settings()
	if err != nil {
		return err
	}
	s := store.Temp(r.Scope, settings)
	s.KeepUnnamed()
	kept := !c.values.dryRun && !c.service.Unkept
	if !kept {
		s.KeepNothing()
	}
	if err := s.Append(ctx, r.Turn()); err != nil {
		return err
	}
	if err := c.goOnIn(ctx, store, s); err != nil || !kept {
		return err
	}
	c.note(ctx, nil, "")
	if err := c.prune(ctx, store); err != nil {
		c.warn(ctx, fmt.Errorf("old sessions without a name cannot be deleted: %w", err))
	}
	return nil
}
