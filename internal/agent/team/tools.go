package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// maxResult is how many bytes of a child's output a model gets in one result.
const maxResult = tool.DefaultMaxOutput

// teamTool is a tool of a member.
type teamTool struct {
	member   *Member
	declared chat.Tool
	do       op
	instead  string // see [tool.Hints]
}

// op is what a call of a tool does. It returns the result, to be shown as JSON, or an error for the
// model to read, and says in e what it changes. The team's lock is held; an op that takes its time
// gives it up in between.
type op func(m *Member, ctx context.Context, call tool.Call, e *entry) (result any, err error)

// Declaration implements [tool.Tool].
func (t *teamTool) Declaration() chat.Tool { return t.declared }

// Hints implements [tool.Tool]. Children have limits of their own, so that no call lasts forever.
func (t *teamTool) Hints() tool.Hints {
	return tool.Hints{ReadOnly: true, Stateful: true, Writes: t.declared.Name == MergeTool, Instead: t.instead, Timeout: tool.Unlimited, MaxOutput: 2 * maxResult}
}

// Fit implements [tool.Fitter]: ids are read as numbers and as texts, so the tools check their arguments themselves.
func (t *teamTool) Fit(args json.RawMessage) (json.RawMessage, error) { return args, nil }

// Call implements [tool.Tool].
func (t *teamTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	m, team := t.member, t.member.team
	if known := team.known[call.Key]; known != nil && known.Op == t.declared.Name {
		return known.outcome()
	}
	e := &entry{Key: call.Key, By: m.ID, Op: t.declared.Name, Arguments: call.Arguments}
	err := t.make(ctx, call, e)
	if e.waited {
		err = cmp.Or(err, m.Events.Emit(context.WithoutCancel(ctx), event.AgentWaits{}))
	}
	if err != nil {
		return tool.Result{}, err
	}
	if err := m.report(ctx, e); err != nil {
		return tool.Result{}, err
	}
	return e.outcome()
}

// make makes a call and commits what it did. The error is that of a call that is repeated when the
// run is resumed.
func (t *teamTool) make(ctx context.Context, call tool.Call, e *entry) (err error) {
	m, team := t.member, t.member.team
	team.mu.Lock()
	defer team.mu.Unlock()
	defer func() {
		for _, s := range e.Started {
			if err != nil {
				s.member.cancel(err)
			}
		}
	}()
	result, err := t.do(m, ctx, call, e)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case fault.CodeOf(err) == fault.Suspended:
		return err
	case err != nil:
		e.Error = err.Error()
	default:
		if e.Result, err = value.Marshal(result); err != nil {
			return err
		}
	}
	if e.passing {
		return nil
	}
	if err := team.commit(ctx, e); err != nil {
		return err
	}
	for _, s := range e.Started {
		m.running++
		s.member.begin(s.child)
	}
	return nil
}

// outcome returns what the call of e returned.
func (e *entry) outcome() (tool.Result, error) {
	if e.Error != "" {
		return tool.Result{}, errors.New(e.Error)
	}
	return tool.Result{Output: string(e.Result)}, nil
}

// report emits what a call did.
func (m *Member) report(ctx context.Context, e *entry) error {
	if e.Sent != nil {
		if err := m.Events.Emit(ctx, event.MessageSent{To: e.Sent.To, Text: e.Sent.Text}); err != nil {
			return err
		}
	}
	for _, t := range e.Tasks {
		if err := m.Events.Emit(ctx, event.TaskUpdated{ID: fmt.Sprint(t.ID), Subject: t.Subject, Status: string(t.Status), Owner: t.Owner}); err != nil {
			return err
		}
	}
	return nil
}

// MergeTool is the name of the tool that merges what an agent did in a worktree.
const MergeTool = "worktree__merge"

// parameter is a parameter of a tool.
type parameter struct {
	name, description string
	required, list    bool
	flag              bool // it is true or false
}

// declare returns the declaration of a tool.
func declare(name, description string, parameters ...parameter) chat.Tool {
	type property struct {
		Type        string            `json:"type"`
		Items       map[string]string `json:"items,omitempty"`
		Description string            `json:"description"`
	}
	schema := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required,omitempty"`
	}{Type: "object", Properties: make(map[string]property, len(parameters))}
	for _, p := range parameters {
		prop := property{Type: "string", Description: p.description}
		if p.flag {
			prop.Type = "boolean"
		}
		if p.list {
			prop.Type, prop.Items = "array", map[string]string{"type": "string"}
		}
		schema.Properties[p.name] = prop
		if p.required {
			schema.Required = append(schema.Required, p.name)
		}
	}
	doc, err := json.Marshal(schema)
	if err != nil {
		panic(err) // strings can be marshalled
	}
	return chat.Tool{Name: name, Description: description, Parameters: doc}
}

// Tools returns the tools of the member: those to work with children if its limits allow any, and
// those to send and read messages. They are stateful, see [tool.Hints].
func (m *Member) Tools() []tool.Tool {
	all := messaging()
	if m.limits.CanSpawn {
		all = slices.Concat(spawning(), all)
	}
	tools := make([]tool.Tool, len(all))
	for i, t := range all {
		t.member = m
		tools[i] = &t
	}
	return tools
}

// spawning are the tools to work with children, of no member yet. Declaring them takes longer than
// a short model call, so it is done once.
var spawning = sync.OnceValue(func() []teamTool {
	id := parameter{name: "id", required: true, description: `Id of the agent, as agent__spawn returned it, such as "agent_explore_1a2b3c4d".`}
	taskID := parameter{name: "task_id", required: true, description: `Id of the task, a number as text, such as "1".`}
	collect := "wait for an agent with agent__collect, which returns when it has finished or needs an answer, or continue with other work"
	return []teamTool{
		{do: (*Member).spawn, declared: declare("agent__spawn",
			"Start an agent in the background. It works in parallel with you and with other agents. Returns its id at once; get its result with agent__collect. "+
				"Start everything that is independent in one reply, before you collect anything. The agent knows nothing of this conversation: the prompt has to say all it needs.",
			parameter{name: "agent", required: true, description: "Name of the agent, see agent__list_available."},
			parameter{name: "prompt", required: true, description: "What the agent has to do, with all context that it needs: goal, paths, constraints, and what to return."},
			parameter{name: "task_id", description: "Id of a task of your queue that the agent does. The task becomes in_progress, and the agent its owner."},
			parameter{name: "worktree", flag: true, description: "True: the agent works in a copy of the repository, so that agents that write do not disturb each other. Its result names the branch with its commits."})},
		{do: (*Member).merge, declared: declare(MergeTool,
			"Merge the branch of an agent that worked in a worktree, after agent__collect has returned it, into your own work. A conflict changes nothing, and the error names the files.", id)},
		{do: (*Member).check, instead: collect, declared: declare("agent__check",
			`Look whether an agent that you started has finished. Never waits. Returns status "pending" while it works, and otherwise its result, as agent__collect does.`, id)},
		{do: (*Member).collect, declared: declare("agent__collect",
			`Wait until an agent that you started has finished, and take its result: "output", and "outcome", which is done, failed, timed_out, canceled or out_of_budget. `+
				`The result can be taken once. Returns status "pending" early if an agent needs an answer: reply with agent__reply_escalation, then collect again.`, id)},
		{do: (*Member).list, instead: collect, declared: declare("agent__list", "List the agents that you started and whose results you have not taken, and how many may run at once.")},
		{do: (*Member).stopChild, declared: declare("agent__cancel", "Stop an agent that you started, together with the agents that it started. Its result is lost.", id)},
		{do: (*Member).listAvailable, declared: declare("agent__list_available", "List the agents that agent__spawn can start, with what each is for.")},
		{do: (*Member).taskCreate, declared: declare("agent__task_create",
			"Add a task to your queue. A task with blocked_by waits until all those tasks are completed. A task with agent and prompt starts that agent by itself: at once if nothing blocks it, "+
				"else as soon as the last task that blocks it is completed. The agent gets the prompt as it is, without the results of other tasks. An agent that finishes does not complete its task: "+
				"collect its result, then call agent__task_complete. Returns task_id.",
			parameter{name: "subject", required: true, description: "What to do, in a few words."},
			parameter{name: "description", description: "Details, for yourself."},
			parameter{name: "blocked_by", list: true, description: `Ids of the tasks that have to be completed first, such as ["1", "2"].`},
			parameter{name: "agent", description: "Name of the agent to start for the task. It needs prompt."},
			parameter{name: "prompt", description: "What that agent has to do, with all context that it needs."})},
		{do: (*Member).taskList, instead: collect, declared: declare("agent__task_list", "List the tasks of your queue, with their status: pending, blocked, in_progress, completed or failed.")},
		{do: (*Member).taskComplete, declared: declare("agent__task_complete",
			"Mark a task as completed. Returns the tasks that nothing blocks any more (newly_runnable), and the agents that were started for them (auto_dispatched).", taskID)},
		{do: (*Member).taskFail, declared: declare("agent__task_fail", "Mark a task as failed. The tasks that wait for it stay blocked.", taskID)},
		{do: (*Member).replyEscalation, declared: declare("agent__reply_escalation",
			"Answer the question of an agent that is blocked until you do. Questions are in pending_escalations of results. Answer from what you know, or ask the user first. "+
				"To a question marked [ask] or [confirm], reply with the exact text of an option.",
			parameter{name: "escalation_id", required: true, description: `Id of the question, such as "esc_1a2b3c4d".`},
			parameter{name: "reply", required: true, description: "The answer."})},
	}
})

// messaging are the tools to send and read messages, likewise.
var messaging = sync.OnceValue(func() []teamTool {
	return []teamTool{
		{do: (*Member).send, declared: declare("agent__send_message",
			"Send a message to another agent: one that you started, one that was started by the same agent as you, or the agent that started you. It reads the message when it checks its inbox.",
			parameter{name: "id", required: true, description: `Id of the agent, such as "agent_explore_1a2b3c4d"; "parent" is the agent that started you.`},
			parameter{name: "message", required: true, description: "The message."})},
		{do: (*Member).checkInbox, instead: "continue your work and check again later; if there is nothing left to do, finish with your result", declared: declare("agent__check_inbox",
			"Read the messages that other agents have sent to you, and empty your inbox. Check it before you finish.")},
	}
})

// refusal is a result that says why a call did nothing.
type refusal struct {
	Status  string `json:"status"` // error
	Message string `json:"message"`
}

func refuse(format string, args ...any) refusal {
	return refusal{"error", fmt.Sprintf(format, args...)}
}

// success is a result without data.
type success struct {
	Status  string `json:"status"` // ok
	Message string `json:"message"`
}

// decode reads the arguments of a call. Required ones must be there and not blank.
func decode[T any](call tool.Call, required ...string) (args T, err error) {
	if args, err = tool.Decode[T](call); err != nil {
		return args, err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(call.Arguments, &given); err != nil {
		return args, err
	}
	for _, name := range required {
		if strings.TrimSpace(plain(given[name])) == "" {
			return args, fmt.Errorf("argument %q is missing or empty", name)
		}
	}
	return args, nil
}

// plain returns the text of a JSON string, or of another value.
func plain(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil { // null too
		return s
	}
	return string(raw)
}
