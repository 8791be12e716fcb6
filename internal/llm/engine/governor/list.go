package governor

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Status is what is known of a limit.
type Status struct {
	Client      string             `json:"client"`
	Model       string             `json:"model"`
	Concurrency int                `json:"concurrency"` // calls at once
	AtWork      int                `json:"at_work"`     // calls
	Waiting     int                `json:"waiting"`
	Remaining   map[string]float64 `json:"remaining,omitempty"` // by limit
	Reset       time.Time          `json:"reset,omitzero"`      // when nothing is used of them
	PausedUntil time.Time          `json:"paused_until,omitzero"`
	Breaker     string             `json:"breaker"` // closed, open or trying
	Calls       int                `json:"calls"`
	Refused     int                `json:"refused"`
}

// status returns what is known at a time.
func (s *state) status(now time.Time) Status {
	st := Status{Client: s.Client, Model: s.Model, Concurrency: cmp.Or(s.AtOnce, firstAtOnce), AtWork: s.heldCalls(), Calls: s.Calls, Refused: s.Refusals, Breaker: "closed"}
	for _, p := range s.Shares {
		st.Waiting += p.Waiting
	}
	for kind, b := range s.Buckets {
		if st.Remaining == nil {
			st.Remaining = make(map[string]float64)
		}
		level := b.level(now)
		if st.Remaining[kind] = max(0, float64(int(level))); b.Rate > 0 && level < b.Limit {
			if at := now.Add(seconds((b.Limit - level) / b.Rate)).UTC().Truncate(time.Second); at.After(st.Reset) {
				st.Reset = at
			}
		}
	}
	if s.Paused.After(now) {
		st.PausedUntil = s.Paused.UTC().Truncate(time.Second)
	}
	switch {
	case s.OpenTime == 0:
	case now.Before(s.Open):
		st.Breaker = "open"
	default:
		st.Breaker = "trying"
	}
	return st
}

// List returns what is known of all limits that processes share, and of the limits of this process alone, by client and model.
func (g *Governor) List(ctx context.Context) ([]Status, error) {
	now := time.Now()
	list := []Status{}
	if g.database.has() {
		all, err := g.database.list(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			list = append(list, s.status(now))
		}
	}
	for _, path := range g.files() {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if data, err := os.ReadFile(path); err == nil && json.Valid(data) {
			s := readState(data, now)
			for id := range s.Shares {
				if g.process.isGone(id) {
					delete(s.Shares, id)
				}
			}
			list = append(list, s.status(now))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.limits {
		l.mu.Lock()
		if own, ok := l.store.(*memory); ok {
			list = append(list, own.s.status(now))
		}
		l.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Model, b.Model)) })
	return list, g.database.err
}

// files returns the files of limits that processes share.
func (g *Governor) files() []string {
	if g.process.dir == "" || g.database.has() {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(g.process.dir, "*.json"))
	return files
}

// Reset forgets what processes share about the limits of a client, but not the calls under way. It returns how many limits that are.
func (g *Governor) Reset(ctx context.Context, client string) (n int, err error) {
	if g.database.has() {
		return g.resetRows(ctx, client)
	}
	for _, path := range g.files() {
		ctx, cancel := context.WithTimeout(ctx, lockTime)
		file, data, openErr := readLocked(ctx, path)
		cancel()
		if openErr != nil {
			err = cmp.Or(err, openErr)
			continue
		}
		if s := readState(data, time.Now()); s.Client == client {
			n++
			s.forget()
			err = cmp.Or(err, s.write(file, len(data)))
		}
		_ = file.Close()
	}
	return n, cmp.Or(err, g.database.err)
}

// forget keeps only the calls under way.
func (s *state) forget() { *s = state{Client: s.Client, Model: s.Model, Shares: s.Shares} }

// resetRows is [Governor.Reset] in a database.
func (g *Governor) resetRows(ctx context.Context, client string) (n int, err error) {
	all, err := g.database.list(ctx)
	for account, s := range all {
		if s.Client != client {
			continue
		}
		n++
		r := row{rows: g.database.rows, account: account}
		if err := r.change(ctx, (*state).forget); err != nil {
			return n, err
		}
	}
	return n, err
}
