package tool

import (
	"fmt"
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// Confined is a tool that starts a program in a sandbox, at the level that each call asks for.
type Confined interface {
	Tool
	// Request returns what a call asks for. The error says what is wrong with that part of the arguments.
	Request(call Call) (Request, error)
}

// Request is what a call of a [Confined] tool asks for.
type Request struct {
	// Declaration has the level, and the hosts at [sandbox.Network]. The level is empty where there is no
	// sandbox, and only there.
	sandbox.Declaration
	// Missing says why there is no sandbox, for people; empty if there is one.
	Missing string
	// Reason is what the model says about why the call needs its level; empty if it says nothing.
	Reason string
	// Text is what will be run. It is the same for calls that differ only in what they ask for.
	Text string
}

// holds reports whether there is a sandbox that holds the call.
func (r Request) holds() bool { return r.Level != "" }

// known is what a box knows of the calls of its request. It may be used from several goroutines.
type known struct {
	mu       sync.Mutex
	levels   map[string]sandbox.Level     // of calls that were decided, by their id
	declined map[string]fault.Code        // why calls were not made, by their id
	refused  map[string][]sandbox.Refusal // what was stopped, by tool and text
	images   map[string][]chat.Part       // that calls returned, by their id
	edited   map[string][2]string         // arguments that the user gave calls, and the model's, by their id
	set      *Set                         // the tools with the ones that came later; nil if none has
}

// Images returns the pictures that a call returned, nil for none.
func (b *Box) Images(call chat.ToolCall) []chat.Part {
	images, _ := recall(b.known, b.known.images, call.ID)
	return images
}

// newKnown returns what a box knows before its first call.
func newKnown() *known {
	return &known{
		levels: make(map[string]sandbox.Level), declined: make(map[string]fault.Code), refused: make(map[string][]sandbox.Refusal),
		images: make(map[string][]chat.Part), edited: make(map[string][2]string),
	}
}

// remember keeps something about a call in one of the maps.
func remember[T any](k *known, in map[string]T, key string, what T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	in[key] = what
}

// recall returns what [remember] keeps.
func recall[T any](k *known, in map[string]T, key string) (what T, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what, ok = in[key]
	return what, ok
}

// tools returns the tools that there are now.
func (b *Box) tools() Set {
	b.known.mu.Lock()
	defer b.known.mu.Unlock()
	if b.known.set != nil {
		return *b.known.set
	}
	return b.o.Tools
}

// renew takes the tools that there are by now, see [Options].More.
func (b *Box) renew() {
	if b.o.More == nil {
		return
	}
	now := b.tools()
	set, err := now.With(b.o.More()...)
	if err != nil || set.Len() == now.Len() {
		return
	}
	b.known.mu.Lock()
	defer b.known.mu.Unlock()
	b.known.set = &set
}

// DeclineReason reports whether the call of an id was not made because it is not allowed, and the code that says why:
// [fault.Suspended] if it needs consent and no user can be asked, [fault.Failure] if a rule, a hook or the user refused it.
func (b *Box) DeclineReason(id string) (why fault.Code, ok bool) {
	return recall(b.known, b.known.declined, id)
}

// Level returns the level of the sandbox in which the program of a call runs: what it asks for, and from its
// decision on what it has. It is empty for tools that do not start a program in a sandbox, and where there is none.
func (b *Box) Level(call chat.ToolCall) string {
	if l, ok := recall(b.known, b.known.levels, call.ID); ok {
		return string(l)
	}
	e, ok := b.tools().lookup(call.Name)
	if !ok {
		return ""
	}
	c, ok := e.tool.(Confined)
	if !ok {
		return ""
	}
	args, err := chat.ParseArguments(call.Arguments)
	if err != nil {
		return ""
	}
	r, err := c.Request(Call{Name: e.declared.Name, Arguments: args})
	if err != nil {
		return ""
	}
	return string(r.Level)
}

// noticeOf returns what a model and the user read about what was noticed in a call at a level: empty if that is nothing.
func noticeOf(at sandbox.Declaration, noticed []sandbox.Refusal) string {
	if len(noticed) == 0 {
		return ""
	}
	level := ""
	if at.Level != "" {
		level = fmt.Sprintf(" at level %s", at.Level)
	}
	return fmt.Sprintf("This call%s %s.", level, sandbox.Refusals(noticed))
}

// stopNote returns what a model reads about what the sandbox stopped in a call at a level: empty if that is nothing.
// most is the highest level that a call can have, empty for any.
func stopNote(at sandbox.Declaration, most sandbox.Level, stopped []sandbox.Refusal) string {
	if len(stopped) == 0 {
		return ""
	}
	note := fmt.Sprintf("The sandbox stopped this call at level %s: it %s.", at.Level, sandbox.Refusals(stopped))
	needed, ok := at.LeastWith(stopped)
	switch {
	case !ok && slices.ContainsFunc(stopped, sandbox.Refusal.Asked):
		return note + " If the task needs that, make the same call again: the user is then asked."
	case !ok:
		return note + " No other level allows that."
	}
	if most != "" && !most.Covers(needed.Level) {
		return fmt.Sprintf("%s That needs the level %s, and programs run at the level %s at most here.", note, needed.Level, most)
	}
	again := fmt.Sprintf(`"sandbox": %q`, needed.Level)
	switch {
	case len(needed.Hosts) > 0:
		list, _ := value.Marshal(needed.Hosts) // texts can be marshalled
		again += `, "hosts": ` + string(list)
	case needed.Level == sandbox.Network && slices.ContainsFunc(stopped, func(r sandbox.Refusal) bool { return r.Access == sandbox.Connecting }):
		again += `, the "hosts" that it reaches`
	}
	return note + " If the task needs that, make the call again with " + again + ` and the "reason" for it.`
}
