package repl

import "strings"

// expand returns what a prompt template says. It is plain text and blocks in braces, which
// nest:
//
//	{name}            the value of the variable, empty for an unknown one
//	{?name template}  the template if the variable is true
//	{!name template}  the template if it is not
//	{two words}       itself
//
// A variable is true unless it is empty, 0 or false. A brace that is never closed is left out,
// and what follows it is plain text.
func expand(template string, variable func(name string) string) string {
	var b strings.Builder
	evaluation{template: template, ends: blockEnds(template), variable: variable, out: &b}.between(0, len(template))
	return b.String()
}

// evaluation is a template while it is rendered.
type evaluation struct {
	template string
	ends     map[int]int // of blocks: the offset of the brace that closes the one at an offset
	variable func(name string) string
	out      *strings.Builder
}

// between renders template[from:to].
func (e evaluation) between(from, to int) {
	for from < to {
		open := strings.IndexByte(e.template[from:to], '{')
		if open < 0 {
			break
		}
		open += from
		e.out.WriteString(e.template[from:open])
		end, closed := e.ends[open]
		if !closed {
			from = open + 1
			break
		}
		e.block(open, end)
		from = end + 1
	}
	e.out.WriteString(e.template[from:to])
}

// block renders the block between two braces.
func (e evaluation) block(open, end int) {
	name, _, template := strings.Cut(e.template[open+1:end], " ")
	condition, conditional := strings.CutPrefix(name, "?")
	wanted := conditional
	if !conditional {
		condition, conditional = strings.CutPrefix(name, "!")
	}
	switch {
	case !template:
		e.out.WriteString(e.variable(name))
	case !conditional:
		e.out.WriteString(e.template[open : end+1])
	case isTrue(e.variable(condition)) == wanted:
		e.between(open+1+len(name)+1, end)
	}
}

// isTrue reports whether the value of a variable counts as true.
func isTrue(value string) bool { return value != "" && value != "0" && value != "false" }

// blockEnds returns where the blocks of a template end, by where they begin. Braces that are not
// closed are not among them.
func blockEnds(template string) map[int]int {
	ends := make(map[int]int)
	var open []int
	for i := range len(template) {
		switch template[i] {
		case '{':
			open = append(open, i)
		case '}':
			if len(open) > 0 {
				ends[open[len(open)-1]] = i
				open = open[:len(open)-1]
			}
		}
	}
	return ends
}
