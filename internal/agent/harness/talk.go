package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// talk is a connection to a program during an attempt at a turn. It serves what the program sends.
type talk struct {
	p   *Program
	rc  *engine.RequestContext
	a   *Asked
	all steps.Steps // of the turn
	st  steps.Steps // of the attempt

	fail    func(error)   // ends the turn
	quit    chan struct{} // closed when the turn is canceled
	normal  string        // see Mode of a [Session]
	conn    *acp.Conn
	servers []acp.MCPServer
	can     acp.InitializeResponse
	offered acp.SessionResponse

	stop chat.StopReason // of the last prompt

	telling  sync.Mutex     // held while an event is emitted; it guards the next fields
	speaking bool           // a message was begun and has not ended
	message  string         // id of it
	size     int            // bytes of all messages and thoughts
	heard    int            // how often the user has said something
	said     []chat.Message // by the user, which the program does not know yet
	turns    int            // messages that were begun
	calls    map[string]*call
	done     int // finished calls

	mu      sync.Mutex // guards what follows, but for bill
	session string
	closed  bool // the session is not open yet, or the turn is over: what comes is of no interest
	texts   []*saying
	asked   map[string]int
	granted map[string]int // calls to which the user has consented, and which the program asks us to make
	terms   map[string]*terminal

	bill bill
}

// saying is a message.
type saying struct {
	strings.Builder
	user bool // the user said it
}

// call is a call of a tool that the program makes.
type call struct {
	acp.ToolCall
	shown bool // its event was emitted
}

// finished is a call on record.
type finished struct {
	Title  string `json:"title"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// maxRecorded is how much of a call is recorded, in bytes.
const maxRecorded = 4 << 10

func newTalk(p *Program, rc *engine.RequestContext, a *Asked, all steps.Steps, n int) *talk {
	t := &talk{
		p: p, rc: rc, a: a, all: all, st: all.At(fmt.Sprint(n)), closed: true, fail: func(error) {}, quit: make(chan struct{}),
		calls: make(map[string]*call), asked: make(map[string]int), granted: make(map[string]int), terms: make(map[string]*terminal),
	}
	t.bill = bill{t: t, usd: p.USDPerTurn}
	return t
}

// begin ends the message of an earlier prompt.
func (t *talk) begin(ctx context.Context) error {
	t.telling.Lock()
	defer t.telling.Unlock()
	return t.pause(ctx)
}

// forget forgets the messages of earlier prompts.
func (t *talk) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = nil
}

// messages returns the messages, and which of them the user said.
func (t *talk) messages() (texts []string, said []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range t.texts {
		one := strings.TrimSpace(text.String())
		if one == "" {
			continue
		}
		if text.user {
			said = append(said, len(texts))
		}
		texts = append(texts, one)
	}
	return texts, said
}

// listen takes the lines that the user has entered meanwhile; they are the next prompt of the program. last says that the program has answered.
func (t *talk) listen(ctx context.Context, last bool) ([]chat.Message, error) {
	if t.a.Said == nil {
		return nil, nil
	}
	said, err := t.a.Said(ctx, t.all, t.heard+1, last)
	if err != nil || len(said) == 0 {
		return nil, err
	}
	if err := t.pause(ctx); err != nil {
		return nil, err
	}
	t.heard++
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range said {
		one := &saying{user: true}
		one.WriteString(m.Text())
		t.texts = append(t.texts, one)
	}
	return said, nil
}

// next returns the prompt with what the user has said while the program worked, nil for nothing.
func (t *talk) next(ctx context.Context) (prompt []acp.ContentBlock, err error) {
	t.telling.Lock()
	defer t.telling.Unlock()
	said := t.said
	if t.said = nil; len(said) == 0 {
		said, err = t.listen(ctx, true)
	}
	for _, m := range said {
		prompt = append(prompt, acp.Text(m.Text()))
	}
	return prompt, err
}

// steer cancels the prompt of the program between two calls if the user has entered a line, which is the next prompt.
func (t *talk) steer(ctx context.Context) (err error) {
	if len(t.calls) > 0 || len(t.said) > 0 {
		return nil
	}
	if t.said, err = t.listen(ctx, false); err != nil || len(t.said) == 0 {
		return err
	}
	return t.conn.Notify(acp.SessionCancel, acp.SessionRequest{SessionID: t.session})
}

// lastText returns the last message.
func (t *talk) lastText() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.texts) == 0 {
		return ""
	}
	return t.texts[len(t.texts)-1].String()
}

// Notice implements [acp.Handler].
func (t *talk) Notice(ctx context.Context, method string, params json.RawMessage) {
	var n acp.SessionNotification
	if method != acp.SessionUpdate || json.Unmarshal(params, &n) != nil {
		return // of a newer version of the protocol
	}
	t.mu.Lock()
	past := t.closed || n.SessionID != t.session
	t.mu.Unlock()
	if past {
		return
	}
	t.telling.Lock()
	defer t.telling.Unlock()
	if err := t.update(ctx, n.Update); err != nil {
		t.fail(err)
	}
}

// update emits what happened. t.telling is held, as by the methods that follow.
func (t *talk) update(ctx context.Context, update any) error {
	switch u := update.(type) {
	case *acp.Chunk:
		switch {
		case u.Content.Type != "text" || u.Content.Text == "":
		case !t.fits(u.Content.Text):
			return fault.New(fault.Tool, "agent %s: %s said more than %d MiB in a turn", t.p.Agent, t.p.Name, maxSaid>>20)
		case u.Kind == acp.AgentMessageChunk:
			return t.say(ctx, u)
		case u.Kind == acp.AgentThoughtChunk:
			if err := t.speak(ctx); err != nil {
				return err
			}
			return t.rc.Events.Emit(ctx, event.Reasoning{Text: u.Content.Text})
		}
	case *acp.ToolCall:
		return t.noteCall(ctx, u)
	case *acp.Plan:
		var todo event.TodoUpdated
		for i, e := range u.Entries {
			todo.Todos = append(todo.Todos, event.Todo{ID: i + 1, Desc: text.OneLine(e.Content, 400), Done: e.Status == acp.Completed})
		}
		return t.rc.Events.Emit(ctx, todo)
	case *acp.Usage:
		if u.Cost != nil && strings.EqualFold(u.Cost.Currency, "USD") {
			return t.bill.takeCost(ctx, u.Cost.Amount)
		}
	case *acp.Notice:
		if u.Severity != "info" {
			said := strings.TrimSpace(u.Title + ": " + u.Description)
			return t.rc.Events.Emit(ctx, event.Warning{Text: t.p.Name + ": " + text.OneLine(strings.TrimSuffix(said, ":"), 400)})
		}
	case *acp.Compaction:
		if u.Status == acp.Failed {
			return t.rc.Events.Emit(ctx, event.Warning{Text: t.p.Name + " cannot shorten its session: " + text.OneLine(u.Error, 400)})
		}
	}
	return nil
}

// maxSaid is how much a program may say in a turn, in bytes.
const maxSaid = acp.MaxLine

// fits reports whether a text is within what a program may say in a turn.
func (t *talk) fits(text string) bool {
	t.size += len(text)
	return t.size <= maxSaid
}

// speak begins a message, unless one was begun.
func (t *talk) speak(ctx context.Context) error {
	if t.speaking {
		return nil
	}
	t.speaking, t.turns = true, t.turns+1
	return t.rc.Events.Emit(ctx, event.ModelCall{Model: t.p.Name, Turn: t.turns})
}

// say emits a piece of a message.
func (t *talk) say(ctx context.Context, c *acp.Chunk) error {
	if t.speaking && c.MessageID != "" && t.message != "" && c.MessageID != t.message {
		if err := t.pause(ctx); err != nil {
			return err
		}
	}
	fresh := !t.speaking || t.message == ""
	if err := t.speak(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	if fresh {
		t.texts, t.message = append(t.texts, new(saying)), cmp.Or(c.MessageID, "-")
	}
	t.texts[len(t.texts)-1].WriteString(c.Content.Text)
	t.mu.Unlock()
	return t.rc.Events.Emit(ctx, event.Delta{Text: c.Content.Text})
}

// pause ends the message that the program speaks, if there is one: a call of a tool follows, or another message.
func (t *talk) pause(ctx context.Context) error {
	if !t.speaking {
		return nil
	}
	return t.reply(ctx, chat.StopToolCalls)
}

// finish ends the last message. A turn without one has an empty one.
func (t *talk) finish(ctx context.Context) error {
	t.telling.Lock()
	defer t.telling.Unlock()
	if err := t.speak(ctx); err != nil {
		return err
	}
	return t.reply(ctx, t.stop)
}

// reply emits the message that the program speaks.
func (t *talk) reply(ctx context.Context, stop chat.StopReason) error {
	said := ""
	if t.message != "" {
		said = t.lastText()
	}
	t.speaking, t.message = false, ""
	return t.rc.Events.Emit(ctx, event.Reply{Model: t.p.Name, Text: said, Stop: stop, Usage: t.bill.take()})
}

// noteCall notes a call of a tool, or what changes in one.
func (t *talk) noteCall(ctx context.Context, u *acp.ToolCall) error {
	c := t.merge(u)
	over := c.Status == acp.Completed || c.Status == acp.Failed
	if !over && len(c.RawInput) <= 2 && c.Status != acp.InProgress { // {} at first: its arguments follow
		return nil
	}
	if err := t.show(ctx, c); err != nil || !over {
		return err
	}
	delete(t.calls, c.ToolCallID)
	t.done++
	key := fmt.Sprintf("finished/%d", t.done)
	output := text.Cut(t.outputOf(c), maxRecorded)
	err := steps.WriteNote(ctx, t.st, key, finished{text.Cut(c.Title, 400), text.Cut(string(c.RawInput), maxRecorded), output, c.Status == acp.Failed})
	if err != nil {
		return err
	}
	err = t.rc.Events.Emit(ctx, event.ToolResult{ID: c.ToolCallID, Name: nameOf(&c.ToolCall), Text: output, Failed: c.Status == acp.Failed, Sandbox: t.level(&c.ToolCall)})
	if err != nil {
		return err
	}
	return t.steer(ctx)
}

// merge returns a call with what an update says of it.
func (t *talk) merge(u *acp.ToolCall) *call {
	c := t.calls[u.ToolCallID]
	if c == nil {
		c = &call{ToolCall: acp.ToolCall{ToolCallID: u.ToolCallID}}
		t.calls[u.ToolCallID] = c
	}
	c.Title, c.Name = cmp.Or(u.Title, c.Title), cmp.Or(u.Name, c.Name)
	c.ToolKind, c.Status = cmp.Or(u.ToolKind, c.ToolKind), cmp.Or(u.Status, c.Status)
	if u.Content != nil {
		c.Content = u.Content
	}
	if u.Locations != nil {
		c.Locations = u.Locations
	}
	if len(u.RawInput) > 0 {
		c.RawInput = u.RawInput
	}
	if len(u.RawOutput) > 0 {
		c.RawOutput = u.RawOutput
	}
	return c
}

// show emits the event of a call, once.
func (t *talk) show(ctx context.Context, c *call) error {
	if c.shown {
		return nil
	}
	c.shown = true
	args := string(c.RawInput)
	if err := t.pause(ctx); err != nil {
		return err
	}
	if len(args) <= 2 || args[0] != '{' {
		data, _ := json.Marshal(map[string]string{"title": c.Title}) // texts can be marshalled
		args = string(data)
	}
	return t.rc.Events.Emit(ctx, event.ToolCall{ID: c.ToolCallID, Name: nameOf(&c.ToolCall), Arguments: args, Sandbox: t.level(&c.ToolCall)})
}

// level returns the level of the sandbox in which the program of a call runs, empty if it starts none.
func (t *talk) level(c *acp.ToolCall) string {
	if c.ToolKind != "execute" || !t.p.Confined() {
		return ""
	}
	return string(t.p.Held.Level)
}

// nameOf returns the name of the tool of a call in events.
func nameOf(c *acp.ToolCall) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, c.Name)
	return text.Cut(cmp.Or(name, c.ToolKind, "other"), 64)
}

// outputOf returns what a call shows, as a text.
func (t *talk) outputOf(c *call) string {
	var parts []string
	for _, o := range c.Content {
		switch {
		case o.Type == "content" && o.Content != nil && o.Content.Text != "":
			parts = append(parts, o.Content.Text)
		case o.Type == "diff":
			parts = append(parts, "changed "+t.p.displayPath(o.Path))
		case o.Type == "terminal":
			parts = append(parts, t.terminalOutput(o.TerminalID))
		}
	}
	if len(parts) == 0 && len(c.RawOutput) > 0 {
		var s string
		if json.Unmarshal(c.RawOutput, &s) != nil {
			s = string(c.RawOutput)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "\n")
}

// Request implements [acp.Handler].
func (t *talk) Request(ctx context.Context, method string, params json.RawMessage) acp.Answer {
	var in acp.SessionRequest
	_ = json.Unmarshal(params, &in) // a mistake is found below
	t.mu.Lock()
	here := in.SessionID == t.session || in.SessionID == "" && method == acp.ElicitationCreate
	t.mu.Unlock()
	switch method {
	case acp.RequestPermission:
		return serve(params, here, func(r *acp.PermissionRequest) (any, error) { return t.permit(ctx, r) })
	case acp.ReadTextFile:
		return serve(params, here, func(r *acp.ReadTextFileRequest) (any, error) { return t.readFile(ctx, r) })
	case acp.WriteTextFile:
		return serve(params, here, func(r *acp.WriteTextFileRequest) (any, error) { return nil, t.writeFile(ctx, r) })
	case acp.TerminalCreate:
		return serve(params, here, func(r *acp.CreateTerminalRequest) (any, error) { return t.createTerminal(ctx, r) })
	case acp.TerminalOutput, acp.TerminalWait, acp.TerminalKill, acp.TerminalRelease:
		return serve(params, here, func(r *acp.TerminalRequest) (any, error) { return t.useTerminal(ctx, method, r.TerminalID) })
	case acp.ElicitationCreate:
		return serve(params, here, func(r *acp.ElicitationRequest) (any, error) { return t.elicit(ctx, r) })
	}
	return nil
}

// serve returns the work of a request with its parameters. here says that it is about the session.
func serve[T any](params json.RawMessage, here bool, do func(*T) (any, error)) acp.Answer {
	return func() (any, error) {
		r := new(T)
		if err := acp.Decode(params, r); err != nil {
			return nil, err
		}
		if !here {
			return nil, acp.Invalid("sessionId", "unknown session")
		}
		return do(r)
	}
}

// imageOf returns the kind and the data of a picture, in base64; ok is false if it is elsewhere.
func imageOf(part chat.Part) (kind, data string, ok bool) {
	rest, ok := strings.CutPrefix(part.URL, "data:")
	kind, data, found := strings.Cut(rest, ";base64,")
	return kind, data, ok && found
}
