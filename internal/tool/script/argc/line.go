package argc

import (
	"bytes"
	"strings"
)

// The lines between which the generated code of a script stands.
const (
	blockBegin = "# ARGC-BUILD {"
	blockEnd   = "# ARGC-BUILD }"
)

// line is a line of a script, without its end.
type line struct {
	text       string
	number     int // from 1
	start, end int // offsets in the script; end is behind the line feed
}

func split(src []byte) []line {
	var lines []line
	for start := 0; start < len(src); {
		end := len(src)
		if i := bytes.IndexByte(src[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(src[start:end]), "\n"), "\r")
		lines = append(lines, line{text, len(lines) + 1, start, end})
		start = end
	}
	return lines
}

// A region is a range of bytes of a script that generated code takes the place of.
type region struct{ start, end int }

// splitGenerated separates the lines that people wrote from those of earlier builds and from
// the line that evaluates the tags at run time.
func splitGenerated(src []byte) (written []line, regions []region, err error) {
	begin := -1
	var open line
	for _, l := range split(src) {
		switch {
		case begin >= 0:
			if l.text == blockEnd {
				regions = append(regions, region{begin, l.end})
				begin = -1
			}
		case l.text == blockBegin:
			begin, open = l.start, l
		case strings.HasPrefix(l.text, "eval") && strings.Contains(l.text, " --argc-eval "):
			regions = append(regions, region{l.start, l.end})
		default:
			written = append(written, l)
		}
	}
	if begin >= 0 {
		return nil, nil, &Error{open.number, 1, "the generated code that begins here has no end: expected a line \"" + blockEnd + "\""}
	}
	return written, regions, nil
}

// Source returns the lines of a script that people wrote, without generated code. It is
// the same before and after a [Build].
func Source(src []byte) []byte {
	lines, _, err := splitGenerated(src)
	if err != nil {
		return src // Build refuses it, so nothing was generated
	}
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// comment returns the text of a comment line behind its "#"s; ok is false for other lines.
func (l line) comment() (text string, ok bool) {
	text = strings.TrimLeft(l.text, "#")
	return text, len(text) < len(l.text)
}

// tag returns what follows the "@" of a tag line, and the offset of it in the line.
func (l line) tag() (text string, column int, ok bool) {
	text, ok = l.comment()
	if !ok {
		return "", 0, false
	}
	text, ok = strings.CutPrefix(strings.TrimLeft(text, " \t"), "@")
	if !ok || text == "" || isBlank(text[0]) {
		return "", 0, false
	}
	return text, len(l.text) - len(text), true
}

// continuation returns the text that a comment line adds to the tag above it.
func (l line) continuation() (text string, ok bool) {
	if _, _, tag := l.tag(); tag {
		return "", false
	}
	text, ok = l.comment()
	if !ok {
		return "", false
	}
	if text != "" && isBlank(text[0]) {
		text = text[1:]
	}
	if strings.HasPrefix(text, `\@`) {
		text = text[1:]
	}
	return strings.TrimRight(text, " \t"), true
}

// function returns the name of the function that begins in a line, or "".
func (l line) function() string {
	if strings.HasPrefix(l.text, "#") {
		return ""
	}
	c := cursor{s: l.text}
	if c.literal("function") && c.blanks() {
		return c.while(isFunctionByte)
	}
	c = cursor{s: l.text}
	name := c.while(isFunctionByte)
	c.blanks()
	if name == "" || !c.literal("(") {
		return ""
	}
	c.blanks()
	if !c.literal(")") {
		return ""
	}
	return name
}
