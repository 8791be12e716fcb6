package team

import (
	"context"
	"errors"
	"slices"
	"sync"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Member is an agent in a team. The exported fields do not change once the member works.
type Member struct {
	ID     string      // as models and events name it; empty for the root
	Agent  string      // name
	Depth  int         // 0 for the root of a run, 1 for its children, ...
	Parent *Member     // nil for the root
	Steps  steps.Steps // record of a child's work; of the root, that of the task
	Events event.Scope // of the member's work
	Budget *run.Budget // nil bounds nothing

	team   *Team
	limits Limits

	// Of its children. The context ends with the member.
	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // their goroutines

	// The team's lock guards what follows.
	closed   bool
	children []*Member  // in the background and not collected, in the order of their start
	running  int        // of them, including the ones that are being started
	used     chat.Usage // what Close is going to return
	below    chat.Usage // by all descendants
	inbox    []letter
	works    map[string]string // branches of children that were collected, by their ids
	tasks    queue

	*life // nil for the root
}

// open makes m ready to have children, and starts those again that were at work when the run was
// interrupted.
func (m *Member) open(ctx context.Context) error {
	m.ctx, m.stop = context.WithCancelCause(ctx)
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range m.children {
		m.adopt(c)
		ended, err := c.readEnd(ctx)
		if err != nil {
			return err
		}
		if ended {
			m.used, m.below = m.used.Add(c.result.Usage), m.below.Add(c.result.Usage)
			continue
		}
		m.running++
		c.begin(nil)
	}
	t.dropDead()
	m.Budget.Spend(m.used)
	return nil
}

// Close cancels all children of m, waits for them, and returns what they and their descendants
// used, with what was spent on summaries for m. Called again it returns zero, so that nothing is
// counted twice: work that has a member closes it and adds that to its own usage.
func (m *Member) Close() chat.Usage {
	t := m.team
	t.mu.Lock()
	m.closed = true
	t.mu.Unlock()
	m.stop(errParentEnded)
	m.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	used := m.used
	m.used = chat.Usage{}
	return used
}

// child returns the child of m that has the id, nil if there is none. t.mu is held.
func (m *Member) child(id string) *Member {
	if i := slices.IndexFunc(m.children, func(c *Member) bool { return c.ID == id }); i >= 0 {
		return m.children[i]
	}
	return nil
}

// under reports whether m is a descendant of other.
func (m *Member) under(other *Member) bool {
	for p := m.Parent; p != nil; p = p.Parent {
		if p == other {
			return true
		}
	}
	return false
}

// The reasons why children are canceled.
var (
	errCanceled    = errors.New("canceled by its parent")
	errParentEnded = errors.New("canceled, because its parent ended")
)
