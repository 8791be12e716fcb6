package yamldoc

import (
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// checkText rejects text that is too large or not UTF-8.
func (d *Doc) checkText() *Problem {
	if len(d.src) > MaxSize {
		return &Problem{File: d.file, Msg: fmt.Sprintf("the file has %d bytes, more than the %d allowed", len(d.src), MaxSize)}
	}
	if utf8.Valid(d.src) {
		return nil
	}
	pos := Pos{1, 1}
	for rest := d.src; ; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			return d.problem(pos, "", "the file is not valid UTF-8")
		}
		rest = rest[size:]
		pos.Column++
		if r == '\n' {
			pos = Pos{pos.Line + 1, 1}
		}
	}
}

// level is a column at which a block collection may be open.
type level struct {
	column int
	keys   int
}

// checkShape rejects documents that are nested too deeply or have too many keys in
// one block mapping. The library's parser recurses for both, and a Go program
// cannot recover from an exhausted stack, so this must be known before it starts.
//
// The depth is an upper bound within a factor of two: flow collections are counted
// by their brackets, block collections by their columns, which must grow inwards.
func (d *Doc) checkShape(tokens token.Tokens) *Problem {
	var levels []level
	flow := 0
	var previous token.Type
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
			continue
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(flow-1, 0)
		}
		// The text of a block scalar has no column of its own.
		isText := previous == token.LiteralType || previous == token.FoldedType
		previous = t.Type
		if flow == 0 && !isText {
			column := t.Position.Column
			for len(levels) > 0 && levels[len(levels)-1].column > column {
				levels = levels[:len(levels)-1]
			}
			if len(levels) == 0 || levels[len(levels)-1].column < column {
				levels = append(levels, level{column: column})
			}
			if t.Type == token.MappingKeyType || t.Next != nil && t.Next.Type == token.MappingValueType {
				levels[len(levels)-1].keys++
			}
		}
		if len(levels)+flow > 2*MaxDepth {
			return d.problem(posOf(t), "", fmt.Sprintf("nested deeper than %d levels", MaxDepth))
		}
		if n := len(levels); n > 0 && levels[n-1].keys > MaxSiblings {
			return d.problem(posOf(t), "", fmt.Sprintf("a mapping with more than %d keys", MaxSiblings))
		}
	}
	return nil
}

func posOf(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{}
	}
	return Pos{t.Position.Line, max(t.Position.Column, 1)}
}
