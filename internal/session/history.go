package session

import (
	"slices"
	"strings"

	"loki/internal/chat"
	"loki/internal/token"
)

// history is what the groups of a log add up to. It is a value: what is done to a copy
// does not show in the original, nor in the lists that were handed out.
type history struct {
	counter token.Counter

	live         []chat.Message
	sizes        []int // of live[i], as a message that is not the last
	sum          int   // of sizes
	lead         int   // how many of live, from the first, are role messages, recap included
	instructions string
	recap        string

	compacted []chat.Message // what compactions have taken out of live, in order
}

// apply adds a group. It does not fail: a mark that makes no sense here is taken for
// what comes nearest to it.
func (h *history) apply(g group) {
	switch g.Mark {
	case markTurn:
		h.drop(g.Replaces)
		if len(h.live) == 0 {
			h.begin(g)
		}
		for _, m := range g.messages {
			h.push(m)
		}
	case markCompaction:
		h.compact(g.Keep, g.Recap)
	case markEmpty:
		*h = history{counter: h.counter}
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

func (h *history) push(m chat.Message) {
	size := h.counter.Message(m, false)
	h.live = append(h.live, m)
	h.sizes = append(h.sizes, size)
	h.sum += size
}

// drop takes the last n live messages away, but no role messages.
func (h *history) drop(n int) {
	if n = min(n, len(h.live)-h.lead); n <= 0 {
		return
	}
	rest := len(h.live) - n
	for _, size := range h.sizes[rest:] {
		h.sum -= size
	}
	h.live, h.sizes = slices.Clone(h.live[:rest]), slices.Clone(h.sizes[:rest])
}

func (h *history) compact(keep int, recap string) {
	first := len(h.live) - min(keep, len(h.live)-h.lead)
	old, oldSizes, lead := h.live, h.sizes, h.lead
	h.compacted = append(h.compacted, old[lead:first]...)
	h.recap = recap
	h.live, h.sizes, h.sum, h.lead = nil, nil, 0, 0
	if system := joinParagraphs(h.instructions, recap); system != "" {
		h.push(chat.Text(chat.System, system))
		h.lead = 1
	}
	for i := range old {
		example := i < lead && old[i].Role != chat.System
		if !example && i < first {
			continue
		}
		h.live = append(h.live, old[i])
		h.sizes = append(h.sizes, oldSizes[i])
		h.sum += oldSizes[i]
		if example {
			h.lead++
		}
	}
}

// tokens returns what the live messages count, framing included.
func (h *history) tokens() int {
	n := len(h.live)
	if n == 0 {
		return 0
	}
	last := h.live[n-1]
	return h.sum - h.sizes[n-1] + h.counter.Message(last, true) + h.counter.Framing(n, last.Role)
}

// recount counts everything again, with another counter.
func (h *history) recount(c token.Counter) {
	h.counter, h.sum = c, 0
	h.sizes = make([]int, len(h.live))
	for i, m := range h.live {
		h.sizes[i] = c.Message(m, false)
		h.sum += h.sizes[i]
	}
}

// messages returns the live messages; appending to the list copies it.
func (h *history) messages() []chat.Message { return slices.Clip(h.live) }

// turns returns where in live the turns begin, which is at the user's messages behind
// the role messages.
func (h *history) turns() []int {
	var starts []int
	for i := h.lead; i < len(h.live); i++ {
		if h.live[i].Role == chat.User {
			starts = append(starts, i)
		}
	}
	return starts
}

// lastUser returns the index of the last message of the user behind the role messages,
// -1 if there is none.
func (h *history) lastUser() int {
	for i := len(h.live) - 1; i >= h.lead; i-- {
		if h.live[i].Role == chat.User {
			return i
		}
	}
	return -1
}

// joinParagraphs joins texts by an empty line, unless one of them is empty.
func joinParagraphs(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return strings.TrimRight(a, "\n") + "\n\n" + b
}
