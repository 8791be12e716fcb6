package render

import "strings"

// ColorEnabled reports whether to color a stream. In this order: NO_COLOR with
// any value but the empty one turns color off; CLICOLOR_FORCE and FORCE_COLOR turn it on,
// even without a terminal, unless they are 0 or false, and a FORCE_COLOR of 0 or
// false turns it off; CLICOLOR=0 and TERM=dumb turn it off; otherwise a terminal is
// colored and anything else is not.
//
// Sources: no-color.org, bixense.com/clicolors, force-color.org.
func ColorEnabled(getenv func(string) string, isTerminal bool) bool {
	on := func(name string) bool { v := getenv(name); return v != "" && !isNo(v) }
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case on("CLICOLOR_FORCE"), on("FORCE_COLOR"):
		return true
	case isNo(getenv("FORCE_COLOR")), isNo(getenv("CLICOLOR")), getenv("TERM") == "dumb":
		return false
	}
	return isTerminal
}

func isNo(v string) bool { return v == "0" || strings.EqualFold(v, "false") }

// style is the parameters of a Select Graphic Rendition sequence; "" is plain.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// colors is whether text is styled at all.
type colors bool

// paint returns text in style st. It resets to plain at the end, so that a line cut off
// there cannot color the next one.
func (on colors) paint(st style, text string) string {
	if !on || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// paintLines returns text with each of its lines styled, so that no line feed is.
func (on colors) paintLines(st style, text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = on.paint(st, lines[i])
	}
	return strings.Join(lines, "\n")
}
