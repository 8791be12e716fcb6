package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// template is a text with places that are filled in from a query.
type template []piece

// piece is a part of a template.
type piece struct {
	kind  pieceKind
	text  string // literal
	group int    // group
}

type pieceKind int

const (
	literal    pieceKind = iota
	userText             // {{text}}
	toolResult           // {{tool_result}}
	group                // $1 or ${name}
)

// maxPlace is the length in bytes within which a place in braces has to end.
const maxPlace = 40

// scope is what a template is filled in from.
type scope struct {
	query  Query
	groups []string // of the rule's regular expression, the whole match first
}

// parseTemplate reads the places in s. A dollar sign means something only if the
// rule has a regular expression.
func parseTemplate(s string, re *regexp.Regexp) (template, error) {
	var t template
	plain := 0 // start of the literal that is being read
	for i := 0; i < len(s); {
		p, n, err := parsePlace(s[i:], re)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			i++
			continue
		}
		if plain < i {
			t = append(t, piece{text: s[plain:i]})
		}
		t = append(t, p)
		i += n
		plain = i
	}
	if plain < len(s) {
		t = append(t, piece{text: s[plain:]})
	}
	return t, nil
}

// parsePlace reads the place that s starts with and returns its length, 0 if there
// is none.
func parsePlace(s string, re *regexp.Regexp) (piece, int, error) {
	switch {
	case strings.HasPrefix(s, "{{"):
		name, _, closed := strings.Cut(s[2:min(len(s), maxPlace)], "}}")
		if !closed {
			return piece{}, 0, nil
		}
		length := len("{{") + len(name) + len("}}")
		switch strings.TrimSpace(name) {
		case "text":
			return piece{kind: userText}, length, nil
		case "tool_result":
			return piece{kind: toolResult}, length, nil
		}
		return piece{}, 0, nil
	case s[0] != '$' || re == nil:
		return piece{}, 0, nil
	case strings.HasPrefix(s, "$$"):
		return piece{text: "$"}, 2, nil
	case strings.HasPrefix(s, "${"):
		name, _, closed := strings.Cut(s[2:], "}")
		if !closed {
			return piece{}, 0, fmt.Errorf("%q is not closed; write $$ for a dollar sign", firstRunes(s, 20))
		}
		p, err := groupPiece(name, re)
		return p, len("${") + len(name) + len("}"), err
	}
	digits := len(s) - 1 - len(strings.TrimLeft(s[1:], "0123456789"))
	if digits == 0 {
		return piece{}, 0, nil
	}
	p, err := groupPiece(s[1:1+digits], re)
	return p, 1 + digits, err
}

// groupPiece returns the place of a group of re by number or name.
func groupPiece(name string, re *regexp.Regexp) (piece, error) {
	n, err := strconv.Atoi(name)
	if err != nil {
		n = re.SubexpIndex(name)
	}
	if n < 0 || n > re.NumSubexp() {
		return piece{}, fmt.Errorf("the regular expression %q has no group %q; write $$ for a dollar sign", re, name)
	}
	return piece{kind: group, group: n}, nil
}

// fill returns the text with its places filled in. What is filled in is not looked
// at again.
func (t template) fill(s scope) string {
	if len(t) == 1 && t[0].kind == literal {
		return t[0].text
	}
	var b strings.Builder
	for _, p := range t {
		switch p.kind {
		case literal:
			b.WriteString(p.text)
		case userText:
			b.WriteString(s.query.Text)
		case toolResult:
			b.WriteString(s.query.ToolResult)
		case group:
			b.WriteString(s.groups[p.group])
		}
	}
	return b.String()
}

func firstRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
