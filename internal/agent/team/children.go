package team

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// idArgument is the arguments of tools for one agent.
type idArgument struct {
	ID string `json:"id"`
}

// one returns the child that a call is about, or a refusal. t.mu is held.
func (m *Member) one(call tool.Call) (*Member, any, error) {
	args, err := decode[idArgument](call, "id")
	if err != nil {
		return nil, nil, err
	}
	c := m.child(args.ID)
	if c == nil {
		return nil, m.unknown(args.ID), nil
	}
	return c, nil, nil
}

// unknown is the refusal for an id that none of m's children has.
func (m *Member) unknown(id string) refusal {
	var ids []string
	for _, c := range m.children {
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 {
		return refuse("You have no agent with the id %q: none is running, and all results were taken.", id)
	}
	return refuse("You have no agent with the id %q. Perhaps its result was taken already. Your agents: %s.", id, strings.Join(ids, ", "))
}

// spawned is the result of a spawn.
type spawned struct {
	Status  string `json:"status"` // ok
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Message string `json:"message"`
}

func (m *Member) spawn(ctx context.Context, call tool.Call, e *entry) (any, error) {
	args, err := decode[struct {
		Agent, Prompt string
		TaskID        json.RawMessage `json:"task_id"`
		Worktree      bool
	}](call, "agent", "prompt")
	if err != nil {
		return nil, err
	}
	var t task
	id := plain(args.TaskID)
	if id != "" {
		var known bool
		t, known = m.tasks.find(id)
		switch {
		case !known:
			return refuse("There is no task %q in your queue, so no agent was started.", id), nil
		case t.Status == completed:
			return refuse("Task %d is completed, so no agent was started.", t.ID), nil
		case len(t.BlockedBy) > 0:
			return refuse("Task %d is blocked by %s, so no agent was started.", t.ID, strings.Join(names(t.BlockedBy), ", ")), nil
		}
	}
	result, s, err := m.launch(call.Key, start{Agent: args.Agent, Prompt: args.Prompt, Worktree: args.Worktree}, len(e.Started))
	if err != nil || s == nil {
		return result, err
	}
	e.Started = append(e.Started, *s)
	if id != "" {
		t.Status, t.Owner = inProgress, s.ID
		e.Tasks = append(e.Tasks, t)
	}
	return result, nil
}

// launch prepares a child in the background, as one of several that the call with the key starts;
// others are on their way already. Without a child the result says why, or the error. The lock is
// given up meanwhile.
func (m *Member) launch(key string, wanted start, others int) (result any, s *start, err error) {
	t, agent := m.team, wanted.Agent
	switch limit := m.limits; {
	case m.running+others >= limit.MaxConcurrent:
		return refuse("%d of at most %d agents are running, so agent %s was not started. Collect or cancel one of them, then try again.", m.running+others, limit.MaxConcurrent, agent), nil, nil
	case m.Depth+1 > limit.MaxDepth:
		return refuse("Agent %s would be at depth %d, and at most %d is allowed. Do the work yourself.", agent, m.Depth+1, limit.MaxDepth), nil, nil
	case !m.maySpawn(agent):
		return refuse("You may not start agent %q. You may start: %s.", agent, orNone(limit.Spawnable)), nil, nil
	case m.closed:
		return nil, nil, errClosed
	}
	if others > 0 {
		key = fmt.Sprintf("%s/%d", key, others)
	}
	s = &wanted
	s.ID = t.id("agent_"+agent, key)
	m.running += others + 1 // the place is taken while the child is prepared
	s.child, err = m.prepare(s)
	m.running -= others + 1
	if err != nil {
		return nil, nil, err
	}
	return spawned{"ok", s.ID, agent, fmt.Sprintf("The agent works in the background. Take its result with agent__collect and the id %q, which waits for it; agent__check does not wait.", s.ID)}, s, nil
}

// maySpawn reports whether the limits of m let it start the agent.
func (m *Member) maySpawn(agent string) bool {
	for _, name := range m.limits.Spawnable {
		if name == agent {
			return true
		}
	}
	return m.limits.Spawnable == nil
}

// orNone lists names.
func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// waiting is the result about a child that works.
type waiting struct {
	Status  string        `json:"status"` // pending
	ID      string        `json:"id"`
	Message string        `json:"message"`
	Pending []*escalation `json:"pending_escalations,omitempty"`
}

// collected is the result of a child.
type collected struct {
	Status     string `json:"status"` // completed
	ID         string `json:"id"`
	Agent      string `json:"agent"`
	ExitStatus string `json:"exit_status"`
	Outcome    Status `json:"outcome"`
	Output     string `json:"output"`
	*Work             // of an agent in a worktree
}

func (m *Member) check(ctx context.Context, call tool.Call, e *entry) (any, error) {
	c, refused, err := m.one(call)
	if c == nil {
		return refused, err
	}
	if !c.ended {
		return m.stillWorks(c), nil
	}
	if c.result.Status == Suspended {
		return waiting{"pending", c.ID, "The agent waits for the user, who is not there. Do what you can do without it; agent__collect ends your work until the user has answered.", nil}, nil
	}
	return m.take(ctx, c, e), nil
}

// stillWorks is the result about a child that has not ended.
func (m *Member) stillWorks(c *Member) waiting {
	w := waiting{"pending", c.ID, "The agent is still working. Continue with other work, or wait for it with agent__collect.", m.pendingQuestions()}
	if len(w.Pending) > 0 {
		w.Message = "Agents are blocked until you answer their questions. Answer each with agent__reply_escalation, then collect again."
	}
	return w
}

func (m *Member) collect(ctx context.Context, call tool.Call, e *entry) (any, error) {
	c, refused, err := m.one(call)
	if c == nil {
		return refused, err
	}
	t := m.team
	for {
		switch {
		case c.ended && c.result.Status != Suspended:
			return m.take(ctx, c, e), nil
		case len(m.pendingQuestions()) > 0:
			return m.stillWorks(c), nil
		case c.ended && m.running == 0: // what else can be done without the user was done
			return nil, c.err
		}
		changed := t.changed
		t.outside(func() {
			if !e.waited {
				e.waited, err = true, m.Events.Emit(ctx, event.AgentWaits{On: []string{c.ID}})
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		})
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
}

// take returns the result of a child that has ended. The lock is given up meanwhile.
func (m *Member) take(ctx context.Context, c *Member, e *entry) any {
	r := c.result
	var output string
	var used chat.Usage
	m.team.outside(func() { output, used = m.summarize(ctx, r) })
	m.used = m.used.Add(used)
	e.Used = used
	if len(output) > maxResult {
		head, tail := text.Ends(output, maxResult)
		output = fmt.Sprintf("%s\n[%d of %d bytes left out here]\n%s", head, len(output)-len(head)-len(tail), len(output), tail)
	}
	if r.Status == OutOfBudget && m.Budget.Refused(c.err) {
		e.passing = true // the run cannot continue; once it can, the child resumes too
	} else {
		e.Removed = &removal{ID: c.ID, Usage: r.Usage, Work: r.Work}
	}
	return collected{"completed", c.ID, c.Agent, r.exitStatus(), r.Status, output, r.Work}
}

// merge merges the branch of a child that was collected. The lock is given up meanwhile.
func (m *Member) merge(ctx context.Context, call tool.Call, e *entry) (any, error) {
	args, err := decode[idArgument](call, "id")
	if err != nil {
		return nil, err
	}
	branch := m.works[args.ID]
	if branch == "" || m.team.o.Merge == nil {
		return refuse("The agent %q has left no branch, or you have not taken its result yet with agent__collect.", args.ID), nil
	}
	m.team.outside(func() { err = m.team.o.Merge(ctx, m, branch) })
	if err != nil {
		return nil, err
	}
	return success{"ok", fmt.Sprintf("The branch %s was merged.", branch)}, nil
}

func (m *Member) list(context.Context, tool.Call, *entry) (any, error) {
	type item struct {
		ID     string `json:"id"`
		Agent  string `json:"agent"`
		Status string `json:"status"` // running, finished
	}
	items := make([]item, len(m.children))
	for i, c := range m.children {
		items[i] = item{c.ID, c.Agent, "running"}
		if c.ended {
			items[i].Status = "finished"
		}
	}
	return struct {
		Active int    `json:"active_count"`
		Max    int    `json:"max_concurrent"`
		Agents []item `json:"agents"`
	}{m.running, m.limits.MaxConcurrent, items}, nil
}

func (m *Member) stopChild(ctx context.Context, call tool.Call, e *entry) (any, error) {
	c, refused, err := m.one(call)
	if c == nil {
		return refused, err
	}
	message := fmt.Sprintf("Agent %s had finished. Its result is dropped.", c.Agent)
	if !c.ended {
		message = fmt.Sprintf("Agent %s was stopped.", c.Agent)
		c.cancel(errCanceled)
		m.team.outside(func() {
			select {
			case <-c.done:
			case <-ctx.Done():
			}
		})
	}
	e.Removed = &removal{ID: c.ID, Usage: c.result.Usage}
	return success{"ok", message}, nil
}

func (m *Member) listAvailable(ctx context.Context, _ tool.Call, _ *entry) (any, error) {
	list := []Candidate{}
	if available := m.team.o.Available; available != nil {
		var all []Candidate
		var err error
		m.team.outside(func() { all, err = available(ctx) })
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if m.maySpawn(a.Name) {
				list = append(list, a)
			}
		}
	}
	return struct {
		Agents []Candidate `json:"agents"`
	}{list}, nil
}
