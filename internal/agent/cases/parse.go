package cases

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

// Load reads the file with cases at path. Relative paths in it begin in its directory.
func Load(path string) (*Suite, error) {
	src, err := yamldoc.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, src)
}

// Parse reads the text of a file with cases. All that is wrong with it is in the error,
// a [*yamldoc.Problem] or [yamldoc.Problems].
func Parse(path string, src []byte) (*Suite, error) {
	doc, err := yamldoc.Parse(path, src)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s := &Suite{File: path, src: bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))}
	p := parser{suite: s, dir: dir}
	m := doc.Root().Map()
	m.Require("cases")
	shared := Case{Suite: s, Timeout: DefaultTimeout}
	p.common(m, &shared)
	names := make(map[string]bool)
	for _, n := range m.List("cases") {
		c := p.read(n, shared)
		if c.Name != "" && names[c.Name] {
			n.Errorf("there is another case called %q", c.Name)
		}
		names[c.Name] = true
		s.Cases = append(s.Cases, c)
	}
	m.Done()
	s.Warnings = doc.Warnings()
	return s, doc.Err()
}

// agentOf returns the directory of the agent that a file with cases belongs to: the nearest one at or
// above the file that holds a definition; empty if there is none.
func agentOf(file string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if IsAgent(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// IsAgent reports whether a directory holds the definition of an agent.
func IsAgent(dir string) bool {
	return slices.ContainsFunc([]string{graph.FileName, "config.yaml"}, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
}

type parser struct {
	suite *Suite
	dir   string // of the file, absolute
}

// path returns a path of the file as seen from anywhere.
func (p *parser) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.dir, filepath.FromSlash(path))
}

// common reads what can be said for all cases of a file and for one.
func (p *parser) common(m *yamldoc.Map, c *Case) {
	if m.Text("agent", &c.Agent) && (strings.ContainsAny(c.Agent, "/"+string(filepath.Separator)) || c.Agent == "." || c.Agent == "..") {
		c.Agent = p.path(c.Agent)
	}
	m.Text("prompt", &c.Prompt)
	m.Text("model", &c.Model)
	m.Bool("yes", &c.Yes)
	if n := m.Get("timeout"); n != nil && n.Kind() != yamldoc.Null {
		if d, ok := n.Seconds(); ok && d == 0 {
			n.Errorf("a case needs time: write seconds from 1")
		} else if ok {
			c.Timeout = d
		}
	}
	c.Variables = merge(c.Variables, p.texts(m, "variables"))
	c.Env = merge(c.Env, p.texts(m, "env"))
	files := p.texts(m, "files")
	for name := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			m.Get("files").Map().Get(name).KeyErrorf("%q is not a path within the working directory", name)
		}
	}
	c.Files = merge(c.Files, files)
	p.parseAnswers(m, c)
	p.answers(m, c)
}

// parseAnswers reads what answers in place of models.
func (p *parser) parseAnswers(m *yamldoc.Map, c *Case) {
	script, cassette := m.Get("script"), m.Get("cassette")
	if script == nil && cassette == nil {
		return
	}
	c.Script, c.ScriptText, c.Cassette = "", nil, ""
	if script != nil && cassette != nil {
		cassette.KeyErrorf("script and cassette exclude each other")
	}
	var path string
	switch {
	case script == nil || script.Kind() == yamldoc.Null:
	case script.Kind() == yamldoc.Mapping:
		c.ScriptText = p.source(script)
	case m.Text("script", &path):
		c.Script = p.path(path)
	}
	if cassette != nil && m.Text("cassette", &path) {
		c.Cassette = p.path(path)
	}
}

// source returns the text of the mapping n, with empty lines before it, so that places in it are
// those of the file.
func (p *parser) source(n *yamldoc.Node) []byte {
	key := n.KeyPos()
	if n.Pos().Line == key.Line {
		v, _ := n.Value() // on one line: JSON is YAML
		return append(bytes.Repeat([]byte("\n"), key.Line-1), v.String()...)
	}
	lines := bytes.SplitAfter(p.suite.src, []byte("\n"))
	var text []byte
	for i, line := range lines {
		blank := len(bytes.TrimSpace(line)) == 0
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case i < key.Line || blank:
			text = append(text, '\n')
		case indent < key.Column && line[indent] != '#':
			return text
		default:
			text = append(text, line...)
		}
	}
	return text
}

// texts reads a mapping of names to texts.
func (p *parser) texts(m *yamldoc.Map, key string) map[string]string {
	var texts map[string]string
	for e := range m.Map(key).All() {
		if text, ok := e.Node.Text(); ok {
			if texts == nil {
				texts = make(map[string]string)
			}
			texts[e.Key] = text
		}
	}
	return texts
}

// merge returns a with the members of b, which count more.
func merge(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// answers reads the answers to questions: a list in order, or a mapping by question or node.
func (p *parser) answers(m *yamldoc.Map, c *Case) {
	n := m.Get("answers")
	if n == nil || n.Kind() == yamldoc.Null {
		return
	}
	c.Answers = []Answer{}
	if n.Kind() == yamldoc.Mapping {
		for e := range n.Map().All() {
			if given, ok := ask.ReadAnswer(e.Node); ok {
				c.Answers = append(c.Answers, Answer{Question: e.Key, Given: given, Pos: e.KeyPos})
			}
		}
		return
	}
	items, _ := n.List()
	for _, item := range items {
		if given, ok := ask.ReadAnswer(item); ok {
			c.Answers = append(c.Answers, Answer{Given: given, Pos: item.Pos()})
		}
	}
}

// read reads one case.
func (p *parser) read(n *yamldoc.Node, c Case) *Case {
	m := n.Map()
	m.Require("name")
	c.Pos = n.Pos()
	m.Text("name", &c.Name)
	p.common(m, &c)
	if c.Agent == "" {
		if c.Agent = agentOf(filepath.Join(p.dir, filepath.Base(p.suite.File))); c.Agent == "" && m != nil {
			n.Errorf("there is no agent").Hint = "put the file below the directory of an agent, or write agent: ../its/directory"
		}
	}
	c.Expect.Pos = c.Pos
	if e := m.Map("expect"); e != nil {
		p.expect(e, &c.Expect)
	}
	m.Done()
	return &c
}

// expect reads what is expected.
func (p *parser) expect(m *yamldoc.Map, e *Expect) {
	e.Pos = m.Node().KeyPos()
	e.Exit, e.Tokens, e.Cost = number(m, "exit", true), number(m, "tokens", true), number(m, "cost", false)
	e.Route = names(m.Get("route"))
	e.Output, e.Error = textOf(m.Get("output")), textOf(m.Get("error"))
	e.Calls = calls(m.Get("calls"))
	for entry := range m.Map("state").All() {
		e.State = append(e.State, member(entry))
	}
	for entry := range m.Map("files").All() {
		f := File{Pos: entry.KeyPos, Path: entry.Key}
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			entry.Node.KeyErrorf("%q is not a path within the working directory", f.Path)
		}
		if entry.Node.Kind() == yamldoc.Null {
			f.Absent = true
		} else {
			f.Text = textOf(entry.Node)
		}
		e.Files = append(e.Files, f)
	}
	m.Done()
}

// number reads a number that is not negative.
func number(m *yamldoc.Map, key string, whole bool) *Number {
	n := m.Get(key)
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	v, ok := n.Float()
	if ok && (v < 0 || whole && n.Kind() != yamldoc.Int) {
		n.Errorf("expected a %snumber from 0, found %s", map[bool]string{true: "whole "}[whole], n.Describe())
	}
	return &Number{Value: v, Pos: n.KeyPos()}
}

// names reads a list of names, or a mapping of contains and lacks.
func names(n *yamldoc.Node) *Names {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	r := &Names{Pos: n.KeyPos()}
	if n.Kind() != yamldoc.Mapping {
		r.Exact, r.IsExact = n.Texts()
		return r
	}
	m := n.Map()
	r.Contains, r.Lacks = oneOrMore(m.Get("contains")), oneOrMore(m.Get("lacks"))
	m.Done()
	return r
}

// oneOrMore reads a text, or a list of texts.
func oneOrMore(n *yamldoc.Node) []string {
	switch {
	case n == nil || n.Kind() == yamldoc.Null:
		return nil
	case n.Kind() == yamldoc.List:
		list, _ := n.Texts()
		return list
	}
	if s, ok := n.Text(); ok {
		return []string{s}
	}
	return nil
}

// matchers are the keys of what is expected of a text.
var matchers = []string{"equals", "contains", "lacks", "matches"}

// textOf reads a text that is expected, or a mapping of matchers.
func textOf(n *yamldoc.Node) *Text {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	t := &Text{Pos: n.KeyPos()}
	if n.Kind() != yamldoc.Mapping {
		if s, ok := n.Text(); ok {
			t.Equals, t.plain = &s, true
		}
		return t
	}
	m := n.Map()
	var s, pattern string
	if m.Text("equals", &s) {
		t.Equals = &s
	}
	t.Contains, t.Lacks = oneOrMore(m.Get("contains")), oneOrMore(m.Get("lacks"))
	if m.Text("matches", &pattern) {
		if _, err := regexp.Compile(pattern); err != nil {
			m.Get("matches").Errorf("%v", err)
		} else {
			t.Matches = regexp.MustCompile("(?s)" + pattern)
		}
	}
	m.Done()
	return t
}

// member reads what is expected of a value of the state: a value, or matchers of its text.
func member(e yamldoc.Entry) Member {
	r := Member{Pos: e.KeyPos, Key: e.Key}
	switch e.Node.Kind() {
	case yamldoc.Null:
		r.Absent = true
	case yamldoc.Mapping:
		only := e.Node.Map().Len() > 0
		for entry := range e.Node.Map().All() {
			only = only && slices.Contains(matchers, entry.Key)
		}
		if only {
			r.Text = textOf(e.Node)
			break
		}
		fallthrough
	default:
		r.Value, _ = e.Node.Value()
	}
	return r
}

// calls reads the expected calls of tools: a list of exactly these, or a mapping.
func calls(n *yamldoc.Node) *Calls {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	c := &Calls{Pos: n.KeyPos(), Mode: Exactly}
	if n.Kind() != yamldoc.Mapping {
		c.List = callList(n)
		return c
	}
	m := n.Map()
	c.Mode = Contains
	c.List = callList(m.Get("contains"))
	if m.Has("any") {
		if m.Has("contains") {
			m.Get("any").KeyErrorf("any and contains exclude each other")
		}
		c.Mode, c.List = Any, callList(m.Get("any"))
	}
	c.Lacks = oneOrMore(m.Get("lacks"))
	m.Done()
	return c
}

// callList reads calls, of which each is the name of a tool, or a mapping of name and arguments.
func callList(n *yamldoc.Node) []Call {
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	items, _ := n.List()
	list := make([]Call, 0, len(items))
	for _, item := range items {
		c := Call{Pos: item.Pos()}
		if item.Kind() != yamldoc.Mapping {
			c.Name, _ = item.Text()
			list = append(list, c)
			continue
		}
		m := item.Map()
		m.Require("name")
		m.Text("name", &c.Name)
		if a := m.Get("arguments"); a != nil {
			if a.Map() != nil {
				v, _ := a.Value()
				c.Arguments = v.AsObject()
			}
		}
		m.Done()
		list = append(list, c)
	}
	return list
}
