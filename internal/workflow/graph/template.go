package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// Template is a text with placeholders: {{path}}, where path is made of ASCII
// letters, digits and the characters _ . [ ]. Anything else between braces is
// ordinary text, and there is no escape. The zero Template is the empty text.
//
// A path is read as segments separated by dots, each a member name followed by any
// number of [index]. The first names a state key. It is missing if a key, member or
// index does not exist; a null is not missing. Rendering is one pass: inserted
// text is never searched for placeholders.
type Template struct {
	Source string
	parts  []part
}

// part is literal text, or a placeholder if path is set.
type part struct {
	text string // literal, or the path as it was written
	path []step // never empty for a placeholder that can be resolved
	hole bool
}

// step is a member lookup or, with isIndex, a list index.
type step struct {
	name    string
	index   int
	isIndex bool
}

// ParseTemplate splits source into text and placeholders. It cannot fail: what is
// no placeholder is text.
func ParseTemplate(source string) Template {
	t := Template{Source: source}
	rest := source
	for {
		open := strings.Index(rest, "{{")
		if open < 0 {
			break
		}
		end := open + 2
		for end < len(rest) && isPathByte(rest[end]) {
			end++
		}
		if end == open+2 || !strings.HasPrefix(rest[end:], "}}") {
			// Not a placeholder. Of {{{k}}} the first brace is text, so move on by one.
			t.literal(rest[:open+1])
			rest = rest[open+1:]
			continue
		}
		t.literal(rest[:open])
		path := rest[open+2 : end]
		t.parts = append(t.parts, part{text: path, path: parsePath(path), hole: true})
		rest = rest[end+2:]
	}
	t.literal(rest)
	return t
}

func (t *Template) literal(text string) {
	if text == "" {
		return
	}
	if n := len(t.parts); n > 0 && !t.parts[n-1].hole {
		t.parts[n-1].text += text
		return
	}
	t.parts = append(t.parts, part{text: text})
}

func isPathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '.' || c == '[' || c == ']'
}

// segment is one segment of a path: a member name, and indexes.
var segment = text.Regexp(`^([^\[\]]*)((?:\[[0-9]+\])*)$`)

// parsePath returns nil for a path that can never be resolved.
func parsePath(path string) []step {
	var steps []step
	for i, part := range strings.Split(path, ".") {
		m := segment().FindStringSubmatch(part)
		if m == nil {
			return nil
		}
		if m[1] != "" || i == 0 {
			steps = append(steps, step{name: m[1]})
		}
		for digits := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			n, err := strconv.ParseUint(digits, 10, 31)
			if err != nil {
				return nil
			}
			steps = append(steps, step{index: int(n), isIndex: true})
		}
	}
	return steps
}

// Roots returns the state keys the template reads, each once, in order of first
// appearance.
func (t Template) Roots() []string {
	var roots []string
	for _, p := range t.parts {
		root, _, _ := strings.Cut(strings.ReplaceAll(p.text, "[", "."), ".")
		if p.hole && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots
}

// Lookup finds state keys; a [State] and a [Draft] both do.
type Lookup interface {
	Get(key string) (v value.Value, ok bool)
}

// MissingError lists the placeholders that a strict template could not resolve.
type MissingError struct {
	Paths []string // in order of appearance, each once
}

func (e *MissingError) Error() string {
	return fmt.Sprintf(`"%s" not found in state`, strings.Join(e.Paths, `", "`))
}

// Strict renders the template. Missing placeholders are a [*MissingError].
func (t Template) Strict(s Lookup) (string, error) {
	return t.Display(s, func(text string) string { return text })
}

// Display is [Template.Strict] with each value as show returns it.
func (t Template) Display(s Lookup, show func(text string) string) (string, error) {
	text, missing := t.render(s, show)
	if missing != nil {
		return "", &MissingError{Paths: missing}
	}
	return text, nil
}

// Lenient renders the template with the empty text for missing placeholders.
func (t Template) Lenient(s Lookup) string {
	text, _ := t.render(s, func(text string) string { return text })
	return text
}

// Raw returns the value itself, with its type, if the template without surrounding
// white space is exactly one placeholder; otherwise the text as [Template.Strict]
// renders it.
func (t Template) Raw(s Lookup) (value.Value, error) {
	if p, ok := t.single(); ok {
		v, found := resolve(p.path, s)
		if !found {
			return value.Value{}, &MissingError{Paths: []string{p.text}}
		}
		return v, nil
	}
	text, err := t.Strict(s)
	return value.Of(text), err
}

// Update renders the template as state_updates do: exactly one placeholder keeps
// the type of its value, anything else is text, and what is missing is empty text.
func (t Template) Update(s Lookup) value.Value {
	if p, ok := t.single(); ok {
		if v, found := resolve(p.path, s); found {
			return v
		}
	}
	return value.Of(t.Lenient(s))
}

// single returns the placeholder that is all there is but white space.
func (t Template) single() (hole part, ok bool) {
	for _, p := range t.parts {
		switch {
		case p.hole && !ok:
			hole, ok = p, true
		case p.hole || strings.TrimFunc(p.text, unicode.IsSpace) != "":
			return part{}, false
		}
	}
	return hole, ok
}

func (t Template) render(s Lookup, show func(string) string) (text string, missing []string) {
	var b strings.Builder
	for _, p := range t.parts {
		if !p.hole {
			b.WriteString(p.text)
		} else if v, ok := resolve(p.path, s); ok {
			b.WriteString(show(v.Text()))
		} else if !slices.Contains(missing, p.text) {
			missing = append(missing, p.text)
		}
	}
	return b.String(), missing
}

func resolve(path []step, s Lookup) (value.Value, bool) {
	if len(path) == 0 {
		return value.Value{}, false
	}
	v, ok := s.Get(path[0].name)
	for _, st := range path[1:] {
		if !ok {
			return value.Value{}, false
		}
		if !st.isIndex {
			v, ok = v.AsObject().Get(st.name)
			continue
		}
		list, isList := v.AsList()
		if !isList || st.index >= list.Len() {
			return value.Value{}, false
		}
		v = list.At(st.index)
	}
	return v, ok
}
