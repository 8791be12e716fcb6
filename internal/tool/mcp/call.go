package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/base/process/awake"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/tool"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Progress is how far a call has come.
type Progress struct {
	Server, Tool string
	Done, Total  float64 // Total is 0 if it is unknown
	Message      string
}

// call is a call of a tool that is running.
type call struct {
	tool  string
	scope *Scope // of the conversation
	timer stopwatch
}

// callTool runs a tool of the server. The result may report a failure of the tool; the
// error is about the exchange.
func (c *conn) callTool(ctx context.Context, name string, arguments json.RawMessage, running *call) (r toolResult, err error) {
	timeout := c.opts.CallTimeout
	if c.server.Timeout > 0 {
		timeout = c.server.Timeout
	}
	running.tool = name
	token := c.begin(running)
	defer c.end(token)
	params := &sdk.CallToolParams{Name: name, Arguments: arguments, Meta: sdk.Meta{tool.DepthKey: tool.NextDepth(ctx)}}
	params.SetProgressToken(token)

	limit, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running.timer.start(timeout, func() { cancel(&lateError{timeout}) })
	defer running.timer.stop()
	result, err := c.session.CallTool(limit, params)
	if err != nil {
		return r, c.exchangeError(ctx, limit, err)
	}
	if err := json.Unmarshal(original(result, result.Meta), &r); err != nil {
		return r, fmt.Errorf("MCP server %q: the result of the tool is not understood: %w", c.server.ID, err)
	}
	if r.Type != "task" {
		r.Task = ""
	}
	return r, nil
}

// watch withholds until end is called what the program of the server makes to run later, if its level lets it write. End returns what that was.
func (c *conn) watch() (end func() []sandbox.Refusal, err error) {
	d := c.server.Sandbox
	if c.program == nil || c.opts.Sandbox == nil || d.Level == sandbox.Full || !d.Level.Covers(sandbox.Write) {
		return func() []sandbox.Refusal { return nil }, nil
	}
	boxes, err := c.opts.Sandbox()
	if err != nil {
		return nil, err
	}
	return boxes.Watch(d)
}

// fit returns the arguments of a tool in the types of its schema, see [tool.Fit]. Those of a tool that is not listed stay as they are.
func (c *conn) fit(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if c.can.Tools == nil {
		return arguments, nil
	}
	box, err := c.toolList(ctx)
	switch {
	case errors.Is(err, sdk.ErrSessionMissing), errors.Is(err, errGone):
		return nil, err // the call could not be sent either
	case err != nil:
		return arguments, ctx.Err()
	}
	t, _ := box.lookup(name)
	return tool.Fit(t.Schema, arguments, tool.FitOptions{})
}

func (c *conn) begin(running *call) (token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	token = "call-" + strconv.Itoa(c.next)
	c.calls[token] = running
	return token
}

func (c *conn) end(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, token)
}

// progress passes a notification to its call.
func (c *conn) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	c.mu.Lock()
	running := c.calls[token]
	c.mu.Unlock()
	if running == nil || running.scope.opts.Progress == nil {
		return
	}
	running.scope.opts.Progress(Progress{
		Server:  c.server.ID,
		Tool:    running.tool,
		Done:    req.Params.Progress,
		Total:   req.Params.Total,
		Message: text.Cut(req.Params.Message, 1<<10),
	})
}

// runningCalls returns the calls that are running.
func (c *conn) runningCalls() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.calls))
}

// stopwatch is a time limit that does not count while it is paused.
type stopwatch struct {
	mu     sync.Mutex
	timer  *awake.Timer
	left   time.Duration // while it is paused
	end    func()
	paused int
}

func (s *stopwatch) start(limit time.Duration, expired func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = expired
	s.timer = awake.AfterFunc(limit, expired)
}

func (s *stopwatch) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.paused = -1 // for good
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused < 0 {
		return
	}
	if s.paused++; s.paused == 1 {
		s.left = s.timer.Remaining()
	}
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused <= 0 {
		return
	}
	if s.paused--; s.paused == 0 {
		s.timer = awake.AfterFunc(s.left, s.end)
	}
}

// failure returns the error for a result that reports a failure of the tool, nil
// otherwise.
func failure(result toolResult, text string) error {
	if !result.IsError {
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("the tool failed and did not say why")
	}
	return errors.New(text)
}
