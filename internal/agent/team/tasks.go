package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/text"
	"loki/internal/tool"
)

// aTask returns the id of a task that a call names, as text or as a number.
func aTask(call tool.Call) (string, error) {
	args, err := decode[struct {
		ID json.RawMessage `json:"task_id"`
	}](call, "task_id")
	return plain(args.ID), err
}

// names returns ids of tasks as models read them.
func names(ids []int) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprint(id)
	}
	return list
}

func (m *Member) taskCreate(ctx context.Context, call tool.Call, e *entry) (any, error) {
	args, err := decode[struct {
		Subject, Description, Agent, Prompt string
		BlockedBy                           json.RawMessage `json:"blocked_by"`
	}](call, "subject")
	if err == nil && args.Agent != "" && args.Prompt == "" {
		err = errors.New(`argument "prompt" is missing or empty, and the agent needs it`)
	}
	if err != nil {
		return nil, err
	}
	blockers, err := idList(args.BlockedBy)
	if err != nil {
		return nil, err
	}
	result := struct {
		Status       string   `json:"status"` // ok
		TaskID       string   `json:"task_id"`
		AutoDispatch bool     `json:"auto_dispatch,omitempty"`
		Dispatched   []any    `json:"auto_dispatched,omitempty"`
		Warnings     []string `json:"warnings,omitempty"`
	}{Status: "ok", AutoDispatch: args.Agent != ""}
	e.Tasks, result.Warnings = m.tasks.create(task{Subject: args.Subject, Description: args.Description, Agent: args.Agent, Prompt: args.Prompt}, blockers)
	result.TaskID = fmt.Sprint(e.Tasks[0].ID)
	result.Dispatched = m.dispatch(call.Key, e)
	return result, nil
}

// idList reads a list of ids, which models also write as numbers or as a text with a list in it.
func idList(raw json.RawMessage) ([]string, error) {
	var s string
	if json.Unmarshal(raw, &s) == nil && strings.TrimSpace(s) != "" {
		raw = json.RawMessage(s)
	}
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `""` {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New(`argument "blocked_by" must be a list of task ids, such as ["1", "2"]`)
	}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = plain(list[i])
	}
	return ids, nil
}

// dispatch starts the agents of the tasks in e that are pending and have one, and returns the
// results. The tasks are in progress then, also if an agent could not be started.
func (m *Member) dispatch(key string, e *entry) []any {
	var results []any
	for i := range e.Tasks {
		t := &e.Tasks[i]
		if t.Status != pending || t.Agent == "" || t.Prompt == "" || t.Owner != "" {
			continue
		}
		t.Status, t.Owner = inProgress, "auto:"+t.Agent
		result, s, err := m.launch(key, start{Agent: t.Agent, Prompt: t.Prompt}, len(e.Started))
		if err != nil {
			result = struct {
				Status  string `json:"status"` // error
				Agent   string `json:"agent"`
				Message string `json:"message"`
			}{"error", t.Agent, err.Error()}
		}
		if s != nil {
			e.Started = append(e.Started, *s)
		}
		results = append(results, result)
	}
	return results
}

func (m *Member) taskList(context.Context, tool.Call, *entry) (any, error) {
	type item struct {
		ID        string     `json:"id"`
		Subject   string     `json:"subject"`
		Status    taskStatus `json:"status"`
		Owner     *string    `json:"owner"`
		BlockedBy []string   `json:"blocked_by"`
		Blocks    []string   `json:"blocks"`
		Agent     *string    `json:"agent"`
		Prompt    *string    `json:"prompt"`
	}
	items := make([]item, len(m.tasks))
	for i, t := range m.tasks {
		items[i] = item{fmt.Sprint(t.ID), t.Subject, t.Status, orNull(t.Owner), names(t.BlockedBy), names(t.Blocks), orNull(t.Agent), orNull(t.Prompt)}
	}
	return struct {
		Tasks []item `json:"tasks"`
	}{items}, nil
}

// orNull returns nil for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (m *Member) taskComplete(_ context.Context, call tool.Call, e *entry) (any, error) {
	id, err := aTask(call)
	if err != nil {
		return nil, err
	}
	type item struct {
		ID          string `json:"id"`
		Subject     string `json:"subject"`
		Description string `json:"description"`
		Agent       string `json:"agent"`
	}
	result := struct {
		Status     string `json:"status"` // ok
		TaskID     string `json:"task_id"`
		Runnable   []item `json:"newly_runnable"`
		Dispatched []any  `json:"auto_dispatched,omitempty"`
	}{Status: "ok", TaskID: id, Runnable: []item{}}
	t, known := m.tasks.find(id)
	if !known {
		return result, nil
	}
	var runnable []task
	e.Tasks, runnable = m.tasks.complete(t)
	result.TaskID = fmt.Sprint(t.ID)
	for _, r := range runnable {
		result.Runnable = append(result.Runnable, item{fmt.Sprint(r.ID), r.Subject, r.Description, r.Agent})
	}
	result.Dispatched = m.dispatch(call.Key, e)
	return result, nil
}

func (m *Member) taskFail(_ context.Context, call tool.Call, e *entry) (any, error) {
	id, err := aTask(call)
	if err != nil {
		return nil, err
	}
	t, known := m.tasks.find(id)
	if !known {
		return refuse("There is no task %q in your queue.", id), nil
	}
	t.Status = failed
	e.Tasks = []task{t}
	dependents := names(m.tasks.dependents(t))
	return struct {
		Status     string   `json:"status"` // ok
		TaskID     string   `json:"task_id"`
		Dependents []string `json:"blocked_dependents"`
		Message    string   `json:"message"`
	}{"ok", fmt.Sprint(t.ID), dependents, fmt.Sprintf("%s that wait for it stay blocked.", text.Count(len(dependents), "task"))}, nil
}
