package render

import (
	"encoding/json"
	"fmt"
	"strings"
)

// openLines is how many lines of a result are shown with -vv.
const openLines = 20

// result adds a tool's result: its first line and how many follow, or with verbose the
// first lines of it, a diff in its colors.
func (n *Narrator) result(name, text string, verbose bool) {
	lines := resultLines(text)
	if len(lines) == 0 {
		n.resultLine(dim, name+": no output")
		return
	}
	lines[0] = name + ": " + lines[0]
	shown := 1
	if verbose {
		shown = min(len(lines), openLines)
	}
	inHunk := false
	for i, line := range lines[:shown] {
		inHunk = inHunk || strings.HasPrefix(line, "@@ ")
		st := dim
		switch {
		case !inHunk:
		case strings.HasPrefix(line, "+"):
			st = green
		case strings.HasPrefix(line, "-"):
			st = red
		}
		if rest := len(lines) - shown; i == shown-1 && rest > 0 {
			line = oneLine(line, shortLimit) + fmt.Sprintf(" (and %d more lines)", rest)
		}
		n.resultLine(st, oneLine(line, shortLimit+30))
	}
}

func (n *Narrator) resultLine(st style, text string) {
	n.text.WriteString(colors(n.screen.o.Color).paint(st, "  "+text))
	n.text.WriteByte('\n')
}

// resultLines returns the lines of a tool's result: of the output in it, if it is wrapped
// in JSON, without empty ones at the end.
func resultLines(text string) []string {
	var wrapped struct {
		Output *string `json:"output"`
	}
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &wrapped) == nil && wrapped.Output != nil {
		text = *wrapped.Output
	}
	if text = strings.TrimRight(text, " \t\r\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
