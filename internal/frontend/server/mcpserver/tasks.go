package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/frontend/api/summary"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// tasksExtension is the extension of the protocol by which a call can continue after its answer. The task is the run.
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	pollEvery         = 1000   // ms, which a client is asked to wait between two requests
	codeNoCapability  = -32021 // the client lacks a capability that the request needs
	taskWorking       = "working"
	taskInputRequired = "input_required"
	taskCompleted     = "completed"
	taskCanceled      = "cancelled" // as the protocol spells it
)

// hasTasks reports whether a client can continue a call as a task.
func hasTasks(session *mcp.ServerSession) bool {
	init := session.InitializeParams()
	if init == nil || init.Capabilities == nil || init.ProtocolVersion < protocolWithInput {
		return false
	}
	_, ok := init.Capabilities.Extensions[tasksExtension]
	return ok
}

// task is a task as the protocol describes it.
type task struct {
	mcp.ResultBase
	ResultType string              `json:"resultType"`
	ID         string              `json:"taskId"`
	Status     string              `json:"status"`
	Message    string              `json:"statusMessage,omitempty"`
	Created    time.Time           `json:"createdAt"`
	Updated    time.Time           `json:"lastUpdatedAt"`
	TTL        *int                `json:"ttlMs"` // null: it is kept as long as the run
	Poll       int                 `json:"pollIntervalMs"`
	Inputs     mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result     *mcp.CallToolResult `json:"result,omitempty"`
}

func taskOf(info run.Info, status string) *task {
	return &task{ResultType: "complete", ID: info.ID, Status: status, Created: info.Started.UTC(), Updated: info.Updated.UTC(), Poll: pollEvery}
}

// created is where a call leaves the task that it becomes.
type created struct{ task *task }

type createdKey struct{}

// becomesTask ends a call whose run continues as a task.
func becomesTask(ctx context.Context, info run.Info) *mcp.CallToolResult {
	if c, ok := ctx.Value(createdKey{}).(*created); ok {
		c.task = taskOf(info, taskWorking)
		c.task.ResultType = "task"
	}
	return &mcp.CallToolResult{}
}

// taskParams name a task.
type taskParams struct {
	mcp.ParamsBase
	ID        string                       `json:"taskId"`
	Responses map[string]*mcp.ElicitResult `json:"inputResponses,omitempty"`
}

// done acknowledges a request.
type done struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// addTasks adds the methods of tasks.
func (s *server) addTasks() error {
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (r mcp.Result, err error) {
			defer func() {
				if ctx.Err() != nil {
					r, err = nil, &jsonrpc.Error{Code: codeCanceled, Message: "the request was cancelled"}
				}
			}()
			ctx = context.WithValue(ctx, extraKey{}, req.GetExtra())
			if method != "tools/call" {
				return next(ctx, method, req)
			}
			if p, _ := req.GetParams().(*mcp.CallToolParamsRaw); p != nil {
				if _, ok := depthOf(p.Meta); !ok {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s is a number up to %d: these programs call each other as tools without end", tool.DepthKey, tool.MaxDepth)}
				}
			}
			c := new(created)
			r, err = next(context.WithValue(ctx, createdKey{}, c), method, req)
			if err == nil && c.task != nil {
				return c.task, nil
			}
			return r, err
		}
	})
	add := func(method string, do func(ctx context.Context, session *mcp.ServerSession, p *taskParams, info run.Info) (mcp.Result, error)) error {
		return mcp.AddReceivingCustomMethod(s.mcp, method, func(ctx context.Context, session *mcp.ServerSession, p *taskParams) (mcp.Result, error) {
			if !hasTasks(session) {
				data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: map[string]any{}}}}) // of texts
				return nil, &jsonrpc.Error{Code: codeNoCapability, Message: "the client does not announce the extension " + tasksExtension, Data: data}
			}
			if p == nil {
				p = new(taskParams)
			}
			info, err := s.find(ctx, p.ID)
			if err != nil || p.ID != info.ID {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no task with this id"}
			}
			return do(ctx, session, p, info)
		})
	}
	get := add("tasks/get", func(ctx context.Context, session *mcp.ServerSession, _ *taskParams, info run.Info) (mcp.Result, error) {
		if err := s.revive(ctx, info); err != nil {
			return nil, err
		}
		return s.task(ctx, session, info.ID)
	})
	update := add("tasks/update", func(ctx context.Context, session *mcp.ServerSession, p *taskParams, info run.Info) (mcp.Result, error) {
		pending, err := s.openQuestions(ctx, info)
		if err != nil {
			return nil, err
		}
		return &done{ResultType: "complete"}, s.respond(ctx, info.ID, s.forClient(session, pending), p.Responses)
	})
	cancel := add("tasks/cancel", func(ctx context.Context, _ *mcp.ServerSession, _ *taskParams, info run.Info) (mcp.Result, error) {
		if info.Status == run.Running || info.Status == run.Suspended {
			if err := s.runs.Cancel(ctx, info.ID); err != nil {
				return nil, err
			}
		}
		return &done{ResultType: "complete"}, nil
	})
	return errors.Join(get, update, cancel)
}

// task describes a run as a task.
func (s *server) task(ctx context.Context, session *mcp.ServerSession, id string) (*task, error) {
	info, err := s.runs.Store().Info(ctx, id)
	if err != nil {
		return nil, err
	}
	pending, err := s.openQuestions(ctx, info)
	if err != nil {
		return nil, err
	}
	questions := s.forClient(session, pending)
	t := taskOf(info, taskWorking)
	switch {
	case info.Status == run.Canceled:
		t.Status, t.Message = taskCanceled, s.app.Hide(info.Error)
	case info.Status == run.Running:
		t.Message = summary.Status(info)
	case len(questions) > 0:
		t.Status = taskInputRequired
		t.Inputs, err = s.requests(info.ID, questions)
	case len(pending) > 0 && elicits(session):
		t.Message = "waits for an answer of the user that cannot be given here: loki --resume " + info.ID
	default:
		t.Status, t.Result = taskCompleted, s.result(info, pending)
	}
	return t, err
}
