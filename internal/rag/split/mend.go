package split

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pathLimit is the length in bytes of the titles up to which they may be outside of a chunk's text.
const pathLimit = 4 * titleLimit

// mend joins chunks of Markdown that say nothing alone with those beside them: a heading with what is
// below it, the line that closes a block of code with the block.
//
// A heading for which the chunk below it has no room is the Heading of that chunk instead. A line that
// the chunk above has no room for is left out.
func (w *walk) mend() {
	w.closeCode()
	w.joinHeadings()
}

// closeCode moves the lines that close code from the beginning of chunks to the end of those before.
func (w *walk) closeCode() {
	fences := w.outline.fences
	list := w.pieces[:0]
	for _, p := range w.pieces {
		for len(fences) > 0 && fences[0][1] <= p.Start {
			fences = fences[1:]
		}
		if len(fences) == 0 || fences[0][0] > p.Start || !w.blank(fences[0][0], p.Start) {
			list = append(list, p)
			continue
		}
		mark := strings.TrimSpace(w.text[fences[0][0]:fences[0][1]])
		rest, ok := strings.CutPrefix(p.Text, mark)
		if !ok {
			list = append(list, p) // the line itself was too long
			continue
		}
		end := p.Start + len(mark)
		if n := len(list); n > 0 && list[n-1].End < end && list[n-1].End <= p.Start {
			last := &list[n-1]
			between := w.text[last.End:end]
			if utf8.RuneCountInString(last.Text)+utf8.RuneCountInString(between) <= w.size {
				last.Text += between
				last.LastLine += strings.Count(between, "\n")
				last.End = end
			}
		}
		if rest = strings.TrimLeftFunc(rest, unicode.IsSpace); rest == "" {
			continue
		}
		start := end + len(w.text[end:]) - len(strings.TrimLeftFunc(w.text[end:], unicode.IsSpace))
		p.Line += strings.Count(w.text[p.Start:start], "\n")
		p.Text, p.Start = rest, start
		list = append(list, p)
	}
	w.pieces = list
}

// joinHeadings joins chunks that are headings and nothing else with those that follow them.
func (w *walk) joinHeadings() {
	all := w.outline.headings
	var above *Piece // headings only
	var path string  // their titles
	list := w.pieces[:0]
	for i := range w.pieces {
		p := w.pieces[i]
		if above != nil && !w.join(*above, path, &p, all) {
			list = append(list, *above)
		}
		above = nil
		for len(all) > 0 && all[0].end <= p.Start {
			all = all[1:]
		}
		titles, only := w.onlyHeadings(p, all)
		if only {
			if above, path = &p, strings.Join(titles, " > "); p.Heading != "" && !w.markdown {
				path = p.Heading + " > " + path
			}
			continue
		}
		list = append(list, p)
	}
	if above != nil {
		list = append(list, *above)
	}
	w.pieces = slices.Clip(list)
}

// blank reports whether nothing is in text[start:end], which is empty if start is not below end.
func (w *walk) blank(start, end int) bool {
	return start >= end || strings.TrimSpace(w.text[start:end]) == ""
}

// onlyHeadings returns the titles of the headings in p, and whether p has nothing else. Those of all
// from the first one in p on are looked at.
func (w *walk) onlyHeadings(p Piece, all []heading) (titles []string, only bool) {
	at := p.Start
	for _, h := range all {
		if h.end <= at {
			continue
		}
		if h.start >= p.End || !w.blank(at, h.start) || !w.blank(h.start, at) || !w.blank(p.End, h.end) {
			break
		}
		titles, at = append(titles, h.title), h.end
		if at >= p.End {
			return titles, true
		}
	}
	return nil, false
}

// join puts headings in front of p, or makes their path the heading of p. It reports whether nothing of
// them is lost.
func (w *walk) join(above Piece, path string, p *Piece, all []heading) bool {
	if p.Start < above.End {
		if p.Start != above.Start || p.End < above.End {
			return false
		}
		p.Heading = cmp.Or(p.Heading, above.Heading)
		return true // p begins with them: its overlap
	}
	between := w.text[above.End:p.Start]
	switch {
	case strings.TrimSpace(between) != "":
		return false
	case utf8.RuneCountInString(above.Text)+utf8.RuneCountInString(between)+utf8.RuneCountInString(p.Text) <= w.size:
		p.Text = above.Text + between + p.Text
		p.Start, p.Line, p.Heading = above.Start, above.Line, cmp.Or(p.Heading, above.Heading)
		return true
	case len(path) > pathLimit:
		return false
	case w.markdown:
		_, only := w.onlyHeadings(*p, all)
		return !only && strings.Contains(p.Heading, path)
	}
	p.Heading = path
	return true
}
