package toolcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"loki/internal/llm/provider/wire"
)

const space = " \t\r\n"

func blank(s string) bool { return strings.Trim(s, space) == "" }

// canBegin reports whether arguments can begin with s: they are an object, or one that is encoded as a string.
func canBegin(s string) bool {
	s = strings.TrimLeft(s, space)
	return s != "" && (s[0] == '{' || s[0] == '"')
}

// extent finds the end of a JSON value whose text comes in pieces.
type extent struct {
	begun, over    bool
	text, escaped  bool // in a string; after a backslash in it
	depth          int  // of objects and lists
	withoutBracket bool // the value has no certain end: it is neither object, list nor string
}

// next takes a byte.
func (e *extent) next(b byte) {
	switch {
	case e.escaped:
		e.escaped = false
	case e.text:
		e.escaped, e.text = b == '\\', b != '"'
		e.over = !e.text && e.depth == 0 && !e.withoutBracket
	case strings.IndexByte(space, b) >= 0:
	case b == '"':
		e.text, e.begun = true, true
	case b == '{' || b == '[':
		e.depth++
		e.begun = true
	case b == '}' || b == ']':
		e.depth--
		e.over = e.depth <= 0 && !e.withoutBracket
		e.begun = true
	case !e.begun:
		e.begun, e.withoutBracket = true, true
	}
}

// take adds a piece of the arguments and returns what follows their end, if other arguments can begin with that.
// An empty object may be a placeholder for the object that follows.
func (c *call) take(piece string) (rest string) {
	if c.isPlaceholder() && canBegin(piece) {
		c.replace("")
	}
	if piece != "" {
		c.grows = c.grows || !strings.HasPrefix(piece, c.snapshot)
		c.snapshot = piece
	}
	for i := 0; i < len(piece); i++ {
		if !c.extent.over {
			c.extent.next(piece[i])
			continue
		}
		c.arguments.WriteString(piece[:i])
		rest = strings.TrimLeft(piece[i:], space)
		if rest != "" && !canBegin(rest) { // malformed arguments, which their reader reports
			c.arguments.WriteString(rest)
			return ""
		}
		return rest
	}
	c.arguments.WriteString(piece)
	return ""
}

// replace makes s the arguments, unless it is blank and there are some.
func (c *call) replace(s string) {
	if blank(s) && !c.isPlaceholder() {
		return
	}
	c.arguments.Reset()
	c.extent, c.snapshot = extent{}, ""
	c.take(s)
}

func (c *call) blank() bool { return blank(c.arguments.String()) }

// collapse takes the last piece for the arguments, if each piece had all of them so far, as some servers send them.
func (c *call) collapse() {
	if !c.grows && !c.extent.over && json.Valid([]byte(c.snapshot)) && canBegin(c.snapshot) {
		c.replace(c.snapshot)
	}
}

// isPlaceholder reports whether the arguments are an empty object.
func (c *call) isPlaceholder() bool {
	return c.extent.over && c.arguments.Len() < 16 && strings.Join(strings.Fields(c.arguments.String()), "") == "{}"
}

// same reports whether two texts are the same arguments: equal JSON, perhaps encoded twice, or equal texts.
func same(a, b string) bool {
	a, b = wire.JoinHalves(a), wire.JoinHalves(b) // which one of them may have been cut at
	if a == b {
		return true
	}
	v, errA := decode(a)
	w, errB := decode(b)
	if errA != nil || errB != nil {
		return strings.Trim(a, space) == strings.Trim(b, space)
	}
	return reflect.DeepEqual(v, w)
}

// decode returns the JSON value of arguments. Nothing and null are the empty object.
func decode(s string) (v any, err error) {
	doc := bytes.Trim([]byte(s), space)
	var inner string
	if len(doc) > 0 && doc[0] == '"' && json.Unmarshal(doc, &inner) == nil {
		doc = bytes.Trim([]byte(inner), space)
	}
	if len(doc) == 0 || string(doc) == "null" {
		doc = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber() // ids may have more digits than a float64
	if err = d.Decode(&v); err == nil && d.More() {
		err = errors.New("text after the arguments")
	}
	return v, err
}
