package text

import (
	"strconv"
	"strings"
)

// Kinds of lines of a unified diff.
const (
	Added   = '+'
	Removed = '-'
	Hunk    = '@' // the first line of a hunk
)

// hunkLine is the first line of a hunk: its indentation, and how many lines it has of both texts.
var hunkLine = Regexp(`^( *)@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// DiffLines finds the lines of unified diffs in a text, of which it is given one line after the other. The diff may be indented.
type DiffLines struct {
	indent   string
	old, now int // lines of the hunk that are still to come
}

// Kind returns what the next line is in a diff: one of the kinds, or 0 for what is unchanged or in no diff.
func (d *DiffLines) Kind(line string) byte {
	if m := hunkLine().FindStringSubmatch(line); m != nil {
		d.indent, d.old, d.now = m[1], count(m[2]), count(m[3])
		return Hunk
	}
	rest, ok := strings.CutPrefix(line, d.indent)
	switch {
	case d.old <= 0 && d.now <= 0:
		return 0
	case ok && strings.HasPrefix(rest, "+"):
		d.now--
		return Added
	case ok && strings.HasPrefix(rest, "-"):
		d.old--
		return Removed
	case strings.TrimSpace(rest) == "" || ok && strings.HasPrefix(rest, " "):
		d.old, d.now = d.old-1, d.now-1
	case !ok || !strings.HasPrefix(rest, `\`): // the diff was cut
		d.old, d.now = 0, 0
	}
	return 0
}

// count returns a number of lines of the head of a hunk, where none means 1.
func count(s string) int {
	if s == "" {
		return 1
	}
	n, _ := strconv.Atoi(s) // digits; one that is too large counts as 0
	return n
}

// diffColors are the parameters of SGR sequences for the kinds of lines.
var diffColors = map[byte]string{Added: "32", Removed: "31", Hunk: "36"}

// PaintDiffLine returns a line of a kind, or a part of it, in its color.
func PaintDiffLine(kind byte, line string) string {
	if color := diffColors[kind]; color != "" && line != "" {
		return "\x1b[" + color + "m" + line + "\x1b[0m"
	}
	return line
}

// PaintDiffs returns a text with the unified diffs in it in color.
func PaintDiffs(s string) string {
	var d DiffLines
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = PaintDiffLine(d.Kind(line), line)
	}
	return strings.Join(lines, "\n")
}
