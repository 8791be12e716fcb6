package conversation

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"loki/internal/agent/team/todo"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/conversation/session/plan"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// Mode returns what tools may change for the next question.
func (c *Conversation) Mode() chat.Mode { return c.modeUnder(c.Settings()) }

// modeUnder returns the mode for settings. That programs write unasked is the user's consent and no setting.
func (c *Conversation) modeUnder(s chat.Settings) chat.Mode {
	switch {
	case s.Mode == chat.ModePlan:
		return chat.ModePlan
	case c.writes:
		return chat.ModeWrite
	}
	return chat.ModeAsk
}

// SetMode changes the mode of what is in force.
func (c *Conversation) SetMode(mode chat.Mode) error {
	if mode == chat.ModePlan && c.agent != nil && c.agent.Job != nil {
		return notOfGraphs(c.agent)
	}
	c.setMode(mode)
	return nil
}

// notOfGraphs is the error of a graph in plan mode.
func notOfGraphs(a *Agent) error {
	return fault.New(fault.Usage, "agent %s is a graph, which plans nothing: plan mode is for chats and plain agents", a.Name).
		WithHint("change the mode first: .mode ask")
}

func (c *Conversation) setMode(mode chat.Mode) {
	c.granted = false
	if c.writes = mode == chat.ModeWrite; c.writes {
		mode = chat.ModeAsk
	}
	if c.options.Settings.Mode != "" { // that of the command
		c.options.Settings.Mode = mode
	}
	c.tune(func(s *chat.Settings) { s.Mode = mode })
}

// planning is what plan mode is for a question while it is answered. It may be used from several goroutines.
type planning struct {
	mu       sync.Mutex
	now      chat.Mode      // the mode; an accepted plan changes it
	accepted *plan.Decision // nil for none
	waits    *plan.Plan     // that no user could be asked about; nil for none
	ask      run.Questions  // puts the questions about plans
}

// mode returns the mode at this moment.
func (t *turn) mode() chat.Mode {
	t.planning.mu.Lock()
	now := cmp.Or(t.planning.now, chat.ModeAsk)
	t.planning.mu.Unlock()
	if inherited := t.c.options.Mode; inherited != nil && now != chat.ModePlan {
		return inherited()
	}
	return now
}

// proposes reports whether the model of the question proposes plans. A child agent tells its parent what it has found.
func (t *turn) proposes() bool {
	child := t.c.options.Member != nil
	return t.q.Settings.Mode == chat.ModePlan && t.kit.Calling && t.kit.Foreign == nil && (t.calls || t.c.agent != nil) && !t.q.Aside && !child
}

// planTool returns the tool by which the model proposes plans.
func (t *turn) planTool() tool.Tool {
	// of returns the record of a call.
	of := func(call string) steps.Steps {
		return t.rc.Steps.At(strings.TrimSuffix(strings.TrimPrefix(call, t.rc.Steps.Key("")), "/call"))
	}
	return &plan.Propose{
		Accept: t.c.options.AcceptPlan, Decided: t.applyDecision,
		Ask: func(ctx context.Context, call, key string, q ask.Question) (string, error) {
			questions := t.planning.ask
			if questions.Steps = of(call).At(key); questions.Steps.Recording() {
				return questions.Ask(ctx, q)
			}
			return cmp.Or[ask.Asker](questions.Asker, ask.Unavailable{}).Ask(ctx, q)
		},
		Record: func(ctx context.Context, call string, decide func(context.Context) (plan.Decision, error)) (plan.Decision, error) {
			return steps.Do(ctx, of(call), steps.Step{Kind: steps.Note, Key: "plan", Name: "plan"}, func(ctx context.Context) (plan.Decision, error) {
				d, err := decide(ctx)
				if err == nil {
					err = tellDecision(ctx, d)
				}
				return d, err
			})
		},
		Waits: func(p plan.Plan) {
			t.planning.mu.Lock()
			defer t.planning.mu.Unlock()
			t.planning.waits = &p
		},
	}
}

// tellDecision emits what the user has decided about a plan: once, also if the run is resumed later.
func tellDecision(ctx context.Context, d plan.Decision) error {
	ev := d.Plan.Event("refused")
	ev.Edited, ev.Reason = d.Edited, d.Reason
	if d.Accepted {
		ev.State, ev.Mode = "accepted", string(d.Mode)
	}
	return event.FromContext(ctx).Emit(ctx, ev)
}

// applyDecision does what the user has decided about a plan.
func (t *turn) applyDecision(ctx context.Context, d plan.Decision) error {
	if !d.Accepted {
		return nil
	}
	t.planning.mu.Lock()
	t.planning.now, t.planning.accepted = d.Mode, &d
	t.planning.mu.Unlock()
	t.q.Todo.Enabled, t.q.Todo.Max = true, cmp.Or(t.q.Todo.Max, todo.DefaultMax)
	tasks := make([]string, len(d.Plan.Steps))
	for i, s := range d.Plan.Steps {
		tasks[i] = s.Text
	}
	return t.c.list.Fill(ctx, d.Plan.Title, tasks)
}

// laterTools returns tools that come in the course of the question: those of the todo list after an accepted plan.
func (t *turn) laterTools(more func() []tool.Tool) func() []tool.Tool {
	if !t.proposes() {
		return more
	}
	return func() []tool.Tool {
		var tools []tool.Tool
		if more != nil {
			tools = more()
		}
		t.planning.mu.Lock()
		defer t.planning.mu.Unlock()
		if t.planning.accepted != nil {
			tools = append(tools, todo.Tools(t.c.list)...)
		}
		return tools
	}
}

// endPlanning keeps an accepted plan and its mode for what comes after the question. A plan that waits for the user is the output of the
// question, which ends with err.
func (t *turn) endPlanning(ctx context.Context, err error) (output string, _ error) {
	t.planning.mu.Lock()
	d, waits := t.planning.accepted, t.planning.waits
	t.planning.mu.Unlock()
	c := t.c
	if d != nil {
		had := c.writes && !c.granted
		c.setMode(d.Mode)
		c.granted, c.continues = c.writes && !had, true
		if c.session != nil && !t.q.Aside {
			c.session.KeepPlan(d.Plan.Markdown(), c.Settings().Mode)
		}
	}
	t.keepTodo()
	if waits == nil || fault.CodeOf(err) != fault.Suspended {
		return "", err
	}
	if emitErr := t.rc.Events.Emit(ctx, waits.Event("proposed")); emitErr != nil {
		return "", emitErr
	}
	return waits.Markdown(), err
}
