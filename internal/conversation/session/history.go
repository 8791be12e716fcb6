package session

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
)

// history is the state after the groups of a log. It is a value: what is done to a
// copy does not show in the original, nor in the lists that were handed out.
type history struct {
	counter token.Counter

	live         []chat.Message
	sizes        []int // of the first live messages, each as one that is not the last; the others have not been counted
	sum          int   // of sizes
	lead         int   // how many of live, from the first, are role messages, recap included
	instructions string
	recap        string

	compacted []chat.Message // what compactions have taken out of live, in order
	usage     chat.Usage     // of all groups, those too that do not count any more
	last      *change        // nil for none
}

// change is one that was made to a conversation: a turn, an undo or a clearing. The changes of a history are a
// list from the last to the first, which copies of it share.
type change struct {
	number  int    // from 1; changes that were undone count too
	turn    string // id of the turn, "" for none
	cut     bool   // the turn was interrupted
	at      time.Time
	reply   []chat.Message // of an answered turn that has an id
	usage   chat.Usage     // likewise
	earlier *change
}

// ofTurn returns the last change from c backward that records the turn with an id, nil if there is none.
func (c *change) ofTurn(id string) *change {
	for c != nil && (id == "" || c.turn != id) {
		c = c.earlier
	}
	return c
}

// note adds the change that g makes.
func (h *history) note(g group) {
	c := &change{number: h.number() + 1, turn: g.Draft, cut: g.Interrupted, at: g.At, earlier: h.last}
	if c.turn != "" && !c.cut {
		c.reply, c.usage = g.messages[g.Lead:], g.Usage
		if len(c.reply) > 0 && c.reply[0].Role == chat.User {
			c.reply = c.reply[1:]
		}
	}
	h.last = c
}

// number returns how many changes there were.
func (h *history) number() int {
	if h.last == nil {
		return 0
	}
	return h.last.number
}

// apply adds a group. It does not fail: a mark that makes no sense here is taken for
// what comes nearest to it.
func (h *history) apply(g group) {
	h.usage = h.usage.Add(g.Usage)
	switch g.Mark {
	case markTurn, markUndo, markEmpty:
		h.note(g)
	}
	switch g.Mark {
	case markTurn:
		h.drop(g.Replaces)
		if len(h.live) == 0 {
			h.begin(g)
		}
		h.live = append(h.live, g.messages...)
	case markCompaction:
		h.compact(g.Keep, g.Recap)
	case markUndo:
		h.undo(g.Replaces)
	case markEmpty:
		*h = history{counter: h.counter, usage: h.usage, last: h.last}
	}
}

// begin notes which of the messages of the first turn are role messages.
func (h *history) begin(g group) {
	h.lead = g.Lead
	h.instructions, h.recap = "", ""
	if len(g.messages) > 0 && g.messages[0].Role == chat.System {
		h.instructions = g.messages[0].Text()
		h.lead = max(h.lead, 1)
	}
}

// drop takes the last n live messages away, but no role messages.
func (h *history) drop(n int) {
	if n = min(n, len(h.live)-h.lead); n <= 0 {
		return
	}
	rest := len(h.live) - n
	h.live = slices.Clone(h.live[:rest])
	if rest < len(h.sizes) {
		for _, size := range h.sizes[rest:] {
			h.sum -= size
		}
		h.sizes = slices.Clone(h.sizes[:rest])
	}
}

func (h *history) compact(keep int, recap string) {
	first := len(h.live) - min(keep, len(h.live)-h.lead)
	old, lead := h.live, h.lead
	h.compacted = append(h.compacted, old[lead:first]...)
	h.recap = recap
	h.live, h.lead = nil, 0
	if system := joinParagraphs(h.instructions, recap); system != "" {
		h.live = append(h.live, chat.Text(chat.System, system))
	}
	for _, m := range old[:lead] {
		if m.Role != chat.System { // an example
			h.live = append(h.live, m)
		}
	}
	h.lead = len(h.live)
	h.live = append(h.live, old[first:]...)
	h.recount(h.counter)
}

// recount has everything counted again, with c.
func (h *history) recount(c token.Counter) {
	h.counter, h.sizes, h.sum = c, nil, 0
}

// tokens returns what the live messages count, framing included. Each message is
// counted once, when this is first asked: loading an encoding takes its time, and so
// does counting a long conversation.
func (h *history) tokens() int {
	h.count(math.MaxInt)
	n := len(h.live)
	if n == 0 {
		return 0
	}
	last := h.live[n-1]
	return h.sum - h.sizes[n-1] + h.counter.Message(last, true) + h.counter.Framing(n, last.Role)
}

// atLeast reports whether the live messages count n tokens or more. It counts no more
// of them than that takes.
func (h *history) atLeast(n int) bool {
	h.count(n)
	return len(h.sizes) < len(h.live) || h.tokens() >= n
}

// between returns what the live messages from index i to j count, without framing. It
// counts no more of them than it takes to reach enough.
func (h *history) between(i, j, enough int) (n int) {
	for ; i < j && n < enough; i++ {
		for len(h.sizes) <= i {
			h.countNext()
		}
		n += h.sizes[i]
	}
	return n
}

// count counts messages until all are counted, or the counted ones are more than enough: the last
// one, which counts differently, is never needed for that.
func (h *history) count(enough int) {
	for len(h.sizes) < len(h.live) && h.sum < enough {
		h.countNext()
	}
}

func (h *history) countNext() {
	size := h.counter.Message(h.live[len(h.sizes)], false)
	h.sizes = append(h.sizes, size)
	h.sum += size
}

// messages returns the live messages; appending to the list copies it.
func (h *history) messages() []chat.Message { return slices.Clip(h.live) }

// turns returns where in live the turns begin, which is at the user's questions behind
// the role messages. A continuation begins one if a compaction has taken away what it
// continues.
func (h *history) turns() []int {
	var starts []int
	for i := h.lead; i < len(h.live); i++ {
		if m := h.live[i]; m.Question() || m.Role == chat.User && len(starts) == 0 {
			starts = append(starts, i)
		}
	}
	return starts
}

// lastTurn returns where in live the last turn begins, -1 if there is none.
func (h *history) lastTurn() int {
	first := -1
	for i := len(h.live) - 1; i >= h.lead; i-- {
		if m := h.live[i]; m.Question() {
			return i
		} else if m.Role == chat.User {
			first = i
		}
	}
	return first
}

// find returns the index of the last message in the last turn that matches, -1 if there is none.
func (h *history) find(matches func(chat.Message) bool) int {
	first := h.lastTurn()
	for i := len(h.live) - 1; i >= first && first >= 0; i-- {
		if matches(h.live[i]) {
			return i
		}
	}
	return -1
}

// findSame returns the index of the last message in the last turn that is m, -1 if there is none.
func (h *history) findSame(m chat.Message) int {
	return h.find(func(other chat.Message) bool { return reflect.DeepEqual(other, m) })
}

// lastUser returns the index of the last message of the last turn that has the role of the user,
// -1 if there is none.
func (h *history) lastUser() int {
	return h.find(func(m chat.Message) bool { return m.Role == chat.User })
}

// joinParagraphs joins texts by an empty line, unless one of them is empty.
func joinParagraphs(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return strings.TrimRight(a, "\n") + "\n\n" + b
}
