package render_test

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// scrolling is a terminal with a memory for what has scrolled off. It knows what the
// Markdown writer sends, and wide characters, and remembers anything else as an error.
type scrolling struct {
	mu            sync.Mutex // guards the rest while text that waits is drawn
	columns, rows int
	lines         []screenLine // the last rows of them are the screen
	x, y          int          // of the cursor; y counts from the first line
	full          bool         // the last column was filled: the next character begins a line
	writes        int
	unknown       string
}

// screenLine is a line of the terminal.
type screenLine struct {
	cells   []string // "" right of a wide character
	wrapped bool     // the next line continues it
}

func newScrolling(columns, rows int) *scrolling {
	return &scrolling{columns: columns, rows: rows, lines: make([]screenLine, 1)}
}

func (v *scrolling) size() (columns, rows int) { return v.columns, v.rows }

func (v *scrolling) written() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.writes
}

func (v *scrolling) top() int { return max(0, len(v.lines)-v.rows) }

func (v *scrolling) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writes++
	for rest := p; len(rest) > 0; {
		switch c := rest[0]; {
		case c == '\n':
			v.x, v.full = 0, false
			v.down()
			rest = rest[1:]
		case c == '\r':
			v.x, v.full = 0, false
			rest = rest[1:]
		case c == 0x1b:
			rest = v.escape(rest)
		case c < ' ':
			v.unknown += strconv.Quote(string(c))
			rest = rest[1:]
		default:
			rest = v.put(rest)
		}
	}
	return len(p), nil
}

func (v *scrolling) down() {
	if v.y++; v.y == len(v.lines) {
		v.lines = append(v.lines, screenLine{})
	}
}

func (v *scrolling) put(rest []byte) []byte {
	if !utf8.FullRune(rest) {
		v.unknown += "half a character "
	}
	char, w := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
	if w == 0 {
		return rest[len(char):] // belongs to a character of the row before, which a space separates from it
	}
	if v.full || v.x+w > v.columns {
		v.lines[v.y].wrapped = true
		v.x, v.full = 0, false
		v.down()
		v.lines[v.y].wrapped = false
	}
	line := &v.lines[v.y]
	for len(line.cells) < v.x+w {
		line.cells = append(line.cells, " ")
	}
	line.cells[v.x] = string(char)
	for i := 1; i < w; i++ {
		line.cells[v.x+i] = ""
	}
	v.x += w
	if v.x == v.columns {
		v.x, v.full = v.columns-1, true
	}
	return rest[len(char):]
}

func (v *scrolling) escape(rest []byte) []byte {
	if bytes.HasPrefix(rest, []byte("\x1b]8;")) {
		if i := bytes.Index(rest, []byte("\x1b\\")); i > 0 {
			return rest[i+2:]
		}
	}
	i := bytes.IndexFunc(rest[min(2, len(rest)):], func(r rune) bool { return r >= '@' })
	if i < 0 || rest[1] != '[' {
		v.unknown += strconv.Quote(string(rest[:min(8, len(rest))]))
		return rest[1:]
	}
	parameters, final := string(rest[2:2+i]), rest[2+i]
	n, _ := strconv.Atoi(parameters)
	switch {
	case final == 'm', parameters == "?2026" && (final == 'h' || final == 'l'):
	case final == 'A':
		v.y = max(v.top(), v.y-n)
		v.full = false
	case final == 'K' && parameters == "":
		line := &v.lines[v.y]
		line.cells = line.cells[:min(v.x, len(line.cells))]
		line.wrapped = false
	case final == 'J' && parameters == "":
		line := &v.lines[v.y]
		line.cells = line.cells[:min(v.x, len(line.cells))]
		line.wrapped = false
		for k := v.y + 1; k < len(v.lines); k++ {
			v.lines[k] = screenLine{}
		}
	default:
		v.unknown += strconv.Quote(string(rest[:3+i]))
	}
	return rest[3+i:]
}

// text returns everything that was ever shown, with lines that the terminal has broken
// in one piece.
func (v *scrolling) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, l := range v.lines {
		line := strings.Join(l.cells, "")
		if l.wrapped {
			b.WriteString(line)
			continue
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// resize makes the window narrower or wider, as terminals do that keep lines together:
// lines that were broken are joined, and those that are too long broken.
func (v *scrolling) resize(columns int) {
	var lines []screenLine
	x, y := 0, 0
	v.columns = columns
	for i := 0; i < len(v.lines); i++ {
		first := i
		cells := v.lines[i].cells
		for v.lines[i].wrapped {
			i++
			cells = append(cells[:len(cells):len(cells)], v.lines[i].cells...)
		}
		at := -1 // the cursor's place in cells
		if v.y >= first && v.y <= i {
			at = v.x
			if v.full {
				at++
			}
			for k := first; k < v.y; k++ {
				at += len(v.lines[k].cells)
			}
		}
		for {
			n := min(columns, len(cells))
			for n < len(cells) && n > 0 && cells[n] == "" {
				n--
			}
			lines = append(lines, screenLine{cells: append([]string(nil), cells[:n]...), wrapped: n < len(cells)})
			if at >= 0 && at <= n {
				x, y, at = at, len(lines)-1, -1
			} else {
				at = max(at-n, -1)
			}
			if cells = cells[n:]; len(cells) == 0 {
				break
			}
		}
	}
	v.lines, v.x, v.y, v.full = lines, x, y, false
	if v.x == columns {
		v.x, v.full = columns-1, true
	}
}
