package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// The kinds of mark.
const (
	markTurn       = "turn"
	markCompaction = "compaction"
	markEmpty      = "empty"
	markUndo       = "undo"
	markUsage      = "usage" // of calls outside of turns, such as for a title
	markRound      = "round" // in drafts only
)

// mark is the last line of a group. Fields that a kind does not use are zero.
type mark struct {
	Mark     string    `json:"mark"`
	Messages int       `json:"messages,omitempty"` // turn, round: how many precede it
	Lead     int       `json:"lead,omitempty"`     // turn: how many of them, from the first, are role messages
	Replaces int       `json:"replaces,omitempty"` // turn: how many live messages go first; undo: how many go
	Keep     int       `json:"keep,omitempty"`     // compaction: how many of the last live messages stay
	Recap    string    `json:"recap,omitempty"`    // compaction: what goes after the instructions
	At       time.Time `json:"at,omitzero"`

	Draft       string `json:"draft,omitempty"`       // turn: id of the draft it was
	Interrupted bool   `json:"interrupted,omitempty"` // turn: it was not answered

	Usage chat.Usage `json:"usage,omitzero"` // turn, compaction, usage: what the model calls used
}

// group is what is appended to a log at once: messages and the mark after them.
type group struct {
	mark
	messages []chat.Message
}

// encode appends the lines of g.
func (g group) encode(b *bytes.Buffer) error {
	line := func(v any) error {
		doc, err := value.Marshal(v)
		if err == nil {
			b.Write(append(doc, '\n'))
		}
		return err
	}
	for _, m := range g.messages {
		if err := line(m); err != nil {
			return fmt.Errorf("message of role %s: %w", m.Role, err)
		}
	}
	return line(g.mark)
}

// line is any line of a log.
type line struct {
	mark
	chat.Message
}

// Damage is something in a log that cannot be used. It is reported, never returned as
// an error: everything else in the log still counts.
type Damage struct {
	ID     ID
	Offset int64  // where in the log
	Size   int64  // bytes
	Cut    bool   // it was the unfinished end of the log, and has been cut off
	Why    string // what is wrong with it
}

func (d *Damage) Error() string {
	if d.Cut {
		return fmt.Sprintf("session %s: the last turn was not written completely and was dropped (%d bytes, %s)", d.ID, d.Size, d.Why)
	}
	return fmt.Sprintf("session %s: %d bytes at %d of the messages cannot be read: %s", d.ID, d.Size, d.Offset, d.Why)
}

// parse reads the groups in data. used is how many bytes they take: what follows is
// torn, and why says how. damages are the lines in between that could not be read,
// with offsets into data.
func parse(data []byte) (groups []group, used int, why string, damages []*Damage) {
	var pending []chat.Message
	why = "the end is missing"
	for pos := 0; pos < len(data); {
		end := bytes.IndexByte(data[pos:], '\n')
		if end < 0 {
			break
		}
		start := pos
		text := data[pos : pos+end]
		pos += end + 1
		var l line
		switch err := json.Unmarshal(text, &l); {
		case err != nil:
			damages = append(damages, &Damage{Offset: int64(start), Size: int64(end + 1), Why: err.Error()})
		case l.Mark == "" && l.Role == "":
			damages = append(damages, &Damage{Offset: int64(start), Size: int64(end + 1), Why: "neither a message nor a mark"})
		case l.Mark == "":
			pending = append(pending, l.Message)
		default:
			g, surplus := closeGroup(l.mark, pending)
			if surplus > 0 {
				damages = append(damages, &Damage{
					Offset: int64(used), Size: int64(start - used), Why: fmt.Sprintf("%d messages do not belong to a turn", surplus),
				})
			}
			groups = append(groups, g)
			pending, used = nil, pos
		}
	}
	// What was wrong behind the last mark is part of the torn end.
	for len(damages) > 0 && damages[len(damages)-1].Offset >= int64(used) {
		why = damages[len(damages)-1].Why
		damages = damages[:len(damages)-1]
	}
	return groups, used, why, damages
}

// Whole returns a log without the torn end that a writer may have left.
func Whole(log []byte) []byte {
	_, used, _, _ := parse(log)
	return log[:used]
}

// closeGroup makes a group of a mark and the messages in front of it. It takes no more
// of them than belong to it, the last ones, and says how many are left.
func closeGroup(m mark, messages []chat.Message) (g group, surplus int) {
	want := 0
	if m.Mark == markTurn || m.Mark == markRound {
		want = max(m.Messages, 0)
	}
	surplus = max(len(messages)-want, 0)
	messages = messages[surplus:]
	m.Messages = len(messages)
	m.Lead = min(max(m.Lead, 0), len(messages))
	m.Replaces, m.Keep = max(m.Replaces, 0), max(m.Keep, 0)
	return group{mark: m, messages: messages}, surplus
}
