package app

import (
	"cmp"
	"context"
	"time"

	"loki/internal/run"
	"loki/internal/session"
	"loki/internal/session/filestore"
	"loki/internal/token"
)

// Sessions returns the store of sessions, always the same: whoever has a session open
// shares it.
func (a *App) Sessions() (session.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions == nil {
		store, err := filestore.New(filestore.Options{
			Options:  session.Options{Counter: token.For, Warn: a.warn, Hide: a.Hide},
			Dir:      a.Paths.SessionsDir,
			AgentDir: func(agent string) string { return a.Paths.Agent(agent).SessionsDir },
		})
		if err != nil {
			return nil, err
		}
		a.sessions = store
	}
	return a.sessions, nil
}

// sessionAlias returns the alias that the user means by name: also the name of a session
// of an older version that is called otherwise by now.
func (a *App) sessionAlias(store session.Store, name string) (session.Alias, error) {
	alias, err := session.ParseAlias(name)
	files, ok := store.(*filestore.Store)
	if err == nil || !ok {
		return alias, err
	}
	if old, oldErr := files.OldAlias("", name); oldErr == nil && old != "" {
		return old, nil
	}
	return "", err
}

// SessionSummary is what is known of a stored session at a glance.
type SessionSummary struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Turns    int       `json:"turns"`
	First    string    `json:"first,omitempty"` // text of the first question, cut as texts of runs are in a list
	Error    string    `json:"error,omitempty"` // why the session cannot be read
}

// SessionSummaries lists the sessions of an agent, or of none, by name.
func (a *App) SessionSummaries(ctx context.Context, agent string) ([]SessionSummary, error) {
	store, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	list, err := store.List(ctx, session.Scope(agent))
	if err != nil {
		return nil, err
	}
	summaries := make([]SessionSummary, 0, len(list))
	for _, m := range list {
		s := SessionSummary{Name: cmp.Or(string(m.Alias), string(m.ID)), ID: string(m.ID), Modified: m.Modified.UTC()}
		if files, ok := store.(*filestore.Store); ok {
			s.First, s.Turns, err = files.Glance(ctx, session.Scope(agent), m.ID)
			s.First = run.Head(s.First)
			if err != nil {
				s.Error = err.Error()
			}
		}
		summaries = append(summaries, s)
	}
	return summaries, ctx.Err()
}

// SessionFile returns where the settings of s are stored, "" if they are not.
func (a *App) SessionFile(s *session.Session) string {
	store, err := a.Sessions()
	if err != nil {
		return ""
	}
	if files, ok := store.(*filestore.Store); ok {
		return files.StateFile(s)
	}
	return ""
}

// hashURLs returns where pictures came from by the hashes of their data: URLs, as
// sessions keep it.
func hashURLs(images map[string]string) map[string]string {
	hashed := make(map[string]string, len(images))
	for url, source := range images {
		hashed[session.DataURLHash(url)] = source
	}
	return hashed
}
