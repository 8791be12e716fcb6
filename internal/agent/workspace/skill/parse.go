package skill

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// Bounds of the fields, in characters.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// fields are what the front matter of a skill says.
type fields struct {
	Name          string   `json:"name"`
	Description   string   `json:"description"`
	License       string   `json:"license,omitempty"`
	Compatibility string   `json:"compatibility,omitempty"`
	AllowedTools  []string `json:"allowed_tools,omitempty"`
	UserOnly      bool     `json:"user_only,omitempty"` // models are not offered it
}

var (
	validName  = text.Regexp(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	usableName = text.Regexp(`^[\pL\pN][\pL\pN._:-]*$`)
	topLevel   = text.Regexp(`^([A-Za-z][\w-]*):[ \t]+(.*)$`)
)

// parse reads the text of a SKILL.md. It is lenient: what is wrong is a finding. The skill cannot be used if one of the findings is an error.
// Foreign are the keys of other programs.
func parse(file, source string) (f fields, body string, findings, foreign []*yamldoc.Problem, usable bool) {
	f.Name = filepath.Base(filepath.Dir(file))
	header, body, ok := frontMatter(source)
	if !ok {
		return f, body, []*yamldoc.Problem{{File: file, Pos: yamldoc.Pos{Line: 1, Column: 1}, Msg: "there is no front matter", Hint: "begin the file with --- and the keys name and description"}}, nil, false
	}
	doc, err := yamldoc.Parse(file, []byte("\n"+header)) // whose lines are those of the file
	if err != nil {
		quoted, err2 := yamldoc.Parse(file, []byte("\n"+quoteColons(header)))
		if err2 != nil {
			return f, body, yamldoc.AsProblems(err), nil, false
		}
		doc = quoted
		findings = append(findings, &yamldoc.Problem{File: file, Pos: yamldoc.AsProblems(err)[0].Pos, Msg: "a value with a colon has no quotes"})
	}
	if doc.Root().Kind() == yamldoc.Mapping {
		f.read(doc.Root().Map())
	}
	findings = append(findings, doc.Errors()...)
	for _, p := range doc.Warnings() {
		if p.Hint == "" {
			foreign = append(foreign, p)
		} else {
			findings = append(findings, p)
		}
	}
	if f.Description == "" {
		return f, body, append(findings, &yamldoc.Problem{File: file, Pos: yamldoc.Pos{Line: 1, Column: 1}, Msg: "there is no description, which tells models when to use the skill"}), foreign, false
	}
	return f, body, findings, foreign, true
}

// frontMatter cuts a text into the lines between two lines of three hyphens, the first of which begins the text, and what follows.
func frontMatter(source string) (header, body string, ok bool) {
	source = strings.ReplaceAll(strings.TrimPrefix(source, "\ufeff"), "\r\n", "\n")
	first, rest, _ := strings.Cut(source, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", source, false
	}
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == "---" {
			return header, rest[len(header)+len(line):], true
		}
		header += line
	}
	return "", source, false
}

// quoteColons puts plain values of the top level that have a colon between quotes. Lines that continue such a value become empty,
// so that the others keep their numbers.
func quoteColons(header string) string {
	lines := strings.Split(header, "\n")
	for i := 0; i < len(lines); i++ {
		m := topLevel().FindStringSubmatch(lines[i])
		if m == nil || m[2] == "" || strings.ContainsAny(m[2][:1], "|>\"'[{&*!#") {
			continue
		}
		at, plain := i, m[2]
		for i+1 < len(lines) && strings.TrimLeft(lines[i+1], " \t") != lines[i+1] {
			i++
			plain += " " + strings.TrimSpace(lines[i])
			lines[i] = ""
		}
		if strings.Contains(plain, ":") || i > at {
			lines[at] = m[1] + ": '" + strings.ReplaceAll(strings.TrimSpace(plain), "'", "''") + "'"
		}
	}
	return strings.Join(lines, "\n")
}

// read reads the keys, and reports what is wrong with them to the document.
func (f *fields) read(m *yamldoc.Map) {
	dir := f.Name
	if n := m.Get("name"); m.Text("name", &f.Name) {
		switch {
		case utf8.RuneCountInString(f.Name) > maxName || !validName().MatchString(f.Name):
			n.Errorf("%s is not a valid name: 1 to %d of a-z, 0-9 and single - between them", text.Name(f.Name), maxName)
		case f.Name != dir:
			n.Errorf("the name is %s, and that of the directory %s", text.Name(f.Name), text.Name(dir))
		}
	} else {
		m.Require("name")
	}
	if utf8.RuneCountInString(f.Name) > maxName || !usableName().MatchString(f.Name) {
		f.Name = text.CutRunes(strings.Join(strings.Fields(text.Visible(dir)), "-"), maxName)
	}
	f.text(m, "description", &f.Description, maxDescription)
	f.text(m, "license", &f.License, 0)
	f.text(m, "compatibility", &f.Compatibility, maxCompatibility)
	m.Bool("disable-model-invocation", &f.UserOnly)
	if meta := m.Map("metadata"); meta != nil {
		for e := range meta.All() {
			_, _ = e.Node.Text() // which reports what is no text
		}
	}
	if n := m.Get("allowed-tools"); n != nil && n.Kind() == yamldoc.List {
		m.Texts("allowed-tools", &f.AllowedTools)
	} else if said := ""; m.Text("allowed-tools", &said) {
		f.AllowedTools = toolWords(said)
	}
	m.Done()
}

// text reads a text, which is cut to a number of characters; 0 means any.
func (f *fields) text(m *yamldoc.Map, key string, dst *string, most int) {
	if !m.Text(key, dst) {
		return
	}
	*dst = strings.TrimSpace(*dst)
	if n := utf8.RuneCountInString(*dst); most > 0 && n > most {
		m.Get(key).Errorf("it has %d characters, and may have %d", n, most)
		*dst = text.CutRunes(*dst, most)
	}
}

// toolWords cuts a list of tools at blanks and commas that are not between parentheses.
func toolWords(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		}
		return depth == 0 && (r == ' ' || r == ',' || r == '\n' || r == '\t')
	})
}

// finding returns a finding about a file that has no place in it.
func finding(file, format string, args ...any) *yamldoc.Problem {
	return &yamldoc.Problem{File: file, Msg: fmt.Sprintf(format, args...)}
}
