package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/text"

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
func (c *conn) callTool(ctx context.Context, name string, arguments json.RawMessage, running *call) (*sdk.CallToolResult, error) {
	timeout := c.opts.CallTimeout
	if c.server.Timeout > 0 {
		timeout = c.server.Timeout
	}
	running.tool = name
	token := c.begin(running)
	defer c.end(token)
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken(token)

	limit, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running.timer.start(timeout, func() { cancel(&lateError{timeout}) })
	defer running.timer.stop()
	result, err := c.session.CallTool(limit, params)
	return result, c.exchangeError(ctx, limit, err)
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

// running returns the calls that are running.
func (c *conn) running() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*call, 0, len(c.calls))
	for _, running := range c.calls {
		list = append(list, running)
	}
	return list
}

// stopwatch is a time limit that does not count while it is paused.
type stopwatch struct {
	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration
	since  time.Time
	paused int
}

func (s *stopwatch) start(limit time.Duration, expired func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.since = limit, time.Now()
	s.timer = time.AfterFunc(limit, expired)
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
		s.left -= time.Since(s.since)
		s.timer.Stop()
	}
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused <= 0 {
		return
	}
	if s.paused--; s.paused == 0 {
		s.since = time.Now()
		s.timer.Reset(max(s.left, time.Millisecond))
	}
}

// resultText returns the text of a result for the model: the texts, one after the other,
// and a line for each other content. A structured result that differs from the texts is
// appended.
func resultText(result *sdk.CallToolResult) string {
	text := contentText(result.Content)
	if result.StructuredContent == nil {
		return text
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil || sameJSON(text, structured) {
		return text
	}
	if text == "" {
		return string(structured)
	}
	both, err := json.Marshal(struct {
		Text       string          `json:"text"`
		Structured json.RawMessage `json:"structuredContent"`
	}{text, structured})
	if err != nil {
		return text
	}
	return string(both)
}

// sameJSON reports whether text is the same value as doc.
func sameJSON(text string, doc []byte) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	again, err := json.Marshal(v)
	return err == nil && string(again) == string(doc)
}

func contentText(content []sdk.Content) string {
	parts := make([]string, 0, len(content))
	for _, item := range content {
		switch item := item.(type) {
		case *sdk.TextContent:
			parts = append(parts, item.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[image %s, %d bytes, not shown]", item.MIMEType, len(item.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio %s, %d bytes, not shown]", item.MIMEType, len(item.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("[resource %s] %s", item.URI, item.Description)))
		case *sdk.EmbeddedResource:
			if item.Resource != nil {
				parts = append(parts, resourceText(item.Resource))
			}
		default:
			parts = append(parts, fmt.Sprintf("[content of an unknown kind: %T]", item))
		}
	}
	return strings.Join(parts, "\n")
}

func resourceText(r *sdk.ResourceContents) string {
	if r.Blob != nil {
		return fmt.Sprintf("[resource %s, %s, %d bytes, not shown]", r.URI, r.MIMEType, len(r.Blob))
	}
	return r.Text
}

// failure returns the error for a result that reports a failure of the tool, nil
// otherwise.
func failure(result *sdk.CallToolResult, text string) error {
	if !result.IsError {
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("the tool failed and did not say why")
	}
	return errors.New(text)
}
