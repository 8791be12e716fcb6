package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/tool"
)

// tasksExtension is the extension of the protocol by which a call can continue as a task after its answer. Servers have it from the version of
// the protocol that comes after [protocol].
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	leastPoll, usualPoll, mostPoll = 100 * time.Millisecond, time.Second, 30 * time.Second // between two looks at a task
	maxTaskFailures                = 10                                                    // looks in a row that fail, some seconds apart
)

// task is a task as a server describes it.
type task struct {
	sdk.ResultBase
	Status  string                     `json:"status"`
	Message string                     `json:"statusMessage"`
	Poll    int                        `json:"pollIntervalMs"`
	Inputs  map[string]json.RawMessage `json:"inputRequests"`
	Result  *toolResult                `json:"result"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

// taskParams name a task.
type taskParams struct {
	sdk.ParamsBase
	ID        string                       `json:"taskId"`
	Responses map[string]*sdk.ElicitResult `json:"inputResponses,omitempty"`
}

const (
	getTask    = "tasks/get"
	updateTask = "tasks/update"
	cancelTask = "tasks/cancel"
)

// offerTasks lets a client use tasks.
func offerTasks(client *sdk.Client) {
	for _, method := range []string{getTask, updateTask, cancelTask} {
		_ = sdk.AddSendingCustomMethod[*taskParams, *task](client, method) // it fails for methods of the protocol
	}
}

// hasTasks reports whether the server can continue calls as tasks.
func (c *conn) hasTasks() bool {
	_, ok := c.can.Extensions[tasksExtension]
	return ok
}

// aboutTask sends a request about a task.
func (l *connection) aboutTask(ctx context.Context, method string, p taskParams) (*task, error) {
	return use(ctx, l, true, func(c *conn) (*task, error) {
		return do(ctx, c, func(ctx context.Context) (*task, error) {
			t, err := sdk.CallCustomMethod[*taskParams, *task](ctx, c.session, method, &p)
			if err == nil {
				t.Message, t.Error.Message = c.server.redact(t.Message), c.server.redact(t.Error.Message)
			}
			return t, err
		})
	})
}

// taskNote is on record for a call that has become a task.
type taskNote struct {
	ID string `json:"id"`
}

// await waits for the end of a task and returns its result. A task of a run that is recorded continues when ctx ends, since the run may resume and
// wait again; any other is canceled.
func (l *connection) await(ctx context.Context, name, id string, record steps.Steps) (r toolResult, err error) {
	if err := steps.WriteNote(ctx, record, tool.TaskNote, taskNote{id}); err != nil {
		return r, err
	}
	defer func() {
		if ctx.Err() != nil && !record.Recording() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
			defer cancel()
			_, _ = l.aboutTask(ctx, cancelTask, taskParams{ID: id})
		}
	}()
	asked, said := make(map[string]bool), ""
	for failures := 0; ; {
		t, err := l.aboutTask(ctx, getTask, taskParams{ID: id})
		pause := min(usualPoll<<failures, mostPoll)
		_, refused := errors.AsType[*serverError](err)
		switch {
		case ctx.Err() != nil:
			return r, fmt.Errorf("MCP server %q: %w", l.server.ID, context.Cause(ctx))
		case err != nil && (refused || failures == maxTaskFailures):
			return r, fmt.Errorf("task %s: %w", id, err)
		case err != nil:
			failures++
		default:
			failures = 0
			if t.Poll > 0 {
				pause = min(max(time.Duration(t.Poll)*time.Millisecond, leastPoll), mostPoll)
			}
			if l.scope.opts.Progress != nil && t.Message != said {
				said = t.Message
				l.scope.opts.Progress(Progress{Server: l.server.ID, Tool: name, Message: text.Cut(said, 1<<10)})
			}
			if ended, err := l.follow(ctx, t, id, asked, &r); ended || err != nil {
				return r, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// follow stores the result of a task that has ended in r, and answers what one that waits asks for the first time.
func (l *connection) follow(ctx context.Context, t *task, id string, asked map[string]bool, r *toolResult) (ended bool, err error) {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("MCP server %q: task %s %s", l.server.ID, id, fmt.Sprintf(format, args...))
	}
	switch t.Status {
	case "completed":
		if t.Result == nil {
			return true, fail("has ended without a result")
		}
		*r = *t.Result
		return true, nil
	case "failed":
		return true, fail("has failed: %s", t.Error.Message)
	case "cancelled":
		return true, fail("was canceled")
	case "input_required":
		return false, l.answer(ctx, t, id, asked, fail)
	}
	return false, nil
}

// answer answers the questions of a task that were not asked before. To be declined ends the wait.
func (l *connection) answer(ctx context.Context, t *task, id string, asked map[string]bool, fail func(format string, args ...any) error) error {
	c, err := l.get(ctx)
	if err != nil {
		return nil // as if the look at the task had failed
	}
	responses := make(map[string]*sdk.ElicitResult)
	for _, key := range slices.Sorted(maps.Keys(t.Inputs)) {
		var request struct {
			Method string           `json:"method"`
			Params sdk.ElicitParams `json:"params"`
		}
		if err := json.Unmarshal(t.Inputs[key], &request); err != nil || request.Method != "elicitation/create" {
			return fail("asks for %s, which is not known here", text.OneLine(request.Method, 100))
		}
		if asked[key] {
			continue
		}
		asked[key] = true
		if responses[key] = c.put(ctx, l.scope.opts.Asker, &request.Params); responses[key].Action != accept {
			err = fail("waits for an answer that was not given")
		}
	}
	if len(responses) == 0 || ctx.Err() != nil {
		return nil
	}
	if _, failure := l.aboutTask(ctx, updateTask, taskParams{ID: id, Responses: responses}); failure != nil {
		return failure
	}
	return err
}
