package role

import (
	"cmp"
	"fmt"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

// Parse reads a role. Front matter is recognized at the very start of the text only: it
// begins with a line of three or more hyphens and ends at the next such line. name and
// file are those of the role, file may be empty. The warnings are for the user; the error
// reports, by line and column, invalid parts of the front matter.
func Parse(name, file, text string) (Role, []*yamldoc.Problem, error) {
	r := Role{Name: name, File: file}
	header, body, offset, ok := frontMatter(text)
	if !ok {
		r.Prompt = strings.TrimSpace(text)
		return r, nil, nil
	}
	// The lines above the header are kept, as empty ones, so that positions are those
	// of the file.
	doc, err := yamldoc.Parse(cmp.Or(file, "role "+name), []byte(strings.Repeat("\n", offset)+header))
	r.Prompt = strings.TrimSpace(body)
	switch {
	case err != nil && !key().MatchString(header):
		return r, nil, nil // text between two rules
	case err != nil:
		return Role{}, nil, err
	}
	if doc.Root().Kind() == yamldoc.Mapping { // anything else says nothing
		r.read(doc.Root().Map())
	}
	if r.Prompt == "" {
		r.Prompt, r.Template = r.Template, ""
	}
	return r, doc.Warnings(), doc.Err()
}

// key matches metadata that begins with a key, behind comments and empty lines.
var key = text.Regexp(`^(?:\s*(?:#.*)?\n)*\s*["']?\w+["']?\s*:`)

// frontMatter cuts a text into header and body. offset is the number of lines above the
// header.
func frontMatter(text string) (header, body string, offset int, ok bool) {
	text = strings.TrimPrefix(text, "\uFEFF")
	lines := strings.SplitAfter(text, "\n")
	for offset < len(lines) && strings.TrimSpace(lines[offset]) == "" {
		offset++
	}
	if offset == len(lines) || !isRule(lines[offset]) {
		return "", "", 0, false
	}
	offset++
	for i := offset; i < len(lines); i++ {
		if isRule(lines[i]) {
			return strings.Join(lines[offset:i], ""), strings.Join(lines[i+1:], ""), offset, true
		}
	}
	return "", "", 0, false
}

func isRule(line string) bool {
	line = strings.TrimRight(line, " \t\r\n")
	return len(line) >= 3 && strings.Trim(line, "-") == ""
}

func (r *Role) read(m *yamldoc.Map) {
	m.Ignore("name")
	m.Renamed("use_tools", "enabled_tools")
	for _, s := range r.Settings.List() {
		ReadSetting(m, s)
	}
	var template string
	if m.Text("prompt", &template) {
		r.Template = strings.TrimSpace(template)
	}
	m.Foreign("skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions", "enabled_macros")
	m.Done()
}

// ReadSetting reads a setting of a chat from the key of m that it has in files. It stays
// as it is if there is no such key.
func ReadSetting(m *yamldoc.Map, s chat.Setting) {
	switch p := s.Ptr.(type) {
	case *string:
		if m.Text(s.Key, p) && s.Key == "sandbox" && !sandbox.Level(*p).Valid() {
			m.Get(s.Key).Errorf("want one of read, write, network, full, found %q", *p)
		}
	case *chat.Effort:
		var text string
		if m.Text(s.Key, &text) {
			if *p = chat.Effort(text); !p.Valid() {
				m.Get(s.Key).Errorf("want one of %s, found %q", chat.EffortNames(), text)
			}
		}
	case *chat.Mode:
		var text string
		if m.Text(s.Key, &text) {
			var err error
			if *p, err = chat.ParseFileMode(text); err != nil {
				m.Get(s.Key).Errorf("%v", err)
			}
		}
	case *chat.Memory:
		var text string
		if m.Text(s.Key, &text) {
			var err error
			if *p, err = chat.ParseMemory(text); err != nil {
				m.Get(s.Key).Errorf("%v", err)
			}
		}
	case **string:
		read := m.Text
		if s.Key == "skills" || strings.HasPrefix(s.Key, "enabled_") {
			read = m.CommaList // other programs write lists
		}
		optional(read, s.Key, p)
	case **float64:
		optional(m.CheckedFloat(chat.CheckNumber), s.Key, p)
	case **bool:
		optional(m.Bool, s.Key, p)
	case **int:
		optional(m.Uint, s.Key, p)
	default:
		panic(fmt.Sprintf("role: a setting of type %T", p))
	}
}

// optional reads a key that may be absent.
func optional[T any](read func(string, *T) bool, key string, dst **T) {
	var v T
	if read(key, &v) {
		*dst = &v
	}
}

var placeholder = text.Regexp(`\{\{\s*(\w+)\s*\}\}`)

// Expand replaces each {{name}} that lookup knows. Others stay as they are.
func Expand(text string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return placeholder().ReplaceAllStringFunc(text, func(match string) string {
		if v, ok := lookup(placeholder().FindStringSubmatch(match)[1]); ok {
			return v
		}
		return match
	})
}

// Export returns the role as the text of its file: the settings it has, and the prompt.
func (r Role) Export() string {
	var b strings.Builder
	for _, s := range append(r.Settings.List(), chat.Setting{Key: "prompt", Ptr: &r.Template}) {
		v, set := s.Value()
		if !set {
			continue
		}
		if text, ok := v.(string); ok {
			v = yamlString(text)
		}
		fmt.Fprintf(&b, "%s: %v\n", s.Key, v)
	}
	header := b.String()
	switch {
	case header == "" && !isRule(firstLine(r.Prompt)):
		return r.Prompt + "\n"
	case r.Prompt == "":
		return "---\n" + header + "---\n"
	}
	return "---\n" + header + "---\n\n" + r.Prompt + "\n"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// plainString matches texts that mean themselves in YAML without quotes.
var plainString = text.Regexp(`^[A-Za-z_][\w./:-]*[\w]$|^[A-Za-z_][\w./-]*(,[\w.-]+)*$`)

func yamlString(s string) string {
	switch strings.ToLower(s) {
	case "null", "true", "false":
	default:
		if plainString().MatchString(s) {
			return s
		}
	}
	return string(value.Of(s).AppendJSON(nil)) // a JSON string is a YAML one
}
