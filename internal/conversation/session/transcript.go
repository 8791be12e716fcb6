package session

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"loki/internal/llm/chat"
)

// Transcript is a conversation that comes from elsewhere.
type Transcript struct {
	Compacted []chat.Message // what a recap has replaced, oldest first; nil if there was none
	Live      []chat.Message // with the recap, if there is one, in the system message at the beginning
}

// Log returns the log of a session that has the conversation. at is the time of the
// turns, which is not known.
//
// A conversation that consists of nothing but a recap continues with the last turn that was
// replaced, if there is one: the next question is likely to refer to it.
func (t Transcript) Log(at time.Time) ([]byte, error) {
	var w logWriter
	live := t.Live
	if len(t.Compacted) > 0 {
		live = w.writeCompactions(t, at)
	}
	w.turns(live, at)
	if w.err != nil {
		return nil, w.err
	}
	return w.data.Bytes(), nil
}

// Glance returns the text of the first question and the number of turns.
func (t Transcript) Glance() (first string, turns int) {
	return glance(append(slices.Clip(t.Compacted), t.Live...))
}

func glance(list []chat.Message) (first string, turns int) {
	for _, m := range list {
		if m.Question() {
			if turns == 0 {
				first = m.Text()
			}
			turns++
		}
	}
	return first, turns
}

// logWriter encodes groups.
type logWriter struct {
	data  bytes.Buffer
	begun bool // there is a turn already
	err   error
}

func (w *logWriter) add(g group) {
	if w.err == nil {
		w.err = g.encode(&w.data)
	}
}

// turns adds messages, each turn as a group.
func (w *logWriter) turns(list []chat.Message, at time.Time) {
	for len(list) > 0 {
		end := 1
		for end < len(list) && (list[end].Role != chat.User || list[end-1].Role == chat.System) {
			end++
		}
		g := group{mark: mark{Mark: markTurn, Messages: end, At: at}, messages: list[:end]}
		if !w.begun && list[0].Role == chat.System {
			g.Lead = 1
		}
		w.begun = true
		w.add(g)
		list = list[end:]
	}
}

// writeCompactions adds what a recap has replaced, and the recap. It returns the live messages
// that follow.
func (w *logWriter) writeCompactions(t Transcript, at time.Time) (live []chat.Message) {
	live = t.Live
	var system string
	if len(live) > 0 && live[0].Role == chat.System {
		system = live[0].Text()
		live = live[1:]
	}
	// The instructions are what the conversation began with, if the system message
	// begins with them still, and otherwise all of it.
	instructions, recap := system, ""
	if first := t.Compacted[0]; first.Role == chat.System {
		if rest, ok := strings.CutPrefix(system, first.Text()); ok {
			instructions, recap = first.Text(), strings.TrimLeft(rest, "\n")
		}
	}
	var old []chat.Message
	if instructions != "" {
		old = append(old, chat.Text(chat.System, instructions))
	}
	lead := len(old)
	for _, m := range t.Compacted {
		if m.Role != chat.System { // those are earlier recaps
			old = append(old, m)
		}
	}
	w.turns(old, at)
	keep := 0
	if len(live) == 0 {
		for i := len(old) - 1; i >= lead && keep == 0; i-- {
			if old[i].Role == chat.User {
				keep = len(old) - i
			}
		}
	}
	w.add(group{mark: mark{Mark: markCompaction, Keep: keep, Recap: recap, At: at}})
	return live
}
