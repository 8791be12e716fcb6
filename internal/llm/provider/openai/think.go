package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	space      = " \t\r\n"
	maxSpace   = 1 << 10 // how much white space is looked over, in bytes
)

// thinkSplitter separates a <think> block at the very start of a text, before
// which only white space may stand, from what follows. It takes the text in pieces
// cut anywhere and gives the same result for every cut. White space at the inner
// borders of the block, and after it, belongs to neither part. More than maxSpace
// of it before the block makes the block text, and at the block's end reasoning.
type thinkSplitter struct {
	state thinkState
	held  string // taken and not yet returned
}

type thinkState int

const (
	thinkUnknown thinkState = iota // whether there is a block is still open
	thinkBegin                     // in the block, before its first character
	thinkInside
	thinkAfter // after the block, before the first character of the text
	thinkText
)

// add takes the next piece and returns the reasoning and the text that are certain
// by now, the reasoning coming first.
func (t *thinkSplitter) add(piece string) (reasoning, text string) {
	t.held += piece
	if t.state == thinkUnknown {
		start := strings.TrimLeft(t.held, space)
		switch {
		case len(t.held)-len(start) > maxSpace:
			t.state = thinkText
		case strings.HasPrefix(start, thinkOpen):
			t.state, t.held = thinkBegin, start[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, start):
			return "", ""
		default:
			t.state = thinkText
		}
	}
	if t.state == thinkBegin {
		if t.held = strings.TrimLeft(t.held, space); t.held != "" {
			t.state = thinkInside
		}
	}
	if t.state == thinkInside {
		reasoning = t.inside()
	}
	if t.state == thinkAfter {
		if t.held = strings.TrimLeft(t.held, space); t.held != "" {
			t.state = thinkText
		}
	}
	if t.state == thinkText {
		text, t.held = t.held, ""
	}
	return reasoning, text
}

// inside returns the reasoning in held, without an end that may turn out to be the
// closing tag or the white space before it.
func (t *thinkSplitter) inside() string {
	if block, rest, ok := strings.Cut(t.held, thinkClose); ok {
		t.state, t.held = thinkAfter, rest
		return block[:endWithoutSpace(block)]
	}
	sure := len(t.held)
	for n := min(len(thinkClose)-1, len(t.held)); n > 0; n-- {
		if strings.HasSuffix(t.held, thinkClose[:n]) {
			sure -= n
			break
		}
	}
	sure = endWithoutSpace(t.held[:sure])
	reasoning := t.held[:sure]
	t.held = t.held[sure:]
	return reasoning
}

// flush returns what the end of the text, or its failure, leaves behind.
func (t *thinkSplitter) flush() (reasoning, text string) {
	held := t.held
	t.held = ""
	switch t.state {
	case thinkUnknown:
		return "", held
	case thinkInside:
		return held[:endWithoutSpace(held)], ""
	}
	return "", ""
}

// endWithoutSpace returns the length of s without the white space at its end, of
// which at most maxSpace counts.
func endWithoutSpace(s string) int {
	return max(len(strings.TrimRight(s, space)), len(s)-maxSpace)
}
