// Package acp has the Agent Client Protocol, version 1, with which editors talk to agents: the messages of both sides, and a connection.
//
// A connection carries JSON-RPC 2.0, a message on each line, in both directions. The types are those of the schema that npm package
// @agentclientprotocol/sdk 2.4.0 has (schema/v1/schema.json), with the same names of fields. Reserved fields (_meta) and annotations are left out.
package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// MaxLine bounds a message, in bytes.
const MaxLine = 16 << 20

// The codes of errors: those of JSON-RPC 2.0, and of the protocol.
const (
	ParseError       = -32700
	InvalidRequest   = -32600
	MethodNotFound   = -32601
	InvalidParams    = -32602
	InternalError    = -32603
	RequestCancelled = -32800
	AuthRequired     = -32000
	ResourceNotFound = -32002
)

// Error is the answer to a request that failed.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// ErrClosed is the failure of calls of a connection that has ended.
var ErrClosed = errors.New("the connection is closed")

// errCanceled is why the context of a request ends that the other side cancels.
var errCanceled = errors.New("the other side canceled the request")

// AnswerError says that an answer of the other side is not what the protocol says.
type AnswerError struct{ Method, Problem string }

func (e *AnswerError) Error() string {
	return fmt.Sprintf("the answer to %s is not one of the protocol: %s", e.Method, e.Problem)
}

// Answer does the work of a request, and returns the result. An error that is no [*Error] gets the code [InternalError].
type Answer func() (any, error)

// Followed is a result after whose answer Then is called, such as to send a notification about what the answer names.
type Followed struct {
	Result any
	Then   func()
}

// Handler serves what the other side sends. Its methods are called in the order of the messages, from one goroutine, before the next message is
// read: they must not wait for an answer of the other side.
type Handler interface {
	// Notice takes a notification.
	Notice(ctx context.Context, method string, params json.RawMessage)
	// Request begins a request. What it returns runs in a goroutine of its own; nil is an unknown method. Ctx ends when the other side cancels
	// the request, or with the connection.
	Request(ctx context.Context, method string, params json.RawMessage) Answer
}

// Conn is a connection. Its methods may be called from several goroutines.
type Conn struct {
	r io.Reader
	h Handler

	writing sync.Mutex
	w       io.Writer

	mu     sync.Mutex
	last   int64
	calls  map[string]chan message            // that wait for an answer, by id; nil when the connection has ended
	served map[string]context.CancelCauseFunc // requests of the other side at work, by id
}

// New returns a connection that reads from r and writes to w. Nothing is read before [Conn.Serve].
func New(r io.Reader, w io.Writer, h Handler) *Conn {
	return &Conn{r: r, w: w, h: h, calls: make(map[string]chan message), served: make(map[string]context.CancelCauseFunc)}
}

// jsonrpcVersion is in each message.
const jsonrpcVersion = "2.0"

// message is a request, a notification (without id) or an answer (without method).
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Serve reads messages until the input or ctx ends, waits for the requests at work, whose contexts end then, and returns why reading failed: nil at the
// end of the input and of ctx. When ctx ends the goroutine that reads stays until the input ends.
func (c *Conn) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer func() { // in this order: what waits for answers, then what is at work
		c.mu.Lock()
		for _, answered := range c.calls {
			close(answered)
		}
		c.calls = nil
		c.mu.Unlock()
		cancel()
		work.Wait()
	}()
	type line struct {
		text []byte
		err  error
	}
	lines := make(chan line)
	go func() { // ends with the input, or with ctx and the next line
		in := bufio.NewReaderSize(c.r, 64<<10)
		for {
			text, err := readLine(in)
			select {
			case lines <- line{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-lines:
			if errors.Is(l.err, io.EOF) {
				return nil
			}
			if l.err != nil {
				return l.err
			}
			if text := bytes.TrimSpace(l.text); len(text) > 0 {
				c.take(ctx, text, &work)
			}
		}
	}
}

// readLine returns the next line. One that is too long is returned as a text that is no message.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for long := false; ; {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxLine; long {
			line = []byte("too long")
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && len(line) > 0: // the last line has no end
			return line, nil
		default:
			return line, err
		}
	}
}

// take serves a message.
func (c *Conn) take(ctx context.Context, line []byte, work *sync.WaitGroup) {
	var m message
	switch err := json.Unmarshal(line, &m); {
	case !json.Valid(line):
		c.reject(work, nil, &Error{Code: ParseError, Message: "Parse error: a JSON object of at most 16 MiB on each line is expected"})
	case err != nil || line[0] != '{' || !isID(m.ID) || m.Method == "" && (m.ID == nil || m.Result == nil && m.Error == nil) || m.Method != "" && m.Version != jsonrpcVersion:
		if m.Method == "" {
			c.fail(m.ID)
		}
		c.reject(work, nil, &Error{Code: InvalidRequest, Message: "Invalid request: a request, a notification or an answer of JSON-RPC 2.0 is expected"})
	case m.Method == "":
		c.deliver(m)
	case m.Method == cancelRequest:
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			c.mu.Lock()
			if cancel := c.served[string(p.RequestID)]; cancel != nil {
				cancel(errCanceled)
			}
			c.mu.Unlock()
		}
	case m.ID == nil:
		c.h.Notice(ctx, m.Method, m.Params)
	default:
		c.serve(ctx, m, work)
	}
}

// isID reports whether a part of a message can be its id: a text, a whole number, null or nothing.
func isID(id json.RawMessage) bool {
	var text string
	var number int64
	return len(id) == 0 || json.Unmarshal(id, &text) == nil || json.Unmarshal(id, &number) == nil
}

// fail ends the call with the id of an answer that cannot be read.
func (c *Conn) fail(id json.RawMessage) {
	if len(id) > 0 {
		c.deliver(message{ID: id, Error: &Error{Code: InternalError, Message: "the answer is not one of JSON-RPC 2.0"}})
	}
}

// deliver gives an answer to the call that waits for it. One that no call waits for is dropped.
func (c *Conn) deliver(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered := c.calls[string(m.ID)]; answered != nil {
		delete(c.calls, string(m.ID))
		answered <- m
	}
}

// serve begins a request.
func (c *Conn) serve(ctx context.Context, m message, work *sync.WaitGroup) {
	id := string(m.ID)
	c.mu.Lock()
	taken := c.served[id] != nil
	ctx, cancel := context.WithCancelCause(ctx)
	if !taken {
		c.served[id] = cancel
	}
	c.mu.Unlock()
	if taken {
		cancel(nil)
		c.reject(work, m.ID, &Error{Code: InvalidRequest, Message: fmt.Sprintf("Invalid request: a request with the id %s is at work", id)})
		return
	}
	do := c.h.Request(ctx, m.Method, m.Params)
	if do == nil {
		do = func() (any, error) {
			return nil, &Error{Code: MethodNotFound, Message: "Method not found: " + strconv.Quote(m.Method)}
		}
	}
	work.Go(func() { // ends with the request
		result, err := do()
		canceled := errors.Is(context.Cause(ctx), errCanceled)
		c.mu.Lock()
		delete(c.served, id)
		c.mu.Unlock()
		cancel(nil)
		if err == nil {
			f, ok := result.(Followed)
			if !ok {
				f = Followed{result, func() {}}
			}
			c.answer(m.ID, f.Result, nil)
			f.Then()
			return
		}
		e, ok := errors.AsType[*Error](err)
		switch {
		case ok:
		case canceled:
			e = &Error{Code: RequestCancelled, Message: "Request cancelled"}
		default:
			e = &Error{Code: InternalError, Message: err.Error()}
		}
		c.answer(m.ID, nil, e)
	})
}

// reject answers a message that is no request to serve. The goroutine that reads does not wait for it, because the other side may read nothing.
func (c *Conn) reject(work *sync.WaitGroup, id json.RawMessage, failure *Error) {
	work.Go(func() { c.answer(id, nil, failure) }) // ends when it is written
}

// answer answers a request. If that cannot be written the connection ends for reading, too, so the failure is not reported.
func (c *Conn) answer(id json.RawMessage, result any, failure *Error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	m := message{Version: jsonrpcVersion, ID: id, Error: failure}
	if failure == nil {
		if result == nil {
			result = struct{}{}
		}
		var err error
		if m.Result, err = json.Marshal(result); err != nil {
			m.Result, m.Error = nil, &Error{Code: InternalError, Message: err.Error()}
		}
	}
	_ = c.write(m)
}

// write writes a message.
func (c *Conn) write(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.w.Write(append(line, '\n'))
	return err
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.write(message{Version: jsonrpcVersion, Method: method, Params: raw})
}

// Call sends a request and waits for the answer, which it decodes into result unless that is nil. A failure that the other side reports is an [*Error].
// When ctx ends the request is canceled at the other side, whose answer is not waited for; when the connection ends the failure is [ErrClosed].
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answered := make(chan message, 1)
	c.mu.Lock()
	if c.calls == nil {
		c.mu.Unlock()
		return ErrClosed
	}
	c.last++
	id := strconv.FormatInt(c.last, 10)
	c.calls[id] = answered
	c.mu.Unlock()
	if err := c.write(message{Version: jsonrpcVersion, ID: json.RawMessage(id), Method: method, Params: raw}); err != nil {
		c.forget(id)
		return err
	}
	select {
	case m, ok := <-answered:
		switch {
		case !ok:
			return ErrClosed
		case m.Error != nil:
			return m.Error
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return &AnswerError{method, strings.TrimPrefix(problemOf(err).Message, invalidParams)}
		}
		return nil
	case <-ctx.Done():
		c.forget(id)
		_ = c.Notify(cancelRequest, map[string]json.RawMessage{"requestId": json.RawMessage(id)}) // or the connection has ended
		return context.Cause(ctx)
	}
}

// forget drops the answer to a call.
func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// Decode reads the parameters of a request into v, a pointer to a struct. Fields without omitempty and omitzero are required. The failure is an
// [*Error] with the code [InvalidParams], whose data has the path of the field.
func Decode(params json.RawMessage, v any) error {
	if err := json.Unmarshal(params, v); err != nil {
		return problemOf(err)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(params, &given); err != nil {
		return Invalid("", "an object is expected")
	}
	for field := range reflect.TypeOf(v).Elem().Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if value := given[name]; options == "" && (value == nil || string(value) == "null") {
			return Invalid(name, "it is missing")
		}
	}
	return nil
}

// invalidParams begins the messages of errors about parameters.
const invalidParams = "Invalid params: "

// problemOf says what in a message is not of its type.
func problemOf(err error) *Error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		article := "a"
		if wrong.Value == "array" || wrong.Value == "object" {
			article = "an"
		}
		return Invalid(wrong.Field, fmt.Sprintf("%s %s is not what is expected", article, wrong.Value))
	}
	return Invalid("", "an object is expected")
}

// Invalid returns the error about a parameter, whose path has dots; empty for all of them.
func Invalid(path, problem string) *Error {
	message := invalidParams
	if path != "" {
		message += path + ": "
	}
	return &Error{Code: InvalidParams, Message: message + problem, Data: map[string]string{"path": path}}
}
