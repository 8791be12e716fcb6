package todo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"loki/internal/chat"
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
		&listTool{chat.Tool{Name: "todo__add", Description: "Add a task to the todo list. Returns its id.", Parameters: one("task", "string", "What is to be done.")}, false, l.add},
		&listTool{chat.Tool{Name: "todo__clear", Description: "Clear the todo list. Use it when the user cancels the work or changes its direction.", Parameters: none}, false, l.clear},
		&listTool{chat.Tool{Name: "todo__done", Description: "Mark a task of the todo list as done. Use it directly after the task is finished.", Parameters: one("id", "integer", "The id of the task.")}, false, l.done},
		&listTool{chat.Tool{Name: "todo__init", Description: "Start a new todo list with a goal. The old list is dropped.", Parameters: one("goal", "string", "What is to be achieved in the end.")}, false, l.start},
		&listTool{chat.Tool{Name: "todo__list", Description: "Get the todo list with all tasks, done and open.", Parameters: none}, true, l.list},
	}
}

// listTool is one of the tools.
type listTool struct {
	declared chat.Tool
	readOnly bool
	run      func(call tool.Call) (any, error)
}

// Declaration implements [tool.Tool].
func (t *listTool) Declaration() chat.Tool { return t.declared }

// Hints implements [tool.Tool].
func (t *listTool) Hints() tool.Hints { return tool.Hints{ReadOnly: t.readOnly} }

// Call implements [tool.Tool].
func (t *listTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	v, err := t.run(call)
	if err != nil {
		return tool.Result{}, err
	}
	out, err := json.Marshal(v)
	return tool.Result{Output: string(out)}, err
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

func (l *List) done(call tool.Call) (any, error) {
	args, err := tool.Decode[struct {
		ID json.RawMessage `json:"id"`
	}](call)
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(strings.TrimSpace(strings.Trim(string(args.ID), `"`)))
	switch {
	case err != nil:
		return nil, errors.New("id is missing or not a number")
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
