package role

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"loki/internal/provider"
	"loki/internal/value"
	"loki/internal/yamldoc"
)

// Parse reads a role. Front matter is recognised at the very start of the text only: it
// begins with a line of three or more hyphens and ends at the next such line. name and
// file are those of the role, file may be empty. The warnings are for the user; the error
// tells, by line and column, what in the front matter cannot be used.
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
	case err != nil && !key.MatchString(header):
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
var key = regexp.MustCompile(`^(?:\s*(?:#.*)?\n)*\s*["']?\w+["']?\s*:`)

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
	s := &r.Settings
	m.Ignore("name")
	m.Text("model", &s.Model)
	s.Temperature = optional(m.Float, "temperature")
	s.TopP = optional(m.Float, "top_p")
	var effort string
	if m.Text("reasoning_effort", &effort) {
		if s.Effort = provider.Effort(effort); !s.Effort.Valid() {
			m.Get("reasoning_effort").Errorf("%q is none of %s", effort, provider.EffortNames())
		}
	}
	s.EnabledTools = optional(m.CommaList, "enabled_tools")
	s.EnabledMCPServers = optional(m.CommaList, "enabled_mcp_servers")
	s.AutoContinue = optional(m.Bool, "auto_continue")
	s.MaxAutoContinues = optional(m.Uint, "max_auto_continues")
	s.InjectTodoInstructions = optional(m.Bool, "inject_todo_instructions")
	s.ContinuationPrompt = optional(m.Text, "continuation_prompt")
	var template string
	if m.Text("prompt", &template) {
		r.Template = strings.TrimSpace(template)
	}
	m.Renamed("use_tools", "enabled_tools")
	m.Foreign("skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions", "enabled_macros", "memory")
	m.Done()
}

// optional reads a key that may be absent.
func optional[T any](read func(string, *T) bool, key string) *T {
	var v T
	if !read(key, &v) {
		return nil
	}
	return &v
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// Expand replaces each {{name}} that lookup knows. Others stay as they are.
func Expand(text string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		if v, ok := lookup(placeholder.FindStringSubmatch(match)[1]); ok {
			return v
		}
		return match
	})
}

// Export returns the role as the text of its file: the settings it has, and the prompt.
func (r Role) Export() string {
	var b strings.Builder
	line := func(key string, v any) { fmt.Fprintf(&b, "%s: %v\n", key, v) }
	quoted := func(key, s string) { b.WriteString(key + ": " + yamlString(s) + "\n") }
	s := r.Settings
	if s.Model != "" {
		quoted("model", s.Model)
	}
	if s.Temperature != nil {
		line("temperature", *s.Temperature)
	}
	if s.TopP != nil {
		line("top_p", *s.TopP)
	}
	if s.Effort != "" {
		quoted("reasoning_effort", string(s.Effort))
	}
	if s.EnabledTools != nil {
		quoted("enabled_tools", *s.EnabledTools)
	}
	if s.EnabledMCPServers != nil {
		quoted("enabled_mcp_servers", *s.EnabledMCPServers)
	}
	if s.AutoContinue != nil {
		line("auto_continue", *s.AutoContinue)
	}
	if s.MaxAutoContinues != nil {
		line("max_auto_continues", *s.MaxAutoContinues)
	}
	if s.InjectTodoInstructions != nil {
		line("inject_todo_instructions", *s.InjectTodoInstructions)
	}
	if s.ContinuationPrompt != nil {
		quoted("continuation_prompt", *s.ContinuationPrompt)
	}
	if r.Template != "" {
		quoted("prompt", r.Template)
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
var plainString = regexp.MustCompile(`^[A-Za-z_][\w./:-]*[\w]$|^[A-Za-z_][\w./-]*(,[\w.-]+)*$`)

func yamlString(s string) string {
	switch strings.ToLower(s) {
	case "null", "true", "false":
	default:
		if plainString.MatchString(s) {
			return s
		}
	}
	return string(value.Of(s).AppendJSON(nil)) // a JSON string is a YAML one
}
