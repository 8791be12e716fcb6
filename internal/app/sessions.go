package app

import (
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
