package argc

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// help returns the help text of a command, without a line feed at the end. width is the
// number of columns that texts are wrapped to, 0 for none.
func (g *generator) help(c *Command, width int) string {
	shown := c
	if sub := c.fallback(); sub != nil {
		// Its parameters can be given without naming it.
		merged := *c
		merged.Args = sub.Args
		for _, p := range sub.Options() {
			if !slices.ContainsFunc(c.Options(), func(q *Param) bool { return q.ID == p.ID }) {
				merged.own = append(slices.Clip(merged.own), p)
			}
		}
		shown = &merged
	}
	parts := []string{
		wrap(c.Describe, width),
		g.usage(c),
		section("ARGS:", argEntries(shown), width),
		section("OPTIONS:", g.optionEntries(shown), width),
		section("COMMANDS:", commandEntries(c), width),
		section("ENVIRONMENTS:", envEntries(c), width),
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n")
}

func (g *generator) usage(c *Command) string {
	words := append([]string{"USAGE:", g.name}, c.words()...)
	options := g.options(c)
	if slices.ContainsFunc(options, func(p *Param) bool { return !p.Required }) {
		words = append(words, "[OPTIONS]")
	}
	for _, p := range options {
		if p.Required {
			words = append(words, p.signature())
		}
	}
	if len(c.Commands) > 0 {
		words = append(words, "<COMMAND>")
	} else {
		for _, p := range c.Args {
			words = append(words, p.placeholder())
		}
	}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

// signature returns the best name of a flag or option with the labels of its values.
func (p *Param) signature() string { return p.Switch() + p.suffix() }

// suffix returns what help puts behind the name of a flag or option.
func (p *Param) suffix() string {
	if p.Kind == Flag {
		if p.Multiple {
			return "..."
		}
		return ""
	}
	join := " "
	if p.Assigned {
		join = "="
	} else if p.Prefixed {
		join = ""
	}
	return join + p.placeholder()
}

// placeholder returns the labels of an option's or argument's values.
func (p *Param) placeholder() string {
	if len(p.Labels) == 1 && p.Last == 0 {
		text := "[" + p.Labels[0] + "]"
		if p.Required || p.Kind == Option && !p.Multiple && !p.Rest {
			text = "<" + p.Labels[0] + ">"
		}
		if p.Multiple || p.Rest {
			text += "..."
		}
		return text
	}
	words := make([]string, len(p.Labels))
	for i, text := range p.Labels {
		words[i] = "<" + text + ">"
	}
	last := p.Labels[len(p.Labels)-1]
	switch p.Last {
	case '?':
		words[len(words)-1] = "[" + last + "]"
	case '*':
		words[len(words)-1] = "[" + last + "]..."
	case '+':
		words[len(words)-1] = "<" + last + ">..."
	}
	return strings.Join(words, " ")
}

// An entry is a line of a section: a term and its text, which may have several lines.
type entry struct{ term, text string }

func argEntries(c *Command) []entry {
	var list []entry
	for _, p := range c.Args {
		list = append(list, entry{p.placeholder(), p.text()})
	}
	return list
}

func (g *generator) optionEntries(c *Command) []entry {
	options := g.options(c)
	if len(options) == 0 {
		return nil
	}
	var list []entry
	described := false
	for _, p := range options {
		list = append(list, entry{p.term(), p.text()})
		described = described || p.text() != ""
	}
	for _, b := range g.builtins(c) {
		text := ""
		if described {
			text = "Print " + b.id
		}
		list = append(list, entry{b.term(), text})
	}
	return list
}

// term returns the names of a flag or option, in columns.
func (p *Param) term() string {
	var names string
	switch {
	case p.Long == "":
		return p.Short + p.suffix()
	case p.Short != "":
		names = p.Short + ", "
	default:
		names = "    "
	}
	if !strings.HasPrefix(p.Long, "--") {
		names += " "
	}
	return names + p.Long + p.suffix()
}

func commandEntries(c *Command) []entry {
	var list []entry
	for _, sub := range c.Commands {
		text, _, _ := strings.Cut(sub.Describe, "\n")
		if len(sub.Aliases) > 0 {
			text += " [aliases: " + strings.Join(sub.Aliases, ", ") + "]"
		}
		if sub.Default {
			text += " [default]"
		}
		list = append(list, entry{sub.Name, strings.TrimSpace(text)})
	}
	return list
}

func envEntries(c *Command) []entry {
	var list []entry
	for _, p := range c.Envs {
		term := p.ID
		if p.Required {
			term += "*"
		}
		list = append(list, entry{term, p.text()})
	}
	return list
}

// text returns the description of a parameter with what its declaration says about its
// values.
func (p *Param) text() string {
	parts := []string{p.Description}
	described := len(p.Choices) > 0
	for _, choice := range p.Choices {
		described = described && strings.Contains(p.Description, choice)
	}
	if !described {
		if len(p.Choices) > 0 {
			parts = append(parts, "[possible values: "+strings.Join(p.Choices, ", ")+"]")
		}
		if p.Default != nil {
			parts = append(parts, "[default: "+*p.Default+"]")
		}
	}
	if p.Bind != "" {
		parts = append(parts, "[env: "+p.Bind+"]")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// section lays out entries in two columns, or with texts on lines of their own if one has
// several lines.
func section(title string, entries []entry, width int) string {
	if len(entries) == 0 {
		return ""
	}
	column := 0
	several := false
	for _, e := range entries {
		column = max(column, utf8.RuneCountInString(e.term))
		several = several || strings.Contains(e.text, "\n")
	}
	lines := []string{title}
	for i, e := range entries {
		if several {
			if i > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, "  "+e.term)
			if e.text != "" {
				lines = append(lines, indent(wrap(e.text, width-10), 10))
			}
			continue
		}
		pad := strings.Repeat(" ", column-utf8.RuneCountInString(e.term)+2)
		text := strings.TrimLeft(indent(wrap(e.text, width-column-4), column+4), " ")
		lines = append(lines, strings.TrimRight("  "+e.term+pad+text, " "))
	}
	return strings.Join(lines, "\n")
}

func indent(text string, n int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = strings.Repeat(" ", n) + l
		}
	}
	return strings.Join(lines, "\n")
}

// wrap breaks lines at blanks so that they have at most width characters, where their
// words allow it. Nothing is wrapped to less than 20.
func wrap(text string, width int) string {
	if width < 20 {
		return text
	}
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrapLine(l, width)...)
	}
	return strings.Join(lines, "\n")
}

func wrapLine(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	current := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	length := utf8.RuneCountInString(current)
	empty := true
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if !empty && length+1+n > width {
			lines = append(lines, current)
			current, length, empty = "", 0, true
		}
		if !empty {
			current += " "
			length++
		}
		current += word
		length += n
		empty = false
	}
	return append(lines, current)
}
