package app

import (
	"crypto/sha256"
	"encoding/hex"

	"loki/internal/session"
	"loki/internal/session/filestore"
	"loki/internal/token"
)

// Sessions returns the store of sessions.
func (a *App) Sessions() (session.Store, error) {
	return filestore.New(filestore.Options{
		Options:  session.Options{Counter: token.For, Warn: a.warn},
		Dir:      a.Paths.SessionsDir,
		AgentDir: func(agent string) string { return a.Paths.Agent(agent).SessionsDir },
	})
}

// hashURLs returns where pictures came from by the hashes of their data: URLs, as
// sessions keep it.
func hashURLs(images map[string]string) map[string]string {
	hashed := make(map[string]string, len(images))
	for url, source := range images {
		sum := sha256.Sum256([]byte(url))
		hashed[hex.EncodeToString(sum[:])] = source
	}
	return hashed
}
