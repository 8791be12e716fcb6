package split

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"
)

// maxLines is how many lines a record may have. One with more of them is not meant: somewhere a quotation mark is only a character.
const maxLines = 200

// records cuts a text of records with separated fields, CSV or TSV, and reports whether it is one.
func (w *walk) records() bool {
	comma := separator(w.text, w.ext)
	parse := func(quoted bool) (rows, fields []int, names [][]string) {
		r := csv.NewReader(strings.NewReader(w.text))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = comma, true, -1
		for at := 0; at < len(w.text); {
			end := w.lineEnd(at, len(w.text))
			var record []string
			if quoted {
				var err error
				if record, err = r.Read(); err == io.EOF {
					break
				} else if err != nil {
					return nil, nil, nil
				}
				end = int(r.InputOffset())
				if strings.Count(w.text[at:end], "\n") > maxLines {
					return nil, nil, nil
				}
			} else {
				record = strings.Split(strings.TrimSuffix(w.text[at:end], "\n"), string(comma))
			}
			if len(names) < 100 {
				names = append(names, record)
			}
			rows, fields = append(rows, at), append(fields, len(record))
			at = end
		}
		return rows, fields, names
	}
	if w.blank(0, len(w.text)) {
		return false
	}
	rows, fields, records := parse(true)
	quoted := rows != nil
	if !quoted {
		rows, fields, records = parse(false)
	}
	w.looked += 2 * len(w.text)
	if len(rows) < 2 {
		return false
	}
	// What is above the first record with as many fields as most is a title.
	times := make(map[int]int)
	most := fields[0]
	for i := range records {
		if times[fields[i]]++; times[fields[i]] > times[most] {
			most = fields[i]
		}
	}
	top := slices.Index(fields, most)
	if top == len(rows)-1 {
		return false
	}
	before, after := w.blanks(w.text[rows[top]:])
	b := block{kind: table, start: rows[top] + before, end: rows[top] + after, rows: rows[top:]}
	b.body, b.chars = b.end, w.length(b.start, b.end)
	for len(b.rows) > 1 && b.rows[len(b.rows)-1] >= b.end { // blank lines
		b.rows = b.rows[:len(b.rows)-1]
	}
	b.rows[0] = b.start
	if named(records[top]) {
		b.head, b.names, b.rows = strings.TrimSpace(w.text[b.start:b.rows[1]]), records[top], b.rows[1:]
	}
	b.cells = func(row string) []string {
		if !quoted {
			return strings.Split(row, string(comma))
		}
		r := csv.NewReader(strings.NewReader(row))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = comma, true, -1
		cells, _ := r.Read() // it was read before
		return cells
	}
	var blocks []block
	if before, after := w.blanks(w.text[:b.start]); before < after {
		blocks = []block{{kind: prose, start: before, end: after, chars: w.length(before, after)}}
		b.before = w.length(after, b.start)
	}
	w.pack(append(blocks, b))
	return true
}

// separator returns what is between the fields.
func separator(text, ext string) rune {
	if rest, ok := strings.CutPrefix(text, "sep="); ok && rest != "" { // a mark of Excel
		return rune(rest[0])
	}
	lines := strings.FieldsFunc(text[:min(len(text), 4096)], func(r rune) bool { return r == '\n' })
	if len(lines) > 2 {
		lines = lines[:min(len(lines)-1, 10)] // whole ones
	}
	best, most := ',', 0
	if ext == "tsv" {
		best = '\t'
	}
	for _, c := range "\t;|," {
		total, least := 0, len(text)
		for _, line := range lines {
			n := strings.Count(line, string(c))
			total, least = total+n, min(least, n)
		}
		if n := total + len(text)*least; n > most && (ext != "tsv" || best != '\t' || most == 0) {
			best, most = c, n
		}
	}
	return best
}

// named reports whether a record may be the names of the columns: it has a field that is not a number.
func named(record []string) bool {
	return slices.ContainsFunc(record, func(field string) bool {
		_, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		return err != nil && strings.TrimSpace(field) != ""
	})
}

// name returns the name of a column, of so many characters at most.
func (b block) name(i, most int) string {
	if i < len(b.names) && strings.TrimSpace(b.names[i]) != "" {
		return text.OneLine(b.names[i], most)
	}
	return fmt.Sprint(i + 1)
}
