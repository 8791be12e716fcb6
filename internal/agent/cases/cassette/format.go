package cassette

import (
	"maps"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Format returns the cassette as the text of a file.
func (c *Cassette) Format() []byte {
	var w writer
	w.WriteString("# Recorded by loki --record FILE; loki --replay FILE plays it without network.\n")
	w.member(0, "version", value.Of(version))
	for _, m := range []struct{ name, text string }{{"agent", c.Agent}, {"model", c.Asked}, {"default_model", c.Model}, {"prompt", c.Prompt}} {
		if m.text != "" {
			w.member(0, m.name, value.Of(m.text))
		}
	}
	if len(c.Variables) > 0 {
		var members []value.Member
		for _, name := range slices.Sorted(maps.Keys(c.Variables)) {
			members = append(members, value.Member{Name: name, Value: value.Of(c.Variables[name])})
		}
		w.member(0, "variables", value.ObjectOf(members...).Value())
	}
	if len(c.Servers) > 0 {
		w.member(0, "server_tools", texts(c.Servers))
	}
	w.WriteString("entries:")
	if len(c.Entries) == 0 {
		w.WriteString(" []")
	}
	w.WriteByte('\n')
	for i, e := range c.Entries {
		if i > 0 && !strings.HasSuffix(w.String(), "\n\n") { // empty lines would belong to a text that ends with some
			w.WriteByte('\n')
		}
		w.item(1, e.object().Value())
	}
	return []byte(w.String())
}

func texts(list []string) value.Value {
	items := make([]value.Value, len(list))
	for i, s := range list {
		items[i] = value.Of(s)
	}
	return value.ListOf(items...).Value()
}

// object returns the entry as it is written.
func (e *Entry) object() *value.Object {
	var members []value.Member
	add := func(name string, v value.Value, there bool) {
		if there {
			members = append(members, value.Member{Name: name, Value: v})
		}
	}
	add("run", value.Of(e.Run), e.Run > 1)
	add("step", value.Of(e.Step), e.Node != "")
	add("node", value.Of(e.Node), e.Node != "")
	add("key", value.Of(e.Key), true)
	add("kind", value.Of(string(e.Kind)), true)
	add("name", value.Of(e.Name), e.Name != "")
	add("request", expandJSON(e.Request), !e.Request.IsNull())
	if f := e.Failure; f != nil {
		v := value.ObjectOf(value.Member{Name: "code", Value: value.Of(f.Code)})
		for _, m := range []struct{ name, text string }{{"kind", f.Kind}, {"message", f.Message}, {"hint", f.Hint}} {
			if m.text != "" {
				v = v.Merge(value.ObjectOf(value.Member{Name: m.name, Value: value.Of(m.text)}))
			}
		}
		add("failure", v.Value(), true)
	} else {
		add("reply", expandJSON(e.Reply), true)
	}
	return value.ObjectOf(members...)
}

// Parse reads the text of a cassette. The error is a [*yamldoc.Problem] or [yamldoc.Problems].
func Parse(file string, src []byte) (*Cassette, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, err
	}
	c := &Cassette{Variables: make(map[string]string)}
	m := doc.Root().Map()
	m.Require("version", "entries")
	if n := m.Get("version"); n != nil {
		if v, ok := n.Int(1, 1<<31); ok && v != version {
			n.Errorf("this is version %d of the format; this program reads version %d", v, version).Hint = "record it again"
		}
	}
	m.Text("agent", &c.Agent)
	m.Text("model", &c.Asked)
	m.Text("default_model", &c.Model)
	m.Text("prompt", &c.Prompt)
	m.Texts("server_tools", &c.Servers)
	for e := range m.Map("variables").All() {
		if text, ok := e.Node.Text(); ok {
			c.Variables[e.Key] = text
		}
	}
	for _, n := range m.List("entries") {
		c.Entries = append(c.Entries, parseEntry(n))
	}
	m.Done()
	c.sort()
	for i, e := range c.Entries {
		if i > 0 && e.Place == c.Entries[i-1].Place {
			m.Get("entries").Errorf("lines %d and %d have the same place: %s", c.Entries[i-1].Line, e.Line, e.Place)
		}
	}
	return c, doc.Err()
}

// parseEntry reads one entry.
func parseEntry(n *yamldoc.Node) *Entry {
	e := &Entry{Line: n.Pos().Line}
	e.Run, e.Step = 1, 1
	m := n.Map()
	m.Require("key", "kind")
	m.Int("run", &e.Run, 1, 1<<31-1)
	m.Int("step", &e.Step, 1, 1<<31-1)
	m.Text("node", &e.Node)
	m.Text("key", &e.Key)
	var kind string
	if m.Text("kind", &kind) {
		e.Kind = steps.Kind(kind)
	}
	m.Text("name", &e.Name)
	m.Value("request", &e.Request)
	e.Request = collapseJSON(e.Request)
	if m.Has("reply") == m.Has("failure") && m != nil {
		n.Errorf("an entry has either a reply or a failure")
	}
	m.Value("reply", &e.Reply)
	e.Reply = collapseJSON(e.Reply)
	if f := m.Map("failure"); f != nil {
		e.Failure = &Failure{Code: string(fault.Failure)}
		f.Require("message")
		f.Text("code", &e.Failure.Code)
		f.Text("kind", &e.Failure.Kind)
		f.Text("message", &e.Failure.Message)
		f.Text("hint", &e.Failure.Hint)
		f.Done()
	}
	m.Done()
	return e
}
