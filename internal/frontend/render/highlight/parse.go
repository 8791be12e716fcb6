package highlight

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// file is a lexer as it is written.
type file struct {
	Config struct {
		Name            string `xml:"name"`
		CaseInsensitive bool   `xml:"case_insensitive"`
		DotAll          bool   `xml:"dot_all"`
		NotMultiline    bool   `xml:"not_multiline"`
	} `xml:"config"`
	States []struct {
		Name  string    `xml:"name,attr"`
		Rules []element `xml:"rule"`
	} `xml:"rules>state"`
}

// element is an XML element.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

// attrs returns the values of the attributes with a name.
func (e *element) attrs(name string) []string {
	var values []string
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			values = append(values, a.Value)
		}
	}
	return values
}

// attr returns the value of the first attribute with a name.
func (e *element) attr(name string) string {
	if values := e.attrs(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// parse reads a lexer.
func parse(data []byte) (*Lexer, error) {
	var f file
	if err := xml.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("lexer: %w", err)
	}
	l := &Lexer{name: f.Config.Name, states: make(map[string]*state, len(f.States))}
	if !f.Config.NotMultiline {
		l.flags += "m"
	}
	if f.Config.CaseInsensitive {
		l.flags += "i"
	}
	if f.Config.DotAll {
		l.flags += "s"
	}
	for _, s := range f.States {
		st := &state{}
		for i := range s.Rules {
			r, err := readRule(&s.Rules[i])
			if err != nil {
				return nil, fmt.Errorf("lexer %s: state %s: %w", f.Config.Name, s.Name, err)
			}
			st.rules = append(st.rules, r)
		}
		l.states[s.Name] = st
	}
	l.root = l.states[root]
	if l.root == nil {
		return nil, fmt.Errorf("lexer %s: no state %s", f.Config.Name, root)
	}
	l.link()
	return l, nil
}

func readRule(e *element) (*rule, error) {
	r := &rule{pattern: e.attr("pattern")}
	for i := range e.Children {
		child := &e.Children[i]
		if child.XMLName.Local == "include" {
			r.include = child.attr("state")
			continue
		}
		moves, ok, err := readMoves(child)
		if err != nil {
			return nil, err
		}
		if ok {
			r.moves = moves
			continue
		}
		if r.emit, err = readEmitter(child); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readMoves reads what happens to the stack, if e says that.
func readMoves(e *element) (moves []move, ok bool, err error) {
	switch e.XMLName.Local {
	case "pop":
		n := 1
		if text := e.attr("depth"); text != "" {
			if n, err = strconv.Atoi(text); err != nil {
				return nil, false, fmt.Errorf("depth %q is not a number", text)
			}
		}
		return []move{{pop: n}}, true, nil
	case "push":
		states := e.attrs("state")
		if len(states) == 0 {
			return []move{{same: true}}, true, nil
		}
		for _, s := range states {
			if s == "#pop" {
				moves = append(moves, move{pop: 1})
				continue
			}
			moves = append(moves, move{push: []string{s}})
		}
		return moves, true, nil
	case "combined":
		return []move{{push: e.attrs("state")}}, true, nil
	case "mutators":
		for i := range e.Children {
			more, _, err := readMoves(&e.Children[i])
			if err != nil {
				return nil, false, err
			}
			moves = append(moves, more...)
		}
		return moves, true, nil
	}
	return nil, false, nil
}

func readEmitter(e *element) (*emitter, error) {
	switch e.XMLName.Local {
	case "token":
		k, ok := kindOf(e.attr("type"))
		if e.attr("type") == "Ignore" { // chroma leaves such text out; here all text stays
			k, ok = kindText, true
		}
		if !ok {
			return nil, fmt.Errorf("unknown token type %q", e.attr("type"))
		}
		return &emitter{kind: k}, nil
	case "bygroups":
		groups, err := readEmitters(e.Children)
		return &emitter{groups: groups}, err
	case "usingself":
		return &emitter{selfName: e.attr("state")}, nil
	case "using":
		return &emitter{lexer: strings.ToLower(e.attr("lexer"))}, nil
	case "usingbygroup":
		em := &emitter{}
		for i := range e.Children {
			child := &e.Children[i]
			var err error
			switch child.XMLName.Local {
			case "sublexer_name_group":
				em.nameGroup, err = strconv.Atoi(strings.TrimSpace(child.Text))
			case "code_group":
				em.codeGroup, err = strconv.Atoi(strings.TrimSpace(child.Text))
			case "emitters":
				em.groups, err = readEmitters(child.Children)
			}
			if err != nil {
				return nil, err
			}
		}
		return em, nil
	}
	return nil, fmt.Errorf("unknown element <%s>", e.XMLName.Local)
}

func readEmitters(list []element) ([]*emitter, error) {
	var out []*emitter
	for i := range list {
		em, err := readEmitter(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, em)
	}
	return out, nil
}
