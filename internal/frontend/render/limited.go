package render

import (
	"fmt"
	"time"

	"loki/internal/llm/event"
)

// pace is how fast a map comes forward, of late.
type pace struct{ before, last mark }

type mark struct {
	at   time.Time
	done int
}

// paceTime is how long a mark counts at least.
const paceTime = 10 * time.Second

// add notes that so many items are done.
func (p *pace) add(now time.Time, done int) {
	switch {
	case p.before.at.IsZero():
		p.before = mark{now, done}
		p.last = p.before
	case now.Sub(p.last.at) >= paceTime:
		p.before, p.last = p.last, mark{now, done}
	}
}

// estimate returns how long a map is likely to take whose provider limits its calls, "" for other tasks.
func (t *task) estimate(now time.Time) string {
	if t.atOnce == 0 || t.total == 0 || t.done >= t.total {
		return ""
	}
	more := fmt.Sprintf(" (%d at once)", t.atOnce)
	passed, done := now.Sub(t.pace.before.at), t.done-t.pace.before.done
	if done <= 0 || passed < time.Second {
		return more
	}
	return ", about " + remainingText(passed/time.Duration(done)*time.Duration(t.total-t.done)) + " left" + more
}

// showLimited shows that a call waits: of a map in its line, of others in a line of its own if the wait is longer than one for other
// calls.
func (n *Narrator) showLimited(ev event.Event, b event.Limited) {
	if b.Reason == "spending" {
		if b.Waited == 0 && n.until.Before(ev.Time) {
			n.until = ev.Time.Add(time.Minute) // without another such line
			n.say(dim, n.subject(ev)+"waits for other calls, because a limit of spending has no room beside them")
		}
		return
	}
	t := n.task(ev)
	if t != nil && t.kind == "map" {
		t.atOnce = b.AtOnce
		return
	}
	if b.Reason == "concurrency" || b.Until.Sub(ev.Time) < time.Second || b.Until.Sub(n.until) < time.Second {
		return
	}
	n.until = b.Until
	n.say(dim, n.subject(ev)+"waits until "+b.Until.In(n.o.Location).Format(time.TimeOnly)+", because "+oneLine(b.Client+":"+b.Model, nameLimit)+" takes no more calls now")
}
