package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/text"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
)

// Line returns s, which others may have chosen, as it can be shown on a line.
func Line(s string) string {
	return strings.ReplaceAll(text.Printable(s), "\n", "\u240a")
}

// Table returns rows in columns, a line each, measured as terminals show them; those named in right
// are aligned to the right. The first row has the names of the columns.
func Table(rows [][]string, right ...int) string {
	shown := make([][]string, len(rows))
	widths := make([]int, len(rows[0]))
	for n, r := range rows {
		shown[n] = make([]string, len(r))
		for i, cell := range r {
			shown[n][i] = Line(cell)
			widths[i] = max(widths[i], ansi.StringWidth(shown[n][i]))
		}
	}
	var b strings.Builder
	for _, r := range shown {
		var line strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if slices.Contains(right, i) {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// List returns a table of items, a row for each, as [Table] does: "" if there are none. A nil head is none.
func List[T any](head []string, items []T, row func(T) []string, right ...int) string {
	if len(items) == 0 {
		return ""
	}
	var rows [][]string
	if head != nil {
		rows = append(rows, head)
	}
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return Table(rows, right...)
}

// Fit returns a text whose lines have at most width columns, or as it is if width is 0: the rest of a line, after the last blanks
// between columns, is wrapped below itself. A word that is longer stays whole.
func Fit(s string, width int) string {
	const least = 20 // columns of the rest
	if width < 2*least {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if ansi.StringWidth(line) <= width {
			continue
		}
		at := strings.LastIndex(text.CutColumns(line, width-least), "  ") + 2
		if at < 2 {
			at = 0
		}
		indent := ansi.StringWidth(line[:at])
		lines[i] = line[:at] + strings.ReplaceAll(text.WrapWords(line[at:], width-indent), "\n", "\n"+strings.Repeat(" ", indent))
	}
	return strings.Join(lines, "\n")
}

// Age shows how long ago something was, in its largest unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Cost returns what u cost, a hyphen for nothing and "unknown" if that is all there is to say.
func Cost(u chat.Usage) string {
	if u.Cost == 0 && u.CostUnknown {
		return "unknown"
	}
	return cmp.Or(render.Dollars(u), "-")
}
