package render

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"loki/internal/base/value"
	"loki/internal/llm/event"
)

// watched are the keys of the state of the outermost graph whose changes are shown.
type watched struct {
	keys []string
	was  map[string]value.Value // what they are; absent for one that is not set

	step int      // a super-step
	ran  []string // those of its nodes that are done
}

// watch shows what changes in watched keys.
func (n *Narrator) watch(ev event.Event) {
	w := &n.watched
	if len(w.keys) == 0 || ev.AgentID != "" || ev.Item != nil {
		return
	}
	switch b := ev.Body.(type) {
	case event.Started:
		w.was = make(map[string]value.Value)
		w.change(b.State)
	case event.NodeFinished:
		if w.step != ev.Step {
			w.step, w.ran = ev.Step, nil
		}
		w.ran = append(w.ran, ev.Node)
	case event.StateUpdated:
		by := " (super-step " + strconv.Itoa(ev.Step)
		if b.Set {
			by = " (set by you"
		} else if w.step == ev.Step {
			by += ", " + joinComma(slices.Sorted(slices.Values(w.ran)))
		}
		for _, c := range w.change(b.Values) {
			old, text := "not set", string(c.now.AppendJSON(nil))
			if c.known {
				old = string(c.old.AppendJSON(nil))
				if b.Set && old == text {
					continue
				}
				old, text = difference(old, text, 2*n.watchLimit())
			}
			n.say(cyan, n.clock(ev)+oneLine(c.key, nameLimit)+": "+oneLine(old, n.watchLimit())+" -> "+oneLine(text, n.watchLimit())+by+")")
		}
	}
}

// watchedChange is how a watched key changed.
type watchedChange struct {
	key      string
	old, now value.Value
	known    bool // there is an old value
}

// change notes the values of watched keys among members, and returns the ones that have changed.
func (w *watched) change(members []value.Member) (changes []watchedChange) {
	for _, m := range members {
		if !slices.Contains(w.keys, m.Name) {
			continue
		}
		old, known := w.was[m.Name]
		w.was[m.Name] = m.Value
		changes = append(changes, watchedChange{m.Name, old, m.Value, known})
	}
	return changes
}

// watchLimit is how much of a watched value is shown, in characters.
func (n *Narrator) watchLimit() int { return max(80, n.valueLimit()) }

// around is how much of what two texts have in common is shown beside their difference, in bytes.
const around = 16

// difference returns two texts, or, if they are longer than limit bytes, where they differ, with an ellipsis for what they have in common.
func difference(old, text string, limit int) (string, string) {
	if len(old)+len(text) <= limit {
		return old, text
	}
	n := min(len(old), len(text))
	head := 0
	for head < n && old[head] == text[head] {
		head++
	}
	tail := 0
	for tail < n-head && old[len(old)-1-tail] == text[len(text)-1-tail] {
		tail++
	}
	head, tail = max(0, head-around), max(0, tail-around)
	return within(old, head, tail), within(text, head, tail)
}

// within returns text without so many bytes, or a few less, at its ends.
func within(text string, head, tail int) string {
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	end := len(text) - tail
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	var b strings.Builder
	if head > 0 {
		b.WriteString("…")
	}
	b.WriteString(text[head:end])
	if end < len(text) {
		b.WriteString("…")
	}
	return b.String()
}
