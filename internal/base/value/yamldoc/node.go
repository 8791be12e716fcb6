package yamldoc

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/value"
)

// Node is a value at one path of a document. Its readers report a [Problem] to the
// Doc and return ok false if the value is not what they are asked for.
type Node struct {
	doc  *Doc
	raw  *raw
	path string
	key  Pos // of the key it is the value of; zero for others
}

// Kind returns the type of the node.
func (n *Node) Kind() Kind { return n.raw.kind }

// Pos returns where the node begins. Below an alias that is in the anchored text.
func (n *Node) Pos() Pos { return n.raw.pos }

// File returns the name of the document, as [Parse] was given it.
func (n *Node) File() string { return n.doc.file }

// Problems returns how many errors the document has so far.
func (n *Node) Problems() int { return len(n.doc.errors) }

// Path returns the way to the node, "nodes.a.next[1]".
func (n *Node) Path() string { return n.path }

// Literal returns the text of a scalar as it is written, without quotes; "" for an
// empty value, a list or a mapping.
func (n *Node) Literal() string { return n.raw.text }

// KeyPos returns where the key stands that n is the value of; for the root and for
// the elements of a list it is where n begins.
func (n *Node) KeyPos() Pos {
	if n.key == (Pos{}) {
		return n.raw.pos
	}
	return n.key
}

// Errorf reports a problem with the node and returns it, so that a hint can be set.
func (n *Node) Errorf(format string, args ...any) *Problem {
	return n.doc.report(n.raw.pos, n.path, fmt.Sprintf(format, args...))
}

// KeyErrorf is like Errorf, at the node's key: for what the node lacks.
func (n *Node) KeyErrorf(format string, args ...any) *Problem {
	return n.doc.report(n.KeyPos(), n.path, fmt.Sprintf(format, args...))
}

// Warnf reports a warning about the node and returns it, so that a hint can be set.
func (n *Node) Warnf(format string, args ...any) *Problem {
	return n.doc.warn(n.raw.pos, n.path, fmt.Sprintf(format, args...))
}

// Describe returns the node's kind and, for a scalar, its value, for messages: `the
// string "x"`, `the number 42`, "a list". With [HideSource] it is the kind only.
func (n *Node) Describe() string {
	if n.doc.hide {
		return n.raw.kind.String()
	}
	switch n.raw.kind {
	case String:
		return "the string " + quote(n.raw.text)
	case Int, Float:
		return "the number " + n.raw.text
	case Bool:
		return "the boolean " + n.raw.text
	default:
		return n.raw.kind.String()
	}
}

func (n *Node) mismatch(want string) *Problem {
	p := n.Errorf("expected %s, found %s", want, n.Describe())
	p.Hint = n.hint(want)
	return p
}

func (n *Node) hint(want string) string {
	switch k := n.raw.kind; {
	case want == textWanted || want == stringWanted:
		switch k {
		case Bool, Int, Float:
			if n.doc.hide {
				return "write the text in quotes"
			}
			return fmt.Sprintf("write the text in quotes: %q", n.raw.text)
		case Mapping:
			return `a text that contains ": " or begins with { needs quotes, or a block scalar (|)`
		case List:
			return "a text that begins with [ or - needs quotes"
		}
	case k == String && n.raw.quoted && (want == intWanted || want == floatWanted || want == boolWanted):
		return "write it without quotes"
	case k == String && want == boolWanted:
		return "booleans are true and false"
	case want == listWanted && k != Mapping:
		return `write a list as [a, b], or as lines that begin with "- "`
	case want == mapWanted:
		return `write a mapping as lines of "key: value"`
	}
	return ""
}

const (
	textWanted   = "a text"
	stringWanted = "a string"
	intWanted    = "a whole number"
	floatWanted  = "a number"
	boolWanted   = "true or false"
	listWanted   = "a list"
	mapWanted    = "a mapping"
	timeWanted   = "whole seconds"
)

// Text reads a scalar of any kind as its literal text: 1.0 is "1.0". A null is no
// text.
func (n *Node) Text() (text string, ok bool) {
	switch n.raw.kind {
	case Null, List, Mapping:
		n.mismatch(textWanted)
		return "", false
	}
	return n.raw.text, true
}

// Str reads a string. An unquoted number or boolean is not one.
func (n *Node) Str() (s string, ok bool) {
	if n.raw.kind != String {
		n.mismatch(stringWanted)
		return "", false
	}
	return n.raw.text, true
}

// Bool reads a boolean.
func (n *Node) Bool() (b, ok bool) {
	if n.raw.kind != Bool {
		n.mismatch(boolWanted)
		return false, false
	}
	return n.raw.scalar.AsBool()
}

// Int reads a whole number from least to most.
func (n *Node) Int(least, most int64) (i int64, ok bool) {
	if n.raw.kind != Int {
		p := n.mismatch(intWanted)
		if n.raw.kind == Float {
			p.Hint = ""
		}
		return 0, false
	}
	i, ok = n.raw.scalar.AsInt()
	switch {
	case ok && i >= least && i <= most:
		return i, true
	case ok && i < 0 && least >= 0:
		n.Errorf("must not be negative, found %s", n.Describe())
	case most == math.MaxInt64 || least == math.MinInt64 && !ok:
		n.Errorf("must be at least %d and fit 64 bits, found %s", least, n.Describe())
	default:
		n.Errorf("must be from %d to %d, found %s", least, most, n.Describe())
	}
	return 0, false
}

// Float reads a finite number.
func (n *Node) Float() (f float64, ok bool) {
	switch n.raw.kind {
	case Int, Float:
		if f, ok = n.raw.scalar.AsFloat(); ok {
			return f, true
		}
	}
	n.mismatch(floatWanted)
	return 0, false
}

// Seconds reads a time span written as a whole number of seconds, not negative.
func (n *Node) Seconds() (d time.Duration, ok bool) {
	if n.raw.kind != Int {
		p := n.mismatch(timeWanted)
		p.Hint = "times are whole numbers of seconds, without a unit: 30"
		return 0, false
	}
	s, ok := n.Int(0, math.MaxInt64/int64(time.Second))
	return time.Duration(s) * time.Second, ok
}

// maxSpan is the longest time that can be given, about 31 years.
const maxSpan = 1e9 * time.Second

// Span reads a time span: a number of seconds, of which fractions may be given, or a text
// with units, such as "90s", "10m", "1h30m" or "30d".
func (n *Node) Span() (d time.Duration, ok bool) {
	switch n.raw.kind {
	case Int, Float:
		seconds, ok := n.Float()
		if !ok {
			return 0, false
		}
		if seconds >= 0 && seconds <= maxSpan.Seconds() {
			return time.Duration(seconds * float64(time.Second)), true
		}
	case String:
		text, unit := n.raw.text, time.Duration(1)
		if days, ok := strings.CutSuffix(text, "d"); ok {
			text, unit = days+"h", 24
		}
		if d, err := time.ParseDuration(text); err == nil && d >= 0 && d <= maxSpan/unit {
			return d * unit, true
		}
	}
	n.Errorf("expected a time of 0 or more, found %s", n.Describe()).Hint = "write a number of seconds, or a text such as 90s, 10m or 1h30m"
	return 0, false
}

// Texts reads a list of texts, see [Node.Text].
func (n *Node) Texts() (list []string, ok bool) { return n.each((*Node).Text) }

// Strs reads a list of strings, see [Node.Str].
func (n *Node) Strs() (list []string, ok bool) { return n.each((*Node).Str) }

// each reads a list; the result is not nil if it is ok.
func (n *Node) each(read func(*Node) (string, bool)) (list []string, ok bool) {
	items, ok := n.List()
	list = make([]string, 0, len(items))
	for _, item := range items {
		s, itemOK := read(item)
		ok = ok && itemOK
		list = append(list, s)
	}
	if !ok {
		return nil, false
	}
	return list, true
}

// List reads the elements of a list.
func (n *Node) List() (items []*Node, ok bool) {
	if n.raw.kind != List {
		n.mismatch(listWanted)
		return nil, false
	}
	items = make([]*Node, len(n.raw.items))
	for i, r := range n.raw.items {
		items[i] = &Node{doc: n.doc, raw: r, path: index(n.path, i)}
	}
	return items, true
}

// At returns what a JSON Pointer leads to from n, or the nearest node around it that is
// there.
func (n *Node) At(pointer string) *Node {
	if pointer == "" {
		return n
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var next *Node
		switch n.raw.kind {
		case Mapping:
			next = n.Map().Get(step)
		case List:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.raw.items) {
				next = &Node{doc: n.doc, raw: n.raw.items[i], path: index(n.path, i)}
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// Value reads anything as a JSON value. Mappings keep their order. A number too
// large for 64 bits becomes a float; infinity and NaN are problems.
func (n *Node) Value() (v value.Value, ok bool) {
	before := len(n.doc.errors)
	v = n.value(false)
	return v, len(n.doc.errors) == before
}

// FiniteValue is [Node.Value], in which infinity and NaN become null, with a warning.
func (n *Node) FiniteValue() value.Value { return n.value(true) }

func (n *Node) value(finite bool) value.Value {
	switch n.raw.kind {
	case List:
		items, _ := n.List()
		values := make([]value.Value, len(items))
		for i, item := range items {
			values[i] = item.value(finite)
		}
		return value.ListOf(values...).Value()
	case Mapping:
		members := make([]value.Member, 0, len(n.raw.entries))
		for _, e := range n.entries() {
			members = append(members, value.Member{Name: e.Key, Value: e.Node.value(finite)})
		}
		return value.ObjectOf(members...).Value()
	case Float:
		if n.raw.scalar.IsNull() {
			report := n.Errorf
			if finite {
				report = n.Warnf
			}
			report("%s cannot be expressed in JSON%s", n.raw.text, map[bool]string{true: " and is null"}[finite])
		}
	}
	return n.raw.scalar
}

// Map reads a mapping. An empty or null document root is an empty mapping. If the
// node is something else, a problem is reported and the result is nil, on which all
// methods of [Map] work and find nothing.
func (n *Node) Map() *Map {
	switch {
	case n.raw.kind == Mapping, n.raw.kind == Null && n.path == "":
		return &Map{node: n}
	}
	n.mismatch(mapWanted)
	return nil
}

// Entry is a key of a mapping with its value.
type Entry struct {
	Key    string
	KeyPos Pos
	Node   *Node
}

func (n *Node) child(e entry) *Node {
	return &Node{doc: n.doc, raw: e.raw, path: join(n.path, e.key), key: e.pos}
}

func (n *Node) entries() iter.Seq2[int, Entry] {
	return func(yield func(int, Entry) bool) {
		for i, e := range n.raw.entries {
			if !yield(i, Entry{e.key, e.pos, n.child(e)}) {
				return
			}
		}
	}
}
