package mcp

import "time"

// Metrics counts the work of a pool.
type Metrics struct {
	Started       int64 `json:"started"`        // connections made
	ActiveHits    int64 `json:"active_hits"`    // acquires that shared a connection in use, or one about to be made
	IdleHits      int64 `json:"idle_hits"`      // acquires that took an idle connection
	Misses        int64 `json:"misses"`         // acquires that made a connection
	IdleEvictions int64 `json:"idle_evictions"` // idle for too long
	CapEvictions  int64 `json:"cap_evictions"`  // too many were idle
	HealthOK      int64 `json:"health_ok"`
	HealthFailed  int64 `json:"health_failed"`
}

// HitRate returns the share of acquires that did not have to wait for a new connection, 0
// to 1; 0 without acquires.
func (m Metrics) HitRate() float64 {
	hits := m.ActiveHits + m.IdleHits
	if hits+m.Misses == 0 {
		return 0
	}
	return float64(hits) / float64(hits+m.Misses)
}

// Metrics returns the counts so far.
func (p *Pool) Metrics() Metrics {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.metrics
}

// Plus returns the sum of two counts, such as those of a pool and of the one that it replaces.
func (m Metrics) Plus(n Metrics) Metrics {
	return Metrics{
		Started: m.Started + n.Started, ActiveHits: m.ActiveHits + n.ActiveHits, IdleHits: m.IdleHits + n.IdleHits, Misses: m.Misses + n.Misses,
		IdleEvictions: m.IdleEvictions + n.IdleEvictions, CapEvictions: m.CapEvictions + n.CapEvictions,
		HealthOK: m.HealthOK + n.HealthOK, HealthFailed: m.HealthFailed + n.HealthFailed,
	}
}

// Size returns how many connections are idle and in use, and whether more can be made.
func (p *Pool) Size() (idle, inUse int, alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle()), len(p.inUse()), p.phase == open
}

// Status is one connection of a pool.
type Status struct {
	Server    string    `json:"server"`
	Type      Type      `json:"type"`
	Users     int       `json:"users"`                // 0 for an idle one
	IdleSince time.Time `json:"idle_since,omitzero"`  // of an idle one
	Version   string    `json:"version,omitempty"`    // of the server, as it reports
	Protocol  string    `json:"protocol,omitempty"`   // version that was agreed on
	PID       int       `json:"pid,omitempty"`        // of a program
	Stale     bool      `json:"superseded,omitempty"` // closed when its last user is done
}
