package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"
)

// block is a run of text that no sentence crosses the border of: a paragraph, a
// list item, a heading. White space in it is single blanks.
type block struct {
	text    string
	heading bool
}

// blocksOf cuts a plain or Markdown text into blocks and leaves out what is not
// prose: front matter, fenced code, tables, rules, lines of HTML tags or images.
func blocksOf(text string) []block {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	c := cutter{lines: lines[frontMatter(lines):], unclosed: map[byte]int{}}
	for i := 0; i < len(c.lines); {
		i = c.take(i)
	}
	c.flush()
	return c.blocks
}

// cutter collects the blocks of a text line by line.
type cutter struct {
	lines    []string // all lines, trimmed
	blocks   []block
	para     []string     // lines of the block that is being read
	item     bool         // that block, or the one before it, is a list item
	unclosed map[byte]int // fence character -> shortest length known to have no end
}

// take reads line i, or a whole code block, and returns the index of what follows.
func (c *cutter) take(i int) int {
	if end, ok := c.fence(i); ok {
		c.flush()
		return end
	}
	line := c.lines[i]
	for strings.HasPrefix(line, ">") { // block quotes are quoted prose
		line = strings.TrimSpace(line[1:])
	}
	switch {
	case line == "":
		c.flush()
		c.item = false
	case isUnderline(line) && len(c.para) == 1 && !c.item && !endsSentence(c.para[0]):
		c.blocks = append(c.blocks, block{text: squeeze(c.para[0]), heading: true})
		c.para = nil
	case !isProse(line):
		c.flush()
	case atxHeading(line) != "":
		c.flush()
		c.item = false
		c.blocks = append(c.blocks, block{text: squeeze(atxHeading(line)), heading: true})
	default:
		if rest, ok := c.listItem(line); ok {
			c.flush()
			c.item = true
			line = rest
		}
		c.para = append(c.para, line)
	}
	return i + 1
}

// fence reports whether a fenced code block begins at line i, and where the text
// continues after it. A fence that is never closed is not a fence, or a single stray
// line would hide the rest of the text.
func (c *cutter) fence(i int) (int, bool) {
	char, n := fenceMark(c.lines[i])
	if n < 3 || c.unclosed[char] != 0 && n >= c.unclosed[char] {
		return 0, false
	}
	if char == '`' && strings.ContainsRune(c.lines[i][n:], '`') {
		return 0, false // code in a line
	}
	for j := i + 1; j < len(c.lines); j++ {
		if ch, m := fenceMark(c.lines[j]); ch == char && m >= n && m == len(c.lines[j]) {
			return j + 1, true
		}
	}
	c.unclosed[char] = n
	return 0, false
}

// fenceMark returns the character and the length of the run of backticks or tildes
// that line starts with.
func fenceMark(line string) (byte, int) {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0
	}
	return line[0], len(line) - len(strings.TrimLeft(line, line[:1]))
}

// flush ends the block that is being read.
func (c *cutter) flush() {
	start := 0
	longest := 0
	for _, line := range c.para {
		longest = max(longest, utf8.RuneCountInString(line))
	}
	for i := range c.para {
		if i+1 == len(c.para) || deliberate(c.para[i], c.para[i+1], longest) {
			c.blocks = append(c.blocks, block{text: joinLines(c.para[start : i+1])})
			start = i + 1
		}
	}
	c.para = nil
}

// deliberate reports whether the break between two lines of a paragraph was meant
// (verse, addresses, one statement per line) and does not come from wrapping: the
// first word of next would have fitted on line with room to spare. longest is the
// length of the paragraph's longest line in characters.
func deliberate(line, next string, longest int) bool {
	first, _ := utf8.DecodeRuneInString(next)
	if unicode.IsLower(first) {
		return false
	}
	word, _, _ := strings.Cut(next, " ")
	return 4*(utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word)) <= 3*longest
}

// joinLines puts wrapped lines together, with a blank unless both neighbors are of
// a script that is written without.
func joinLines(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			before, _ := utf8.DecodeLastRuneInString(lines[i-1])
			after, _ := utf8.DecodeRuneInString(line)
			if !isDense(before) || !isDense(after) {
				b.WriteByte(' ')
			}
		}
		b.WriteString(squeeze(line))
	}
	return b.String()
}

// squeeze makes each run of white space one blank and drops it at the ends.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// frontMatter returns how many lines the YAML front matter at the start of a
// document takes, 0 if there is none.
func frontMatter(lines []string) int {
	if len(lines) == 0 || lines[0] != "---" {
		return 0
	}
	for i, line := range lines[1:] {
		switch {
		case line == "---" && i > 0:
			return i + 2
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "#"):
		case !strings.Contains(line, ":"):
			return 0
		}
	}
	return 0
}

// isUnderline reports whether line makes a heading of the line above it.
func isUnderline(line string) bool {
	return len(line) >= 2 && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == "")
}

// endsSentence reports whether line ends as a sentence does, and no heading.
func endsSentence(line string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(line, closers))
	return isStop(r)
}

// isProse reports whether line has text to read.
func isProse(line string) bool {
	switch {
	case !hasWord(line):
		return false
	case strings.HasPrefix(line, "===") && strings.HasSuffix(line, "==="):
		return false // the banner above an attached file
	case strings.HasPrefix(line, "|") && strings.Count(line, "|") > 1:
		return false
	case strings.HasPrefix(line, "![") || strings.HasPrefix(line, "[!["):
		return !strings.HasSuffix(line, ")")
	case strings.HasPrefix(line, "<"):
		return hasWord(tags().ReplaceAllString(line, ""))
	}
	return true
}

// tags matches the tags of HTML; headings and items match the start of such a line.
var (
	tags     = text.Regexp(`<[^>]*>?`)
	headings = text.Regexp(`^#{1,6} +`)
	items    = text.Regexp(`^(?:[-*+•‣–◦] +(?:\[[ xX]\] )?|(?:\(?(\d{1,3})[.)]+) +)`)
)

func hasWord(s string) bool { return strings.ContainsFunc(s, isWordRune) }

// atxHeading returns the text of a heading marked by number signs, empty if line
// is none.
func atxHeading(line string) string {
	mark := headings().FindString(line)
	if mark == "" {
		return ""
	}
	return strings.TrimRight(line[len(mark):], "# ")
}

// listItem returns the text of a list item without its mark. As in CommonMark, a
// number other than 1 begins no list in the middle of a paragraph.
func (c *cutter) listItem(line string) (string, bool) {
	found := items().FindStringSubmatch(line)
	if found == nil || !hasWord(line[len(found[0]):]) {
		return "", false
	}
	if found[1] != "" && found[1] != "1" && len(c.para) > 0 && !c.item {
		return "", false
	}
	return line[len(found[0]):], true
}
