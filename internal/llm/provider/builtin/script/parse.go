package script

import (
	"math"
	"regexp"

	"loki/internal/base/value/yamldoc"
)

// maxCount is the largest number in a rule file where nothing smaller is said.
const maxCount = math.MaxInt32

// Parse reads a rule file. name is used in messages only. The error is a
// [*yamldoc.Problem], or [yamldoc.Problems] if there are several.
func Parse(name string, data []byte) (*File, error) {
	doc, err := yamldoc.Parse(name, data)
	if err != nil {
		return nil, err
	}
	f := &File{name: name}
	m := doc.Root().Map()
	for _, n := range items(m, "rules") {
		f.add(n, true)
	}
	if n := m.Get("default"); n != nil && n.Kind() != yamldoc.Null {
		f.add(n, false)
	}
	if strict(m) && m.Len() == 0 && doc.Err() == nil {
		doc.Root().Errorf("expected a mapping with rules, default or both")
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	f.used = make([]int, len(f.rules))
	return f, nil
}

// add reads a rule, or the default, which has no conditions, and appends it.
func (f *File) add(n *yamldoc.Node, conditional bool) {
	m := n.Map()
	r := rule{line: n.Pos().Line, always: m != nil}
	if conditional && m != nil {
		r.always = !m.Has("match") && !m.Has("times")
		r.when = readConditions(m.Map("match"))
		m.Int("times", &r.times, 1, maxCount)
	}
	r.answer = readAnswer(m, r.when.regex)
	if strict(m) {
		checkTogether(m, r.answer.fail)
	}
	for _, before := range f.rules {
		if before.always {
			n.Errorf("this can never apply: the rule of line %d answers everything", before.line)
			break
		}
	}
	f.rules = append(f.rules, r)
}

func readConditions(m *yamldoc.Map) conditions {
	var c conditions
	if m == nil {
		return c
	}
	if m.Len() == 0 {
		m.Node().Errorf("there is no condition; leave match out to match everything")
	}
	filled(m, "text", &c.text)
	filled(m, "system", &c.system)
	filled(m, "tool_result", &c.toolResult)
	m.Int("turn", &c.turn, 1, maxCount)
	c.regex = readRegex(m, "regex")
	if re := readRegex(m, "result_regex"); re != nil {
		if c.regex != nil {
			m.Get("result_regex").Errorf("a rule has either regex or result_regex")
		}
		c.regex, c.ofResult = re, true
	}
	c.nodes = readNodes(m)
	strict(m)
	return c
}

func readRegex(m *yamldoc.Map, key string) *regexp.Regexp {
	var s string
	if !filled(m, key, &s) {
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		m.Get(key).Errorf("%v", err)
		return nil
	}
	return re
}

// readNodes reads the id of a node or a list of ids.
func readNodes(m *yamldoc.Map) []string {
	n := m.Get("node")
	if n == nil {
		return nil
	}
	if n.Kind() != yamldoc.List {
		var id string
		filled(m, "node", &id)
		return []string{id}
	}
	var ids []string
	for _, item := range items(m, "node") {
		id, ok := item.Text()
		if ok && id == "" {
			item.Errorf("the text is empty")
		}
		ids = append(ids, id)
	}
	return ids
}
