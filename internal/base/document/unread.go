package document

import (
	"fmt"
	"strconv"

	"loki/internal/base/text"
)

// unread collects what is not read of a document.
type unread struct {
	things []thing
	first  error // why a part could not be read; nil if all could
}

// thing is something that is not read: a phrase that is said once, or a noun that is counted.
type thing struct {
	noun, rest string // "picture", " without text"
	n          int    // 0 for what is not counted
}

// say adds a phrase.
func (u *unread) say(phrase string) { u.count(0, phrase, "") }

// count adds n things.
func (u *unread) count(n int, noun, rest string) {
	for i, t := range u.things {
		if t.noun == noun && t.rest == rest {
			u.things[i].n += n
			return
		}
	}
	u.things = append(u.things, thing{noun, rest, n})
}

// noteDamage takes note of a part that could be read in part at most. What is wrong with all of the document is
// returned instead.
func (a *archive) noteDamage(part string, err error) error {
	if err == nil || a.ctx.Err() != nil || a.left < 0 {
		return err
	}
	if a.first == nil {
		a.first = err
	}
	a.say(part + " (damaged)")
	return nil
}

// mostThings is how many kinds of things are listed.
const mostThings = 20

// list returns the phrases, in the order in which the things were met.
func (u *unread) list() []string {
	var all []string
	for i, t := range u.things {
		switch {
		case i == mostThings:
			return append(all, fmt.Sprintf("and %d more", len(u.things)-i))
		case t.n == 0:
			all = append(all, t.noun+t.rest)
		default:
			all = append(all, text.Count(t.n, t.noun)+t.rest)
		}
	}
	return all
}

// quoteName returns the name of a sheet or the like for use in a phrase.
func quoteName(name string) string {
	const most = 40 // characters
	return strconv.Quote(text.Cut(name, most))
}
