package todo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// Tools returns the tools that keep a list: todo__init, todo__add, todo__done, todo__list
// and todo__clear. The result for a task that is empty or does not exist is {"error":
// "..."}; missing arguments are errors as with any tool.
func Tools(l *List) []tool.Tool {
	one := func(name, kind, description string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q,"description":%q}},"required":[%q]}`, name, kind, description, name))
	}
	none := json.RawMessage(`{"type":"object","properties":{}}`)
	return []tool.Tool{
		&listTool{l, chat.Tool{Name: "todo__add", Description: "Add a task to the todo list. Returns its id.", Parameters: one("task", "string", "What to do.")}, l.add},
		&listTool{l, chat.Tool{Name: "todo__clear", Description: "Clear the todo list. Use it when the user cancels the work or changes its direction.", Parameters: none}, l.clear},
		&listTool{l, chat.Tool{Name: "todo__done", Description: "Mark a task of the todo list as done. Use it directly after the task is finished.", Parameters: one("id", "integer", "The id of the task.")}, l.doneTool},
		&listTool{l, chat.Tool{Name: "todo__init", Description: "Start a new todo list with a goal. The old list is dropped.", Parameters: one("goal", "string", "What to achieve in the end.")}, l.start},
		&listTool{l, chat.Tool{Name: "todo__list", Description: "Get the todo list with all tasks, done and open.", Parameters: none}, l.list},
	}
}

// listTool is one of the tools.
type listTool struct {
	list     *List
	declared chat.Tool
	run      func(call tool.Call) (any, error)
}

// Declaration implements [tool.Tool].
func (t *listTool) Declaration() chat.Tool { return t.declared }

// Hints implements [tool.Tool]. A list changes nothing outside the process.
func (t *listTool) Hints() tool.Hints {
	h := tool.Hints{ReadOnly: true, Stateful: true}
	if t.declared.Name == "todo__list" {
		h.Instead = "continue with the next open item, and mark it with todo__done when it is finished"
	}
	return h
}

// Call implements [tool.Tool].
func (t *listTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	before := t.list.Revision()
	v, err := t.run(call)
	if err != nil {
		return tool.Result{}, err
	}
	if t.list.Revision() != before {
		if err := event.FromContext(ctx).Emit(ctx, t.list.updateEvent()); err != nil {
			return tool.Result{}, err
		}
	}
	out, err := json.Marshal(v)
	return tool.Result{Output: string(out)}, err
}

// Fill replaces the goal and the items, and emits the list.
func (l *List) Fill(ctx context.Context, goal string, tasks []string) error {
	l.Init(goal)
	for _, task := range tasks {
		l.Add(task)
	}
	return event.FromContext(ctx).Emit(ctx, l.updateEvent())
}

// updateEvent returns the event that shows the list.
func (l *List) updateEvent() event.TodoUpdated {
	l.mu.Lock()
	defer l.mu.Unlock()
	ev := event.TodoUpdated{Goal: l.goal, Todos: make([]event.Todo, len(l.items))}
	for i, item := range l.items {
		ev.Todos[i] = event.Todo(item)
	}
	return ev
}

// success is the result of a call that succeeded.
type success struct {
	Status  string `json:"status"`
	ID      int    `json:"id,omitempty"`
	Message string `json:"message,omitempty"`
}

// mistake is the result of a call that cannot be carried out.
type mistake struct {
	Error string `json:"error"`
}

func ok(format string, args ...any) success {
	return success{Status: "ok", Message: fmt.Sprintf(format, args...)}
}

func (l *List) start(call tool.Call) (any, error) {
	args, err := tool.Decode[struct {
		Goal *string `json:"goal"`
	}](call)
	switch {
	case err != nil:
		return nil, err
	case args.Goal == nil:
		return nil, errors.New("goal is missing")
	}
	l.Init(strings.TrimSpace(*args.Goal))
	return ok("The todo list was started. Add tasks with todo__add."), nil
}

func (l *List) add(call tool.Call) (any, error) {
	args, err := tool.Decode[struct {
		Task *string `json:"task"`
	}](call)
	switch {
	case err != nil:
		return nil, err
	case args.Task == nil:
		return nil, errors.New("task is missing")
	}
	task := strings.TrimSpace(*args.Task)
	if task == "" {
		return mistake{"the task is empty"}, nil
	}
	return success{Status: "ok", ID: l.Add(task)}, nil
}

func (l *List) doneTool(call tool.Call) (any, error) {
	args, err := tool.Decode[struct {
		ID json.RawMessage `json:"id"`
	}](call)
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(strings.TrimSpace(strings.Trim(string(args.ID), `"`)))
	switch {
	case err != nil:
		return nil, errors.New("id is not a number")
	case !l.Done(id):
		return mistake{fmt.Sprintf("there is no task with the id %d", id)}, nil
	}
	return ok("Task %d is done; %d open.", id, l.Open()), nil
}

func (l *List) list(tool.Call) (any, error) {
	if len(l.Items()) == 0 {
		return state{Items: []Item{}}, nil
	}
	return l, nil
}

func (l *List) clear(tool.Call) (any, error) {
	l.Clear()
	l.mu.Lock()
	l.clears++
	l.mu.Unlock()
	return ok("The todo list is empty now."), nil
}
