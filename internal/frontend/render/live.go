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

	answer bool // it is the spinner of a model's answer

	note        string        // what it is doing, if that is known
	attempt     int           // above 1 after a retry
	done, total int           // of a map or a build; total is 0 for others
	left        time.Duration // that a build is likely to take; 0 if unknown
	failed      string        // which items of a map failed; "" for none
	tenths      int           // of the map that were shown as lines
	pace        pace          // of a map
	atOnce      int           // calls that the provider of a map takes; 0 if it takes all
}

// taskKey says which node a task is.
type taskKey struct {
	run, agentID string
	agent        string // its name, as it is shown
	node         string
}

// spinner has the frames of a turning ring, one for each drawing.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// linesAbove is how many lines the tree of agents leaves to what scrolls above it.
const linesAbove = 6

const (
	barMax = 24 // columns of a progress bar
	barMin = 6
)

// liveLine is a line of the live area as it is drawn.
type liveLine struct {
	text    string
	columns int
}

// span is a piece of a line in one style.
type span struct {
	style style
	text  string
}

// newLiveLine returns the line that spans make on a terminal of so many columns. It leaves the
// last column free: a terminal that has just filled it is about to wrap.
func newLiveLine(on colors, columns int, spans ...span) liveLine {
	var l liveLine
	var b strings.Builder
	for _, sp := range spans {
		text := clip(sp.text, columns-1-l.columns)
		b.WriteString(on.paint(sp.style, text))
		l.columns += width(text)
	}
	l.text = b.String()
	return l
}

// liveArea returns the lines of the live area. s.mu is held.
func (s *Screen) liveArea(columns, rows int) []liveLine {
	if rows < 3 || columns < 4 {
		return nil // no room for a live line, the cursor and anything else
	}
	now, on := s.o.Now(), colors(s.o.Color)
	if s.tree.working() {
		return append(s.tree.lines(on, s.tasks, now, columns, max(rows/2, rows-linesAbove)-len(s.below)), s.belowLines(columns, rows)...)
	}
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
	var lines []liveLine
	for _, t := range shown {
		lines = append(lines, newLiveLine(on, columns, span{cyan, spin(now.Sub(t.since), frameTime) + " "}, span{dim, t.line(now, columns-1-2)}))
	}
	switch {
	case folded > 0 && len(shown) == 0:
		lines = append(lines, newLiveLine(on, columns, span{dim, Thousands(folded) + " running"}))
	case folded > 0:
		lines = append(lines, newLiveLine(on, columns, span{dim, "+" + Thousands(folded) + " more running"}))
	}
	return append(lines, s.belowLines(columns, rows)...)
}

// line returns what t is doing, in at most so many columns: name, kind and time, then how far
// it has come, then a bar if there is room for one.
func (t *task) line(now time.Time, columns int) string {
	var b strings.Builder
	note := ""
	if t.note != "" {
		note = " · " + oneLine(t.note, 200)
	}
	b.WriteString(t.indent + oneLine(t.key.path(), 200))
	if t.kind != "" {
		b.WriteString(" (" + t.kind + ")")
	}
	if t.left > 0 {
		b.WriteString(" " + remainingText(t.left) + " left")
	} else {
		b.WriteString(" " + elapsedText(now.Sub(t.since)))
	}
	if t.total > 0 {
		b.WriteString("  " + Thousands(t.done) + "/" + Thousands(t.total))
		b.WriteString(t.failed + t.estimate(now))
		if room := min(columns-width(b.String())-2-width(note), barMax); room >= barMin {
			b.WriteString("  " + bar(t.done, t.total, room))
		}
	}
	if t.attempt > 1 {
		b.WriteString(", attempt " + Thousands(t.attempt))
	}
	b.WriteString(note)
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
	if k.agentID != "" {
		return k.agent + "/" + k.node
	}
	return k.node
}
