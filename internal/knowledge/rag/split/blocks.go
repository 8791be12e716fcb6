package split

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// block is a part of a text that is not cut unless it is too long for a chunk.
type block struct {
	kind       kind
	start, end int    // without blanks around it
	chars      int    // in it
	before     int    // characters between the one before and this one
	title      string // of a heading

	rows  []int  // where it can be cut: the beginnings of lines of code, of items, of rows of a table
	body  int    // where the last of them ends
	head  string // what a part of it begins with: the line that opens code, the lines above a list, the names of columns
	foot  string // what a part of it ends with: the line that closes code
	names []string
	cells func(row string) []string // of a row of a table
}

type kind int

const (
	prose kind = iota
	heads
	list
	listing // code
	table
)

// blocker finds the blocks of a part of a Markdown document.
type blocker struct {
	*walk
	blocks []block
	b      block // the one at hand
	open   bool  // there is one
	indent int   // of the items of a list
}

// blocks returns the blocks of text[start:end].
func (w *walk) blocks(start, end int) []block {
	k := blocker{walk: w}
	codes, headings := w.outline.code, w.outline.headings
	blank := true // the line before
	w.looked += end - start
	for at := start; at < end; {
		for len(codes) > 0 && codes[0].start < at {
			codes = codes[1:]
		}
		for len(headings) > 0 && headings[0].start < at {
			headings = headings[1:]
		}
		next := w.lineEnd(at, end)
		line := strings.TrimRight(w.text[at:next], " \t\n")
		body := strings.TrimLeft(line, " \t")
		inList := k.open && k.b.kind == list && body != "" && (len(body) < len(line) || !blank)
		switch {
		case len(codes) > 0 && codes[0].start == at:
			c := codes[0]
			next = min(c.end, end)
			if inList && len(body) < len(line) {
				break
			}
			k.begin(at, block{kind: listing, body: min(c.foot, end), head: line})
			k.b.foot = strings.TrimSpace(w.text[k.b.body:next])
			for row := min(c.body, end); row < k.b.body; row = w.lineEnd(row, k.b.body) {
				k.b.rows = append(k.b.rows, row)
			}
			k.close(next)
		case len(headings) > 0 && headings[0].start == at:
			next = min(headings[0].end, end)
			k.begin(at, block{kind: heads, title: headings[0].title})
			k.close(next)
		case body == "":
			if k.open && k.b.kind != list {
				k.close(at)
			}
		case k.open && k.b.kind == table && !blank && strings.Contains(line, "|"):
			k.b.rows = append(k.b.rows, at)
		case (!k.open || k.b.kind != list || len(body) == len(line)) && strings.Contains(line, "|") && ruled(w.text[next:w.lineEnd(next, end)]):
			next = w.lineEnd(next, end)
			k.begin(at, block{kind: table, head: strings.TrimSpace(w.text[at:next]), names: pipes(line), cells: pipes})
		case item(body) && (blank || !k.open || k.b.kind != prose || strings.Contains("-*+1", body[:1])):
			indent := len(line) - len(body)
			if !k.open || k.b.kind != list {
				k.begin(at, block{kind: list})
				k.indent = indent
			}
			if indent <= k.indent+1 {
				k.b.rows = append(k.b.rows, at)
			}
		case inList, k.open && k.b.kind == prose && !blank:
		default:
			k.begin(at, block{kind: prose})
		}
		blank, at = body == "", next
	}
	k.close(end)
	return k.blocks
}

// lineEnd returns where the line at at ends, its line end included, or end.
func (w *walk) lineEnd(at, end int) int {
	if n := strings.IndexByte(w.text[at:end], '\n'); n >= 0 {
		return at + n + 1
	}
	return end
}

// begin ends the block at hand and begins another one.
func (k *blocker) begin(at int, b block) {
	k.close(at)
	b.start = at
	k.b, k.open = b, true
}

// close ends the block at hand, if there is one.
func (k *blocker) close(at int) {
	if !k.open {
		return
	}
	b := k.b
	k.open = false
	before, after := k.walk.blanks(k.text[b.start:at])
	if before == after {
		return
	}
	b.start, b.end = b.start+before, b.start+after
	b.chars = k.length(b.start, b.end)
	if b.kind != listing {
		b.body = b.end
	}
	if n := len(k.blocks); n > 0 {
		last := k.blocks[n-1]
		b.before = k.length(last.end, b.start)
		if b.kind == list && last.kind == prose && k.leads(last, b) && last.chars <= k.size/4 {
			b.head = k.text[last.start:last.end]
		}
	}
	k.blocks = append(k.blocks, b)
}

// leads reports whether a block says what the next one is.
func (w *walk) leads(b, next block) bool {
	return b.kind == heads || b.kind == prose && (w.text[b.end-1] == ':' || next.kind != prose && strings.Count(w.text[b.end:next.start], "\n") == 1)
}

// ruled reports whether a line is the one below the header of a table.
func ruled(line string) bool {
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: \t\n") == ""
}

// pipes returns the cells of a row of a Markdown table.
func pipes(row string) (cells []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	var cell strings.Builder
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case row[i] == '|':
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[i])
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}

// pack puts blocks that follow each other into chunks, as many as fit. A block that says what the next one is stays with it.
func (w *walk) pack(blocks []block) {
	at := make([]int, len(blocks)) // characters before each
	for i := 1; i < len(blocks); i++ {
		at[i] = at[i-1] + blocks[i-1].chars + blocks[i].before
	}
	chars := func(i, j int) int { return at[j] - at[i] + blocks[j].chars }
	first := 0 // of the chunk that grows
	for i, b := range blocks {
		if chars(first, i) <= w.size {
			continue
		}
		from := i
		if i > first && w.leads(blocks[i-1], b) && (i-1 > first || b.chars > w.size) && blocks[i-1].chars <= w.size/2 {
			from = i - 1
		}
		if b.chars > w.size {
			if i > first && chars(first, i-1) <= w.size/4 {
				from = first
			}
			w.chunkOf(blocks[first:from])
			w.divide(b, blocks[from:i])
			first = i + 1
			continue
		}
		if chars(from, i) > w.size {
			from = i
		}
		w.chunkOf(blocks[first:from])
		least := first + 1
		for first = from; first > least && chars(first-1, from-1) <= w.overlap && chars(first-1, i) <= w.size; first-- {
		}
	}
	if first < len(blocks) {
		w.emitAll(blocks[first:])
	}
}

func (w *walk) emitAll(blocks []block) {
	start, end := blocks[0].start, blocks[len(blocks)-1].end
	w.emit(start, end, w.text[start:end])
}

// chunkOf adds a chunk of blocks, unless the Heading of the next one has all of it.
func (w *walk) chunkOf(blocks []block) {
	said := true
	for _, b := range blocks {
		said = said && b.kind == heads && strings.Contains(w.heading, b.title)
	}
	if !said {
		w.emitAll(blocks)
	}
}

// tiny is the size of chunks that have no room for names.
const tiny = 20

// divide cuts a block that is too long for a chunk at its rows. The first chunk begins with the blocks of lead, if it has room for
// them, the others with what the block says of each part of it. A row of a table that is too long is cut at its cells.
func (w *walk) divide(b block, lead []block) {
	if len(b.rows) == 0 || w.size < tiny {
		w.chunkOf(lead)
		w.split(b.start, b.end, separators(""))
		return
	}
	head, foot := b.head, b.foot
	if head != "" {
		head += "\n"
	}
	if foot != "" {
		foot = "\n" + foot
	}
	around := utf8.RuneCountInString(foot)
	headed := utf8.RuneCountInString(head)+around <= w.size*2/3
	if !headed {
		head, foot, around = "", "", 0
	}
	above := utf8.RuneCountInString(head)
	at := b.start // where the chunk begins
	if len(lead) > 0 {
		at = lead[0].start
	}
	used := w.length(at, b.rows[0]) // characters of the chunk
	if len(lead) > 0 && used > w.size*2/3 {
		w.chunkOf(lead)
		lead, at = nil, b.start
		used = w.length(at, b.rows[0])
	}
	emit := func(end int) {
		before, after := w.blanks(w.text[at:end])
		if before == after {
			return
		}
		p := Piece{Text: w.text[at+before : at+after], Start: at + before, End: at + after, after: len(foot)}
		if at >= b.rows[0] {
			p.Text, p.before = head+p.Text, len(head)
		}
		p.Text += foot
		w.piece(p)
	}
	size := make([]int, len(b.rows))
	ends := append(slices.Clone(b.rows[1:]), b.body)
	for i := range b.rows {
		size[i] = w.length(b.rows[i], ends[i])
		if w.text[ends[i]-1] != '\n' {
			size[i]++
		}
	}
	first := 0 // row of the chunk
	for i := 0; i < len(b.rows); i++ {
		if used+size[i]+around-1 <= w.size && // the chunk has no line end behind it
			(headed || b.kind != table) {
			used += size[i]
			continue
		}
		if i > first {
			cut := i
			for k := i - 1; b.kind == listing && k > (first+i)/2; k-- { // code is rather cut at a blank line
				if w.blank(b.rows[k], ends[k]) {
					cut = k + 1
					break
				}
			}
			emit(b.rows[cut])
			least := first + 1
			for first, used = cut, above; b.kind != table && first > least && used-above+size[first-1] <= w.overlap && used+size[first-1]+size[cut]+around-1 <= w.size; first-- {
				used += size[first-1]
			}
			at, i = b.rows[first], cut-1
			continue
		}
		// The row alone has no room.
		switch {
		case b.kind == table:
			if len(lead) > 0 {
				w.chunkOf(lead)
			}
			w.addNamedRow(b, b.rows[i], ends[i])
		case i == 0:
			w.split(at, ends[i], separators(""))
		default:
			w.split(b.rows[i], ends[i], separators(""))
		}
		lead, first, at, used = nil, i+1, ends[i], above
	}
	if first < len(b.rows) {
		emit(b.body)
	}
}

// addNamedRow adds chunks for a row of a table that is too long for one, of lines "name: value". All of them have the first one, which
// mostly says what the row is about.
func (w *walk) addNamedRow(b block, start, end int) {
	before, after := w.blanks(w.text[start:end])
	if start, end = start+before, start+after; start == end {
		return
	}
	var text, key string
	n, least := 0, 0 // characters in text; bytes of it that every chunk has
	emit := func() {
		if len(text) > least {
			w.piece(Piece{Text: text, Start: start, End: end, cells: true})
		}
		text, n, least = key, utf8.RuneCountInString(key), len(key)
	}
	for i, value := range b.cells(w.text[start:end]) {
		if strings.TrimSpace(value) == "" {
			continue
		}
		label := b.name(i, w.size/4) + ": "
		room := w.size - utf8.RuneCountInString(label) - utf8.RuneCountInString(key) - 1
		for _, p := range New(room, 0, "txt").Split(value) {
			line := label + p.Text
			size := utf8.RuneCountInString(line)
			if n > 0 && n+1+size > w.size {
				emit()
			}
			if text != "" {
				line, size = "\n"+line, size+1
			}
			text, n = text+line, n+size
			if key == "" && i == 0 && n <= w.size/4 {
				key = text
			}
		}
	}
	emit()
}
