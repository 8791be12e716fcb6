package plan

import (
	"fmt"
	"strings"
)

// openHeading is the heading of the questions that are not answered yet.
const openHeading = "Open questions"

// Markdown returns the plan as a user reads it. [Parse] reads it.
func (p Plan) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", p.Title)
	if p.Summary != "" {
		b.WriteByte('\n')
		for text := range strings.SplitSeq(p.Summary, "\n") {
			if rest := strings.TrimSpace(text); rest != "" && (rest[0] == '\\' || heading(rest) != "" || item(rest) != "") {
				text = text[:len(text)-len(strings.TrimLeft(text, " \t"))] + `\` + rest
			}
			b.WriteString(text + "\n")
		}
	}
	b.WriteByte('\n')
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, s.Text)
		for _, f := range s.Files {
			b.WriteString("   - file: " + code(f) + "\n")
		}
		for _, c := range s.Commands {
			b.WriteString("   - command: " + code(c) + "\n")
		}
	}
	if len(p.Open) > 0 {
		b.WriteString("\n## " + openHeading + "\n\n")
		for _, text := range p.Open {
			b.WriteString("- " + text + "\n")
		}
	}
	return b.String()
}

// code returns a text of one line as Markdown shows code.
func code(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// uncode returns the text of code, or a text as it is.
func uncode(text string) string {
	inner := strings.TrimLeft(text, "`")
	fence := text[:len(text)-len(inner)]
	if inner, ok := strings.CutSuffix(inner, fence); ok && inner != "" {
		return strings.TrimSpace(inner)
	}
	return text
}

// heading returns the mark with which a line without blanks around it begins a heading, "" if it does not.
func heading(text string) string {
	mark := text[:len(text)-len(strings.TrimLeft(text, "#"))]
	if rest := text[len(mark):]; mark == "" || len(mark) > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return ""
	}
	return mark
}

// item returns the mark with which a line without blanks around it begins an item of a list, "" if it does not.
func item(text string) string {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	mark := text[:min(len(text), digits+1)]
	switch {
	case digits > 0 && !strings.HasSuffix(mark, ".") && !strings.HasSuffix(mark, ")"), digits == 0 && mark != "-" && mark != "*" && mark != "+":
		return ""
	case len(text) > len(mark) && text[len(mark)] != ' ' && text[len(mark)] != '\t':
		return ""
	}
	return mark
}

// Parse reads a plan from Markdown, as a user has changed it: the items of the list are the steps, with items below them for files and
// commands. The title is empty if there is none. The error names the line that cannot be read.
func Parse(markdown string) (Plan, error) {
	var r reader
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(markdown)
	number := 0
	for source := range strings.SplitSeq(text, "\n") {
		number++
		if err := r.line(source); err != nil {
			return Plan{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	r.plan.Summary = strings.Join(r.summary, "\n")
	p := r.plan.clean()
	titled := p
	if titled.Title == "" {
		titled.Title = "plan"
	}
	return p, titled.check()
}

// reader reads a plan line by line.
type reader struct {
	plan    Plan
	summary []string
	open    bool // the questions are read
}

func (r *reader) line(source string) error {
	text := strings.TrimSpace(source)
	indent := len(strings.ReplaceAll(source[:len(source)-len(strings.TrimLeft(source, " \t"))], "\t", "    "))
	head := len(r.plan.Steps) == 0 && !r.open
	mark := item(text)
	switch {
	case head && r.plan.Title == "" && strings.TrimSpace(heading(text)) == "#": // what is before it was said by the model
		r.plan.Title, r.summary = line(strings.TrimPrefix(text, heading(text))), nil
	case heading(text) != "":
		return r.heading(line(strings.TrimPrefix(text, heading(text))), head)
	case mark != "" && r.open:
		r.plan.Open = append(r.plan.Open, text[len(mark):])
	case mark != "" && (indent < 2 || head):
		r.plan.Steps = append(r.plan.Steps, Step{Text: text[len(mark):]})
	case mark != "":
		r.detail(strings.TrimSpace(text[len(mark):]))
	case head:
		if rest, ok := strings.CutPrefix(text, `\`); ok {
			source = source[:strings.IndexByte(source, '\\')] + rest
		}
		r.summary = append(r.summary, source)
	case text == "":
	case r.open && len(r.plan.Open) > 0:
		r.plan.Open[len(r.plan.Open)-1] += " " + text
	case r.open:
		r.plan.Open = append(r.plan.Open, text)
	default:
		r.plan.Steps[len(r.plan.Steps)-1].Text += " " + text
	}
	return nil
}

// heading reads a heading. head says that no step was read before it.
func (r *reader) heading(text string, head bool) error {
	switch {
	case head && r.plan.Title == "" && strings.TrimSpace(strings.Join(r.summary, "")) == "":
		r.plan.Title = text
	case strings.HasPrefix(strings.ToLower(text), "open"):
		r.open = true
	case strings.EqualFold(text, "steps"):
	default:
		return fmt.Errorf("the heading %q has no meaning here; each step is an item of the list", text)
	}
	return nil
}

// detail reads an item below a step.
func (r *reader) detail(text string) {
	s := &r.plan.Steps[len(r.plan.Steps)-1]
	name, rest, ok := strings.Cut(text, ":")
	switch strings.ToLower(name) {
	case "file":
		s.Files = append(s.Files, uncode(strings.TrimSpace(rest)))
	case "command":
		s.Commands = append(s.Commands, uncode(strings.TrimSpace(rest)))
	default:
		ok = false
	}
	if !ok {
		s.Text += "; " + text
	}
}
