package document

import (
	"fmt"
	"strconv"
	"strings"
)

// readSlides reads a presentation of PowerPoint, with the notes of the speaker.
func readSlides(a *archive, w *writer) error {
	main, parts := a.main("ppt/presentation.xml")
	var slides []string
	err := a.walk(main, handler{start: func(name string, e element) bool {
		if name == "sldId" {
			if r, ok := e.relationOf(parts, "id"); ok {
				slides = append(slides, r.target)
			}
		}
		return false
	}})
	if err = a.noteDamage("the list of slides", err); err != nil {
		return err
	}
	s := &presentation{archive: a, seen: make(map[string]bool)}
	for i, slide := range slides {
		if err := s.slide(w, i+1, slide); err != nil {
			return err
		}
		if w.tooLong() {
			return errTooLarge
		}
	}
	return nil
}

// presentation is the state of reading one.
type presentation struct {
	*archive
	seen map[string]bool // layouts that were read, and footers by their texts
}

// slide writes a slide: its title, its text, what its layout shows, and the notes.
func (s *presentation) slide(w *writer, n int, name string) error {
	what := fmt.Sprintf("slide %d", n)
	if !s.has(name) {
		s.say(what + " (missing)")
		return nil
	}
	body := newWriter(s.most)
	v := &shapes{presentation: s, w: body, parts: s.relations(name)}
	if err := s.noteDamage(what, s.walk(name, v.handler())); err != nil {
		return err
	}
	if v.unseen {
		s.say(what + ", which is hidden")
		return nil
	}
	for _, r := range v.parts.all {
		if r.kind == "notesSlide" && s.has(r.target) {
			notes := &shapes{presentation: s, w: body, parts: s.relations(r.target), isNotes: true}
			if err := s.noteDamage("the notes of "+what, s.walk(r.target, notes.handler())); err != nil {
				return err
			}
		}
		if r.kind == "comments" {
			s.say("comments")
		}
	}
	if err := s.layout(body, v.parts); err != nil {
		return err
	}
	w.text(slideHeading(n, strings.Join(v.titles, " ")))
	w.paragraph(headingMark(2))
	w.block(body.String())
	return nil
}

// layout writes what a layout and its master show on slides, once.
func (s *presentation) layout(w *writer, parts relations) error {
	for _, kind := range []string{"slideLayout", "slideMaster"} {
		name := parts.of(kind, "")
		if name == "" || s.seen[name] || !s.has(name) {
			return nil
		}
		s.seen[name] = true
		parts = s.relations(name)
		v := &shapes{presentation: s, w: w, parts: parts, isLayout: true}
		if err := s.noteDamage("a layout", s.walk(name, v.handler())); err != nil {
			return err
		}
	}
	return nil
}

// shapes is the state of reading the shapes of a slide.
type shapes struct {
	*presentation
	w                 *writer
	parts             relations
	isNotes, isLayout bool

	inText, unseen bool
	placed         bool   // the shape is a placeholder
	kind           string // of the placeholder
	titles         []string
	forms          []int
	wrote          int

	level  int         // of the paragraph
	number *autoNumber // nil if PowerPoint does not number the paragraph
	counts [maxLevels]autoNumber
}

// autoNumber is how PowerPoint numbers the paragraphs of a level.
type autoNumber struct {
	scheme   string // as "arabicPeriod"; empty for none
	start, n int    // of the first paragraph, and of the last one
}

// label returns the number of the paragraph that ends, as "1." or "(a)", or "".
func (v *shapes) label() string {
	at := v.counts[v.level]
	clear(v.counts[v.level:])
	if v.number == nil {
		return ""
	}
	next := *v.number
	if next.n = next.start; at.scheme == next.scheme && at.start == next.start {
		next.n = at.n + 1
	}
	v.counts[v.level] = next
	for suffix, form := range map[string]string{"Period": "%s.", "ParenR": "%s)", "ParenBoth": "(%s)", "Plain": "%s"} {
		digits, ok := strings.CutSuffix(next.scheme, suffix)
		if format := map[string]string{"arabic": "decimal", "alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}[digits]; ok && format != "" {
			return fmt.Sprintf(form, numeral(format, next.n))
		}
	}
	return numeral("decimal", next.n) + "."
}

func (v *shapes) handler() handler {
	return handler{start: v.start, end: v.end, text: func(s string) {
		if v.inText {
			v.wrote++
			v.w.text(s)
		}
	}}
}

func (v *shapes) start(name string, e element) (skip bool) {
	v.inText = name == "t"
	switch name {
	case "sld":
		if v.unseen = e.attr("show") != "" && !e.on("show"); v.unseen {
			return true
		}
	case "AlternateContent":
		v.forms = append(v.forms, v.wrote)
	case "Choice", "Fallback":
		n := len(v.forms)
		return n > 0 && v.wrote > v.forms[n-1]
	case "sp":
		v.kind, v.placed = "", false
	case "cNvPr":
		if e.says("hidden") {
			v.kind = "hidden"
		}
	case "ph":
		v.kind, v.placed = e.attr("type"), true
	case "pPr":
		v.level, _ = strconv.Atoi(e.attr("lvl"))
		v.level = min(max(v.level, 0), maxLevels-1)
	case "buAutoNum":
		start, err := strconv.Atoi(e.attr("startAt"))
		if err != nil {
			start = 1
		}
		v.number = &autoNumber{scheme: e.attr("type"), start: start}
	case "txBody":
		clear(v.counts[:])
		return v.kind == "hidden" || v.kind == "sldNum" || v.kind == "dt" || v.kind == "hdr" || v.kind == "sldImg" ||
			v.kind == "ftr" && v.isNotes || v.isLayout && v.placed
	case "br":
		v.w.text("\n")
	case "tbl":
		v.w.beginTable()
	case "pic":
		if v.wrote++; !v.isLayout {
			v.count(1, "picture", " without text")
		}
		return true
	case "oleObj":
		v.wrote++
		v.count(1, "embedded object", "")
		return true
	case "chart", "relIds":
		v.wrote++
		v.w.block(v.graphic(name, e, v.parts))
	}
	return v.w.tooLong()
}

func (v *shapes) end(name string) {
	v.inText = false
	switch name {
	case "AlternateContent":
		v.forms = v.forms[:max(0, len(v.forms)-1)]
	case "sp":
		v.kind, v.placed = "", false
	case "p":
		text := v.w.para.String()
		label := ""
		if strings.TrimSpace(text) != "" {
			label = v.label()
		}
		v.level, v.number = 0, nil
		switch {
		case v.kind == "title" || v.kind == "ctrTitle":
			v.titles = append(v.titles, text)
			v.w.para.Reset()
		case v.kind == "ftr" && v.seen["="+text]:
			v.w.para.Reset()
		case v.kind == "ftr":
			v.seen["="+text] = true
		}
		if label != "" {
			label += " "
		}
		v.w.paragraph(mark(label))
	default:
		v.w.endOfTable(name)
	}
}
