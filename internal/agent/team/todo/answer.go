package todo

import (
	"context"
	"fmt"
	"slices"

	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// DefaultMax is how often a model is asked to continue if nothing else is set.
const DefaultMax = 10

// DefaultPrompt asks a model to continue. The list follows it.
const DefaultPrompt = "[SYSTEM REMINDER - TODO CONTINUATION]\n" +
	"Your todo list has open items. Check what is finished, and mark it with todo__done only then. " +
	"If the next item is too broad for one step, add an item for each of its parts first. " +
	"Then continue with the next open item: call tools at once, without announcing what you will do."

// Instructions explain the tools of the list to a model, in Markdown.
const Instructions = `## Todo list
You have a todo list for work with more than one step.
- todo__init {"goal"}: start the list before you start the work.
- todo__add {"task"}: add one step; it returns the id of the item. Add all planned steps before you begin with the first.
- todo__done {"id"}: mark an item right after its step is finished, one at a time, never several at the end.
- todo__list {}: read the list.
- todo__clear {}: drop the list when the user cancels the work or wants something else.
If you stop while items are open, you are asked to continue. So finish every item, or clear the list if the work is no longer wanted.`

// maxStalled is how many replies in a row may leave the list as it is. The last of them ends
// the answer.
const maxStalled = 2

// Settings say whether a model continues by itself.
type Settings struct {
	Enabled bool   `json:"enabled,omitempty"`
	Max     int    `json:"max,omitempty"`    // continuations of one question; 0 means none
	Inject  bool   `json:"inject,omitempty"` // the instructions of the model explain the tools of the list
	Count   int    `json:"count,omitempty"`  // continuations of the question so far
	Prompt  string `json:"prompt,omitempty"` // asks the model to continue; "" means [DefaultPrompt]
}

// Answer answers a request as [engine.Engine.Run] does and, while the list has open items,
// asks the model to continue, at most s.Max times. What s says is read after each reply. It stops when two replies in a row leave the
// list as it is, and at a reply with calls for the caller. The count starts again when the model clears the list.
//
// The reply is that of all requests together: their texts, joined by a line feed, their
// usage, and their messages with the requests to continue between them. The steps of reply n,
// from 2 on, are recorded below continue/n.
func Answer(ctx context.Context, e *engine.Engine, rc *engine.RequestContext, req engine.Request, list *List, s *Settings) (engine.Reply, error) {
	p := progress{list: list, count: s.Count, seen: list.Render(), clears: list.clearCount()}
	reply, err := e.Run(ctx, rc, req)
	last := reply
	for n := 2; err == nil && len(last.Calls) == 0 && s.Enabled && p.goesOn(s.Max); n++ {
		ask := s.Ask(list)
		if err = rc.Events.Emit(ctx, event.AutoContinue{Count: p.count, Max: s.Max, Open: list.Open()}); err != nil {
			break
		}
		req.Messages = slices.Concat(req.Messages, last.Messages, []chat.Message{ask})
		req.Known, req.Choice = len(req.Messages)-1, chat.ToolChoice{}
		next := *rc
		next.Steps = rc.Steps.At(fmt.Sprintf("continue/%d", n))
		last, err = e.Run(ctx, &next, req)
		reply = join(reply, ask, last)
	}
	return reply, err
}

// Ask returns the message that asks a model to continue its list.
func (s Settings) Ask(list *List) chat.Message {
	m := chat.Text(chat.User, s.prompt()+"\n\n"+list.Render())
	m.Continuation = true
	return m
}

func (s Settings) prompt() string {
	if s.Prompt == "" {
		return DefaultPrompt
	}
	return s.Prompt
}

// progress decides after each reply whether the model continues.
type progress struct {
	list    *List
	count   int    // continuations so far
	stalled int    // replies in a row that left the list as it was
	seen    string // the list after the reply before
	clears  int    // how often it had been cleared by then
}

// goesOn reports whether to ask the model again, most times at most, and counts that.
func (p *progress) goesOn(most int) bool {
	if clears := p.list.clearCount(); clears != p.clears {
		p.clears, p.count = clears, 0
	}
	p.stalled++
	if list := p.list.Render(); list != p.seen { // a list that is written again is no progress
		p.seen, p.stalled = list, 0
	}
	if p.list.Open() == 0 || p.stalled >= maxStalled || p.count >= most {
		return false
	}
	p.count++
	return true
}

// join returns the reply that continues with more after the model was asked to.
func join(reply engine.Reply, ask chat.Message, more engine.Reply) engine.Reply {
	joined := more
	if reply.Text != "" && more.Text != "" {
		joined.Text = "\n" + more.Text
	}
	joined.Text = reply.Text + joined.Text
	joined.Messages = slices.Concat(reply.Messages, []chat.Message{ask}, more.Messages)
	joined.Usage = reply.Usage.Add(more.Usage)
	return joined
}
