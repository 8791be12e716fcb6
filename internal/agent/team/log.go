package team

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
)

// entry is what one call did: its result, and what it changed. The state of a team is what the
// entries of its log made of it.
type entry struct {
	Key       string          `json:"key"`          // of the call, unique in the team
	By        string          `json:"by,omitempty"` // id of the member that made it
	Op        string          `json:"op"`           // name of the tool, or what else the member did
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     string          `json:"error,omitempty"` // instead of a result

	Started  []start       `json:"started,omitempty"`
	Removed  *removal      `json:"removed,omitempty"`
	Sent     *letter       `json:"sent,omitempty"`
	Read     bool          `json:"read,omitempty"`  // By has emptied its inbox
	Tasks    []task        `json:"tasks,omitempty"` // of By, that are new or have changed
	Asked    *escalation   `json:"asked,omitempty"`
	AskedAt  time.Duration `json:"asked_at,omitempty"` // see escalation
	Answered *answer       `json:"answered,omitempty"`
	Used     chat.Usage    `json:"used,omitzero"` // by a summary for By

	waited  bool // the member did
	passing bool // it changes nothing and is not kept: the call is repeated on resume
}

// start says that a child of By was started.
type start struct {
	ID         string `json:"id"`
	Agent      string `json:"agent"`
	Prompt     string `json:"prompt"`
	Foreground bool   `json:"foreground,omitempty"` // By waits for it
	Worktree   bool   `json:"worktree,omitempty"`   // it works in a worktree, whatever its definition says

	member *Member // nil for one that is read back
	child  *Child  // likewise
}

// removal says that a child of By was collected or canceled.
type removal struct {
	ID    string     `json:"id"`
	Usage chat.Usage `json:"usage"`
	Work  *Work      `json:"work,omitempty"` // that can be merged
}

// letter is a message that a member sends.
type letter struct {
	To   string    `json:"to"` // id
	From string    `json:"from"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// answer ends an escalation.
type answer struct {
	ID       string `json:"id"`
	Text     string `json:"text,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"`
}

// commit puts e into the log, and makes it true. t.mu is held.
func (t *Team) commit(ctx context.Context, e *entry) error {
	if t.log.Recording() {
		step := steps.Step{Kind: steps.Note, Key: strconv.Itoa(t.entries + 1), Name: e.Op}
		if _, err := steps.Do(ctx, t.log, step, func(context.Context) (*entry, error) { return e, nil }); err != nil {
			return err
		}
		t.entries++
	}
	t.apply(e)
	return nil
}

// readLog brings back the state that the log leads to.
func (t *Team) readLog(ctx context.Context) error {
	for t.log.Recording() {
		e, found, err := steps.ReadNote[entry](ctx, t.log, strconv.Itoa(t.entries+1))
		if err != nil {
			return err
		}
		if !found {
			break
		}
		t.entries++
		t.known[e.Key] = &e
		t.apply(&e)
		// While the team works, usage is counted when a child ends.
		if by := t.members[e.By]; by != nil {
			by.used = by.used.Add(e.Used)
			if e.Removed != nil {
				by.used, by.below = by.used.Add(e.Removed.Usage), by.below.Add(e.Removed.Usage)
			}
		}
	}
	return nil
}

// apply makes e true. What the members did that have ended meanwhile is of no interest any more.
// t.mu is held.
func (t *Team) apply(e *entry) {
	by := t.members[e.By]
	if by == nil {
		return
	}
	for _, s := range e.Started {
		c := s.member
		if c == nil {
			c = newChild(by, s)
			t.ids[s.ID] = true
		}
		t.members[s.ID] = c
		if !s.Foreground {
			by.children = append(by.children, c)
		}
	}
	if r := e.Removed; r != nil {
		if r.Work != nil {
			by.works[r.ID] = r.Work.Branch
		}
		if i := slices.IndexFunc(by.children, func(c *Member) bool { return c.ID == r.ID }); i >= 0 {
			t.forget(by.children[i])
			by.children = slices.Delete(by.children, i, i+1)
		}
	}
	if e.Sent != nil {
		if to := t.members[e.Sent.To]; to != nil {
			to.inbox = append(to.inbox, *e.Sent)
		}
	}
	if e.Read {
		by.inbox = nil
	}
	for _, changed := range e.Tasks {
		by.tasks.put(changed)
	}
	if e.Asked != nil {
		e.Asked.member, e.Asked.asked = by, e.AskedAt
		if by.life != nil && by.clock.since.IsZero() {
			by.clock.before = max(by.clock.before, e.AskedAt)
		}
		t.escalations = append(t.escalations, e.Asked)
		t.wake()
	}
	if e.Answered != nil {
		t.answer(*e.Answered)
	}
}

// forget drops a child and its descendants. t.mu is held.
func (t *Team) forget(c *Member) {
	for _, below := range c.children {
		t.forget(below)
	}
	delete(t.members, c.ID)
}
