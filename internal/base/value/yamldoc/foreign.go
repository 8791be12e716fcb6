package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Foreign makes keys known without reading them: keys that related programs understand and this one
// does not. [Doc.Warnings] has one warning for all that the document has of
// them.
func (m *Map) Foreign(keys ...string) {
	if m == nil {
		return
	}
	for _, key := range keys {
		if e, ok := m.find(key); ok {
			m.node.doc.foreign = append(m.node.doc.foreign, e)
		}
	}
}

// Renamed makes a key that has another name now mean the same under its old name, unless both are there. It is called before
// the key is read, and reports whether the old name is used. If both are there, [Map.Done] warns about the old one.
func (m *Map) Renamed(old, now string) (used bool) {
	if m == nil {
		return false
	}
	if m.renamed == nil {
		m.renamed = make(map[string]string)
	}
	m.renamed[now] = old
	there := func(key string) bool {
		return slices.ContainsFunc(m.node.raw.entries, func(e entry) bool { return e.key == key })
	}
	return there(old) && !there(now)
}

// presentName returns the present name of a key that was [Map.Renamed], "" for others.
func (m *Map) presentName(old string) string {
	for now, was := range m.renamed {
		if was == old {
			return now
		}
	}
	return ""
}

// CommaList reads a text, or a list of texts as one with commas between them.
func (m *Map) CommaList(key string, dst *string) bool {
	if n := m.Get(key); n != nil && n.Kind() == List {
		list, ok := n.Texts()
		if ok {
			*dst = strings.Join(list, ",")
		}
		return ok
	}
	return m.Text(key, dst)
}

// ForeignWarning returns the warning about the keys given to [Map.Foreign] that d has, nil if
// it has none.
func (d *Doc) ForeignWarning() *Problem {
	if len(d.foreign) == 0 {
		return nil
	}
	first := slices.MinFunc(d.foreign, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.pos.Line, b.pos.Line), cmp.Compare(a.pos.Column, b.pos.Column))
	})
	var names []string
	for _, e := range d.foreign {
		names = append(names, e.key)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	p := d.problem(first.pos, "", fmt.Sprintf("keys of another program, which do nothing here: %s", strings.Join(names, ", ")))
	p.Key = first.key
	return p
}
