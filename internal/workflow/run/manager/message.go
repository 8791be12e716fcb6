package manager

import (
	"context"

	"loki/internal/workflow/run"
)

// Send sends a message to the turn of a run that is at work, see [run.Inbox]. One to a run that works at another server is on record when
// Send returns, and taken if the turn has not ended.
func (m *Manager) Send(ctx context.Context, id, name, text, key string) (run.Signal, error) {
	info, err := m.o.Store.Info(ctx, id)
	switch {
	case err != nil:
		return run.Signal{}, err
	case info.Kind == run.GraphRun || !info.Active || info.Status != run.Running:
		return run.Signal{}, run.Idle(id)
	}
	return m.inboxOf(id).Send(ctx, name, text, key)
}

// Withdraw withdraws a message that was not taken yet. It reports false if there is none.
func (m *Manager) Withdraw(ctx context.Context, id, message string) (bool, error) {
	_, ok, err := m.inboxOf(id).Withdraw(ctx, message)
	return ok, err
}

// inboxOf returns the inbox of a run at work.
func (m *Manager) inboxOf(id string) *run.Inbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.active[id]; a != nil {
		return a.inbox
	}
	return run.NewInbox(m.o.Store, id)
}
