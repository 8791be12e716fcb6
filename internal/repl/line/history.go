package line

import (
	"context"
	"sync"
)

// HistoryLimit is how many entries a [History] keeps.
const HistoryLimit = 1000

// History holds earlier submissions, the oldest first, at most [HistoryLimit]. The zero value is
// empty and in memory only. Its methods may be called by several goroutines.
type History struct {
	mu      sync.Mutex
	entries []string
}

// OpenHistory returns the history that is kept in file, which need not exist.
func OpenHistory(ctx context.Context, file string) (*History, error) {
	return new(History), nil
}

// Add adds an entry, unless it is blank or equals the one before.
func (h *History) Add(ctx context.Context, entry string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, entry)
}

// Entries returns the entries, the oldest first.
func (h *History) Entries() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.entries...)
}
