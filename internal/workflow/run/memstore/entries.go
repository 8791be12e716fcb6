package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"loki/internal/workflow/run"
)

// Put writes entries, all or nothing.
func (s *Store) Put(_ context.Context, entries ...run.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(entries)
}

func (s *Store) put(entries []run.Entry) error {
	after := maps.Clone(s.entries)
	for _, e := range entries {
		if before := after[e.Key]; before.Version != e.Version {
			return &run.ConflictError{Key: e.Key, Run: before.Run}
		}
		if delete(after, e.Key); !e.Gone {
			e.Version, e.At, e.Doc = e.Version+1, s.now().UTC(), slices.Clone(e.Doc)
			after[e.Key] = e
		}
	}
	s.entries = after
	return nil
}

// Entries returns the entries whose keys begin with prefix.
func (s *Store) Entries(_ context.Context, prefix string, limit int) (entries []run.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if strings.HasPrefix(e.Key, prefix) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b run.Entry) int { return cmp.Compare(b.Key, a.Key) })
	if limit > 0 {
		entries = entries[:min(limit, len(entries))]
	}
	return entries, nil
}

// DropEntries deletes entries that were written before a time.
func (s *Store) DropEntries(_ context.Context, prefix string, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.entries, func(key string, e run.Entry) bool { return strings.HasPrefix(key, prefix) && e.At.Before(before) })
	return nil
}
