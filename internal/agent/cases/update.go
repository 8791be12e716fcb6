package cases

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Accept returns the text of the file of a suite in which expectations are what came, as far as they are written out: route,
// calls, output, values of the state, and files. Of results those of the suite count, and of them the ones that failed. What is around
// the values stays as it is. accepted is how many were changed.
func (s *Suite) Accept(results []*Result) (text []byte, accepted int) {
	var edits []edit
	for _, r := range results {
		if r.Case.Suite == s && r.Trace != nil {
			edits = append(edits, r.edits()...)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Or(b.pos.Line-a.pos.Line, b.pos.Column-a.pos.Column) })
	lines := bytes.SplitAfter(s.src, []byte("\n"))
	for _, e := range edits { // from the end of the file to its beginning, so that places stay right
		if changed, ok := e.apply(lines); ok {
			lines, accepted = changed, accepted+1
		}
	}
	return bytes.Join(lines, nil), accepted
}

// edit replaces the value of a key.
type edit struct {
	pos   yamldoc.Pos // of the key
	key   string
	value value.Value
}

// edits returns what must be changed for a result to pass, as far as that is possible.
func (r *Result) edits() []edit {
	var edits []edit
	failed := func(what string) bool {
		return slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.What == what })
	}
	e, t := &r.Case.Expect, r.Trace
	if e.Route != nil && e.Route.IsExact && failed("route") {
		edits = append(edits, edit{e.Route.Pos, "route", asValue(t.Route)})
	}
	if e.Output != nil && e.Output.plain && failed("output") {
		edits = append(edits, edit{e.Output.Pos, "output", value.Of(t.Output)})
	}
	if e.Calls != nil && e.Calls.Mode == Exactly && failed("calls") {
		calls := make([]value.Value, len(t.Calls))
		for i, c := range t.Calls {
			calls[i] = value.ObjectOf(value.Member{Name: "name", Value: value.Of(c.Name)}, value.Member{Name: "arguments", Value: c.Arguments}).Value()
		}
		edits = append(edits, edit{e.Calls.Pos, "calls", value.ListOf(calls...).Value()})
	}
	for _, m := range e.State {
		if got, ok := t.State[m.Key]; ok && !m.Absent && m.Text == nil && failed("state."+m.Key) {
			edits = append(edits, edit{m.Pos, m.Key, got})
		}
	}
	for _, f := range e.Files {
		if got, ok := t.Files[f.Path]; ok && !f.Absent && f.Text != nil && f.Text.plain && failed("files."+f.Path) {
			edits = append(edits, edit{f.Pos, f.Path, value.Of(got)})
		}
	}
	return edits
}

// asValue returns a list of texts as a value.
func asValue(list []string) value.Value {
	items := make([]value.Value, len(list))
	for i, s := range list {
		items[i] = value.Of(s)
	}
	return value.ListOf(items...).Value()
}

// before is what may stand before a key whose value can be replaced: the key begins its line.
var before = text.Regexp(`^[ -]*$`)

// comment is one at the end of a line.
var comment = text.Regexp(`[ \t]+#[^"']*$`)

// apply replaces the value in the lines of a file. It cannot do so if the key is in braces.
func (e edit) apply(lines [][]byte) (changed [][]byte, ok bool) {
	at := e.pos.Line - 1
	if at >= len(lines) {
		return nil, false
	}
	first := []rune(strings.TrimRight(string(lines[at]), "\n"))
	indent := e.pos.Column - 1
	if indent > len(first) || !before().MatchString(string(first[:indent])) {
		return nil, false
	}
	end := at + 1 // of the value
	for i := end; i < len(lines); i++ {
		line := strings.TrimRight(string(lines[i]), "\n")
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimSpace(line) == "" {
			continue // part of the value if more of it follows
		}
		if depth < indent || depth == indent && !strings.HasPrefix(line[depth:], "- ") {
			break
		}
		end = i + 1
	}
	written := strings.TrimLeft(e.text(indent), " ")
	var key yamldoc.Writer
	if key.Key(0, e.key); strings.HasPrefix(string(first[indent:]), `"`+e.key+`":`) { // as it was spelled
		written = `"` + e.key + `":` + strings.TrimPrefix(written, key.String())
	} else if strings.HasPrefix(string(first[indent:]), e.key+":") {
		written = e.key + ":" + strings.TrimPrefix(written, key.String())
	}
	if note := comment().FindString(string(first[indent:])); note != "" && end == at+1 && strings.Count(written, "\n") == 1 {
		written = strings.TrimSuffix(written, "\n") + note + "\n"
	}
	written = string(first[:indent]) + written
	return slices.Concat(lines[:at], [][]byte{[]byte(written)}, lines[end:]), true
}

// flowWidth is the length up to which a list of names is written on one line, in bytes.
const flowWidth = 100

// name is a text that needs no quotes in a list on one line.
var name = text.Regexp(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// text returns the key with the value, indented.
func (e edit) text(indent int) string {
	if list, ok := e.value.AsList(); ok && list.Len() > 0 {
		parts := make([]string, 0, list.Len())
		for _, v := range list.All() {
			if s, ok := v.AsString(); ok && name().MatchString(s) && !slices.Contains([]string{"null", "true", "false"}, strings.ToLower(s)) {
				parts = append(parts, s)
			}
		}
		if line := " [" + strings.Join(parts, ", ") + "]"; len(parts) == list.Len() && len(line) <= flowWidth {
			var w yamldoc.Writer
			w.Key(indent, e.key)
			return w.String() + line + "\n"
		}
	}
	var w yamldoc.Writer
	w.Members(indent, value.ObjectOf(value.Member{Name: e.key, Value: e.value}))
	return w.String()
}
