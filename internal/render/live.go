package render

import (
	"strings"
	"time"
)

// task is a unit of work that runs: a line of the live area.
type task struct {
	key    taskKey
	kind   string // type of the node
	indent string // sets members of a super-step of several off
	since  time.Time

	note        string // what it is doing, if that is known
	attempt     int    // above 1 after a retry
	done, total int    // of a map; total is 0 for other nodes
	tenths      int    // of the map that were shown as lines
}

// taskKey says which node a task is.
type taskKey struct {
	run, agent string
	depth      int
	node       string
}

// spinner has the frames of a turning ring, one for each drawing.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

const (
	barMax = 24 // columns of a progress bar
	barMin = 6
)

// drawLive appends the live area to s.buf, at most half the height of the terminal, and
// notes the width of its lines. s.mu is held.
func (s *Screen) drawLive(columns, rows int) {
	if rows < 3 || columns < 4 {
		return // no room for a live line, the cursor and anything else
	}
	now := s.o.Now()
	var shown []*task
	for _, t := range s.tasks {
		if now.Sub(t.since) >= showAfter {
			shown = append(shown, t)
		}
	}
	folded := 0
	if room := rows / 2; len(shown) > room {
		folded = len(shown) - room + 1
		shown = shown[:room-1]
	}
	for _, t := range shown {
		frame := int(now.Sub(t.since)/frameTime) % (len(spinner) / 3)
		s.drawLine(cyan, spinner[3*frame:3*frame+3]+" ", t.line(now, columns-1-2))
	}
	switch {
	case folded > 0 && len(shown) == 0:
		s.drawLine(dim, "", clip(thousands(folded)+" running", columns-1))
	case folded > 0:
		s.drawLine(dim, "", clip("+"+thousands(folded)+" more running", columns-1))
	}
}

// drawLine appends a live line. Lines leave the last column free: a terminal that has
// just filled it is about to wrap.
func (s *Screen) drawLine(st style, mark, text string) {
	on := colors(s.o.Color)
	s.drawn = append(s.drawn, width(mark+text))
	s.buf.WriteString(on.paint(st, mark) + on.paint(dim, text) + "\x1b[K\n")
}

// line returns what t is doing, in at most so many columns: name, kind and time, then how far
// it has come, then a bar if there is room for one.
func (t *task) line(now time.Time, columns int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat("  ", t.key.depth) + t.indent + oneLine(t.key.path(), 200))
	if t.kind != "" {
		b.WriteString(" (" + t.kind + ")")
	}
	b.WriteString(" " + elapsed(now.Sub(t.since)))
	if t.total > 0 {
		b.WriteString("  " + thousands(t.done) + "/" + thousands(t.total))
		if room := min(columns-width(b.String())-2, barMax); room >= barMin {
			b.WriteString("  " + bar(t.done, t.total, room))
		}
	}
	if t.attempt > 1 {
		b.WriteString(", attempt " + thousands(t.attempt))
	}
	if t.note != "" {
		b.WriteString(" · " + oneLine(t.note, 200))
	}
	return clip(b.String(), columns)
}

// bar draws done of total in so many columns.
func bar(done, total, columns int) string {
	full := columns * min(done, total) / total
	return strings.Repeat("━", full) + strings.Repeat("─", columns-full)
}

// path names the node, below the agent that runs it unless that is the one the user
// started.
func (k taskKey) path() string {
	if k.depth > 0 && k.agent != "" {
		return k.agent + "/" + k.node
	}
	return k.node
}
