// Package engine sends chat requests to models, and runs the tools that they ask for. Nothing else does.
//
// An [Engine] takes a [Request] and the [RequestContext] of its conversation. It calls the
// model, runs the tools that the model asks for and calls the model again, until a reply asks
// for no tool. Each model call is a turn. Everything that happens is emitted as events to the
// context's scope. The engine prints nothing and asks the user nothing.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/llm/event"
	"loki/internal/llm/hook"
	"loki/internal/llm/provider"
)

// DefaultMaxTurns bounds the tool loop of a request that sets no bound.
const DefaultMaxTurns = 100

// Models finds chat models by id. Its method may be called from several goroutines.
type Models interface {
	// ChatModel returns the model called id, "client:model" or "client". The error is
	// a [*fault.Error]. What the user should know of the model goes to the scope of ctx.
	ChatModel(ctx context.Context, id string) (Model, error)
}

// Model is a chat model and what it takes to call it.
type Model struct {
	ID                 string // client:model
	Name               string // the provider's own name
	Provider           provider.Chat
	MaxInputTokens     int    // 0 means unknown
	MaxOutputTokens    int    // sent with requests; 0 leaves it to the provider
	OutputLimit        int    // of the model itself, in tokens; 0 means unknown
	NoStream           bool   // replies come in one piece
	NoSystemMessage    bool   // system text goes into the first user message
	SystemPromptPrefix string // goes before, or as, the system message
	SupportsTools      bool
	SupportsImages     bool

	// Price returns the cost of a usage in US dollars. known is false if the price of a part
	// of it is not known. Nil means that the model costs nothing.
	Price func(chat.Usage) (usd float64, known bool)

	Retry     retry.Policy
	Fallbacks []string // ids of the models to ask, in order, when this one stays out of reach
}

// withCost returns u with its price.
func (m Model) withCost(u chat.Usage) chat.Usage {
	if m.Price == nil {
		return u
	}
	usd, known := m.Price(u)
	if !known {
		usd = 0
	}
	u.Cost, u.CostUnknown = usd, !known
	return u
}

// Tools are the tools that a model may call during a request.
type Tools interface {
	// Declarations lists the tools as the model sees them.
	Declarations() []chat.Tool
	// Call runs one call and returns the text for the model. A failure the model can
	// react to is a result with failed set; an error ends the request. Calls may come
	// from several goroutines.
	Call(ctx context.Context, call chat.ToolCall, st steps.Steps) (text string, failed bool, err error)
}

// Ordered is implemented by [Tools] whose calls may ask the user.
type Ordered interface {
	// InOrder returns functions like Call for n calls that are made at once. What they ask
	// the user before the calls is asked in the order of the functions. They are called once
	// each, beginning in that order.
	InOrder(n int) []CallFunc
}

// Polled is implemented by [Tools] of which some return what changes by itself, such as the state
// of work in the background. Models call them again and again while they wait.
type Polled interface {
	// Instead returns what a model should do instead of calling the tool with the name again and
	// again, as a hint to read. It is empty for tools whose results do not change by themselves.
	Instead(name string) string
}

// Confined is implemented by [Tools] of which some start programs in a sandbox.
type Confined interface {
	// Level returns the level of the sandbox in which the program of a call runs: what the call asks for, and once it
	// has been made, what it had. It is empty for tools that do not start one there.
	Level(call chat.ToolCall) string
}

// Pictured is implemented by [Tools] of which some return pictures.
type Pictured interface {
	// Images returns the pictures that a call returned after it was made, nil for none. The text of the result mentions
	// them.
	Images(call chat.ToolCall) []chat.Part
}

// Amended is implemented by [Tools] whose calls a user can edit before they are made.
type Amended interface {
	// Edited returns the arguments with which a call was made, and those of the model. It reports false if they are the same.
	Edited(call chat.ToolCall) (ran, original string, ok bool)
}

// CallFunc makes one call, as the method of [Tools] does.
type CallFunc = func(ctx context.Context, call chat.ToolCall, st steps.Steps) (text string, failed bool, err error)

// Request is one question to a model.
type Request struct {
	Messages      []chat.Message // at most one system message, first
	Model         string         // id; "" means the context's
	chat.Sampling                // over the context's
	Tools         Tools          // nil for none
	MaxTurns      int            // 0 means DefaultMaxTurns

	// Constraints bound the replies. The choice of a tool is for the first one only.
	chat.Constraints

	// Client are tools that the caller runs. A reply that calls one of them ends the request once its
	// other calls are run, see Reply.Calls. One of them hides a tool of the same name in Tools. Without Tools
	// every call is the caller's.
	Client []chat.Tool

	// Known is how many messages at the beginning an earlier request of the conversation sent or received. They
	// are sent like the others; the description of the call's step is of the others.
	Known int

	// Node is the graph node that makes the request; "" means that of the events, which in a
	// map is the map.
	Node string

	// OnRound is called after each round of tool calls with what it adds to the conversation:
	// the message with the calls, and their results. It may be nil.
	OnRound func(round []chat.Message)

	// Notice returns what the model has to know besides the results of a round, empty for
	// nothing. It is added to the last result. It may be nil.
	Notice func(ctx context.Context) string

	// Said returns what the user has said since the model was called for a turn, whose steps are in st. It is called after each
	// round of tool calls, and with last when a reply asks for none: if there is something then, the model is called again.
	// The messages follow the results or the reply. It may be nil.
	Said func(ctx context.Context, st steps.Steps, turn int, last bool) ([]chat.Message, error)

	// Repeats is how many equal calls of a tool in a row are run, and Window how many calls
	// the model is shown when it makes another one. 0 means DefaultRepeats and DefaultWindow.
	Repeats, Window int

	// Form is the form that the answer has to have, nil for any text. The messages have to
	// ask for it as well, and [Engine.StructuredValue] checks the answer.
	Form *schema.Schema

	// Whole says that the answer is parsed, run or stored. If it is cut off at the output
	// limit, that is an error then, and otherwise a warning.
	Whole bool
}

// RequestContext holds what belongs to one conversation. It is passed beside the
// context.Context and never shared between conversations.
type RequestContext struct {
	Model string // id of the current chat model, "" for none
	chat.Sampling
	// MaxOutputTokens is sent with requests in place of the model's; 0 leaves it to the model.
	MaxOutputTokens int
	NoStream        bool         // ask for replies in one piece
	Budget          Budget       // nil bounds nothing
	Events          event.Scope  // where events go, and what they name as their source
	Steps           steps.Steps  // record of the work done; the zero value records nothing
	Hooks           *hook.Runner // run before and after model calls; nil for none

	// Failures lets repeated requests share the repetitions of their calls. Nil
	// means that each call has its own.
	Failures *Failures
}

// Budget bounds what calls may use. Its methods may be called from several
// goroutines.
type Budget interface {
	// Reserve sets aside the estimated usage of one call: most, or an unknown amount if
	// bounded is false. It waits for calls under way if that does not fit beside them. It
	// fails if least, which the call uses in any case, exceeds the budget. settle is called
	// once, with what was used.
	Reserve(ctx context.Context, least, most chat.Usage, bounded bool) (settle func(used chat.Usage), err error)
	// Spend adds what was used without a reservation.
	Spend(used chat.Usage)
}

// Reply is the answer to a [Request].
type Reply struct {
	Text     string          // the texts of all turns, joined by a line feed
	Messages []chat.Message  // added to the conversation by the turns, in order; after an error also what the last turn received
	Model    string          // id
	Stop     chat.StopReason // of the last turn
	Usage    chat.Usage      // of all turns

	// Calls are those of the last reply that the caller runs, in its order; nil for none. They are part of
	// Messages, which have no results for them.
	Calls []chat.ToolCall
}

// MaxTurnsError says that the model still wanted tools when the turns were used up.
type MaxTurnsError struct{ Turns int }

func (e *MaxTurnsError) Error() string {
	return fmt.Sprintf("the model still asked for tools after %d turns", e.Turns)
}

// Engine answers requests. It may be used from several goroutines.
type Engine struct {
	models       Models
	now          func() time.Time
	sleep        func(context.Context, time.Duration) error
	showRequests bool
}

// Options configure New.
type Options struct {
	Models Models           // required
	Now    func() time.Time // nil means time.Now

	// Sleep waits between the attempts of a call. It returns early, with an error, if its
	// context ends. Nil means [retry.Sleep].
	Sleep func(context.Context, time.Duration) error

	// ShowRequests emits an event.Request for each call. It is for dry runs, whose models
	// send nothing.
	ShowRequests bool
}

// New returns an engine.
func New(o Options) (*Engine, error) {
	if o.Models == nil {
		return nil, errors.New("engine: no models")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	return &Engine{models: o.Models, now: o.Now, sleep: o.Sleep, showRequests: o.ShowRequests}, nil
}

// Model returns the model that a request of rc for id ("" for the context's) uses.
func (e *Engine) Model(ctx context.Context, rc *RequestContext, id string) (Model, error) {
	return e.models.ChatModel(event.NewContext(ctx, rc.Events), cmp.Or(id, rc.Model))
}

// Run answers req. On error the reply holds what was received until then. A filtered reply
// is an error with code [fault.Refused], and so is one that a hook refuses. An empty reply is an error with code
// [fault.Provider], and so is a reply that was cut off if req.Whole is set.
func (e *Engine) Run(ctx context.Context, rc *RequestContext, req Request) (Reply, error) {
	ctx = event.NewContext(ctx, rc.Events)
	model, err := e.Model(ctx, rc, req.Model)
	if err != nil {
		return Reply{}, err
	}
	c := call{rc: rc, req: req, model: model, known: req.Known}
	if c.messages, err = chat.GuardOutside(req.Messages); err != nil {
		return Reply{Model: model.ID}, fault.Wrap(fault.Config, err, "").WithHint("use the data in a prompt instead of instructions")
	}
	if c.hasTools() && !model.SupportsTools {
		warning := fmt.Sprintf("model %s is not known to call tools, so it is offered none; list it in config.yaml with supports_function_calling: true", model.ID)
		if err := rc.Events.Emit(ctx, event.Warning{Text: warning}); err != nil {
			return Reply{Model: model.ID}, err
		}
	}
	reply := Reply{Model: model.ID}
	var (
		texts []string
		loop  = toolLoop{repeats: newRepeatGuard(req.Repeats, req.Window)}
	)
	maxTurns := cmp.Or(req.MaxTurns, DefaultMaxTurns)
	for turn := 1; ; turn++ {
		t, err := e.turn(ctx, &c, turn)
		reply.Usage = reply.Usage.Add(t.Usage)
		reply.Stop, reply.Model = t.Stop, c.model.ID
		if said := t.Message.Text(); said != "" {
			texts = append(texts, said)
			reply.Text = strings.Join(texts, "\n")
		}
		if err == nil {
			err = c.judge(ctx, t, reply.Text)
		}
		if err != nil {
			if t.Message.ToolCalls = nil; len(t.Message.Parts) > 0 {
				reply.Messages = append(reply.Messages, t.Message) // without calls, which have no results
			}
			return reply, err
		}
		reply.Messages = append(reply.Messages, t.Message)
		if len(t.Message.ToolCalls) == 0 {
			if err := c.addNote(ctx, t.Note, nil); err != nil || req.Said == nil {
				return reply, err
			}
			said, err := req.Said(ctx, rc.Steps, turn, true)
			if err != nil || len(said) == 0 {
				return reply, err
			}
			if err := c.proceed(&reply, turn, maxTurns, said); err != nil {
				return reply, err
			}
			continue
		}
		meter := new(chat.Meter)
		results, open, err := loop.round(chat.WithMeter(ctx, meter), &c, turn, t)
		used, replayed := meter.Total()
		reply.Usage = reply.Usage.Add(used)
		if rc.Budget != nil {
			rc.Budget.Spend(replayed)
		}
		if err != nil {
			return reply, err
		}
		if err := c.addNote(ctx, t.Note, results); err != nil {
			return reply, err
		}
		if req.Said != nil && len(open) == 0 && turn < maxTurns {
			said, err := req.Said(ctx, rc.Steps, turn, false)
			if err != nil {
				return reply, err
			}
			results = append(results, said...)
		}
		err = c.proceed(&reply, turn, maxTurns, results)
		if len(open) > 0 {
			reply.Stop, reply.Calls = chat.StopToolCalls, open
			return reply, nil
		}
		if err != nil {
			return reply, err
		}
	}
}

// proceed adds to a conversation what follows the reply of a turn, so that the model can be called again.
func (c *call) proceed(reply *Reply, turn, maxTurns int, more []chat.Message) error {
	reply.Messages = append(reply.Messages, more...)
	added := reply.Messages[len(reply.Messages)-1-len(more):]
	if c.req.OnRound != nil {
		c.req.OnRound(added)
	}
	if turn == maxTurns {
		return &MaxTurnsError{Turns: turn}
	}
	c.known = len(c.messages) + 1
	c.messages = append(c.messages[:len(c.messages):len(c.messages)], added...)
	return nil
}

// adjust returns the messages in the form that the model accepts.
func adjust(messages []chat.Message, model Model) []chat.Message {
	if !model.SupportsImages {
		messages = withoutImages(messages)
	}
	if model.SystemPromptPrefix == "" && !model.NoSystemMessage {
		return messages
	}
	messages = append([]chat.Message(nil), messages...)
	if prefix := model.SystemPromptPrefix; prefix != "" {
		if len(messages) > 0 && messages[0].Role == chat.System {
			messages[0] = chat.Text(chat.System, prefix+"\n\n"+messages[0].Text())
		} else {
			messages = append([]chat.Message{chat.Text(chat.System, prefix)}, messages...)
		}
	}
	if model.NoSystemMessage && len(messages) > 1 && messages[0].Role == chat.System {
		first := messages[1]
		first.Parts = append([]chat.Part{{Type: chat.TextPart, Text: messages[0].Text() + "\n\n"}}, first.Parts...)
		messages = append([]chat.Message{first}, messages[2:]...)
	}
	return messages
}

// withoutImages returns messages without the pictures that tools returned, for a model that is not known to see.
func withoutImages(messages []chat.Message) []chat.Message {
	cloned := false
	for i, m := range messages {
		n := len(imagesOf(m))
		if n == 0 || m.Role != chat.ToolRole {
			continue
		}
		if !cloned {
			messages, cloned = slices.Clone(messages), true
		}
		note := fmt.Sprintf("\n[%s not shown: the model is not known to see]", text.Count(n, "picture"))
		messages[i].Parts = []chat.Part{{Type: chat.TextPart, Text: m.Text() + note}}
	}
	return messages
}

// imagesOf returns the pictures of a message.
func imagesOf(m chat.Message) (images []chat.Part) {
	for _, p := range m.Parts {
		if p.Type == chat.ImagePart {
			images = append(images, p)
		}
	}
	return images
}

// guard refuses a conversation that exceeds the input limit of the model. It counts exactly,
// which takes time, only if the estimate comes near the limit.
func guard(messages []chat.Message, model Model) error {
	if model.MaxInputTokens == 0 || token.Estimate().Messages(messages) < model.MaxInputTokens/3 {
		return nil
	}
	if err := token.For(model.Name).Fit(messages, model.MaxInputTokens); err != nil {
		return &provider.Error{Kind: provider.ContextOverflow, Msg: "model " + model.ID, Err: err}
	}
	return nil
}
