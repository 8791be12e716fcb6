package document

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// readWord reads a document of Word: its headers, its text, notes, and its footers. A header or footer is there once.
func readWord(a *archive, w *writer) error { return a.word(w, false) }

// word reads the document. One that is nested is part of another one, and has no further documents in it.
func (a *archive) word(w *writer, nested bool) error {
	main, parts := a.main("word/document.xml")
	d := &word{archive: a, nested: nested, styles: make(map[string]*wordStyle), seen: make(map[string]bool)}
	if err := d.readStyles(parts.of("styles", "word/styles.xml")); err != nil {
		return err
	}
	if err := d.readNumbering(parts.of("numbering", "word/numbering.xml")); err != nil {
		return err
	}
	body, err := d.part(main, "the text")
	if err != nil {
		return err
	}
	for _, text := range slices.Concat(d.headers, []string{body}, d.notes(parts), d.footers) {
		w.block(text)
	}
	return nil
}

// notes returns the texts of footnotes and endnotes.
func (d *word) notes(parts relations) (all []string) {
	for _, kind := range []string{"footnotes", "endnotes"} {
		if name := parts.of(kind, "word/"+kind+".xml"); d.has(name) {
			text, err := d.part(name, "the "+kind)
			if err != nil && d.first == nil {
				d.first = err
			}
			all = append(all, text)
		}
	}
	return all
}

// word is the state of reading a document of Word.
type word struct {
	*archive
	nested           bool
	styles           map[string]*wordStyle
	numbers          numbering
	seen             map[string]bool // headers and footers that were read, by their names and their texts
	headers, footers []string
}

// wordStyle is a style of paragraphs.
type wordStyle struct {
	base    string // the style that it is based on
	heading int    // 0 for none
	list    string // number of its list, "" for none
	level   int    // in the list
}

// readStyles reads the styles, whose ids differ from language to language.
func (d *word) readStyles(file string) error {
	if !d.has(file) {
		return nil
	}
	s := &wordStyle{}
	return d.noteDamage("the styles", d.walk(file, handler{start: func(name string, e element) bool {
		switch name {
		case "style":
			s = &wordStyle{}
			d.styles[e.attr("styleId")] = s
		case "name":
			style := strings.ToLower(e.attr("val"))
			if style == "title" {
				s.heading = 1
			} else if n, ok := strings.CutPrefix(style, "heading "); ok {
				s.heading, _ = strconv.Atoi(n)
			}
		case "basedOn":
			s.base = e.attr("val")
		case "outlineLvl":
			if n, err := strconv.Atoi(e.attr("val")); err == nil && n >= 0 && n < 9 && s.heading == 0 {
				s.heading = n + 1
			}
		case "numId":
			s.list = e.attr("val")
		case "ilvl":
			s.level, _ = strconv.Atoi(e.attr("val"))
		}
		return false
	}}))
}

// style returns what a style and its base styles say.
func (d *word) style(id string) (s wordStyle) {
	const most = 20 // styles
	for range most {
		one := d.styles[id]
		if one == nil {
			break
		}
		if s.heading == 0 {
			s.heading = one.heading
		}
		if s.list == "" && one.list != "" {
			s.list, s.level = one.list, one.level
		}
		id = one.base
	}
	return s
}

// wordPart is the state of reading a part of a document of Word.
type wordPart struct {
	*word
	parts relations
	outer []wordBox // boxes around the open one
	wordBox
	fields []bool // fields that are open: whether what comes is shown
	forms  []int  // what was written before the open alternatives
	wrote  int    // times that something was written

	inText, inRow, hidden, deleted bool   // inRow: in what is said of a row, deleted: the row is
	inCode                         bool   // in what a field is made of
	code                           string // of the open field
	style, list, level             string // of the open paragraph
	outline, span                  int
	initial                        bool     // the open paragraph is a large first letter of the next one
	options                        []string // of a list to choose from
	choice                         int
	titled                         bool // of the section: the first page has headers of its own, and they are shown
	firsts                         []relation
}

// wordBox is a text box, or the part itself.
type wordBox struct {
	w     *writer
	mark  mark   // of the open paragraph
	boxes string // what is put behind the open paragraph
}

// part returns the text of a part, which a phrase calls what.
func (d *word) part(name, what string) (string, error) {
	p := &wordPart{word: d, parts: d.relations(name), wordBox: wordBox{w: newWriter(d.most)}}
	err := d.noteDamage(what, d.walk(name, handler{start: p.start, end: p.end, text: func(s string) {
		if p.inText {
			p.text(s)
		} else if p.inCode && len(p.code) < maxFieldCode {
			p.code += s
		}
	}}))
	for len(p.outer) > 0 {
		p.end("txbxContent")
	}
	p.end("p")
	if p.w.tooLong() {
		err = errTooLarge
	}
	return p.w.String(), err
}

// text writes a text, unless it is hidden.
func (p *wordPart) text(s string) {
	for _, shown := range p.fields {
		if !shown {
			return
		}
	}
	if p.hidden {
		if strings.TrimSpace(s) != "" {
			p.say("hidden text")
		}
		return
	}
	p.wrote++
	p.w.text(s)
}

func (p *wordPart) start(name string, e element) (skip bool) {
	p.inText, p.inCode = false, false
	switch name {
	case "AlternateContent":
		p.forms = append(p.forms, p.wrote)
	case "Choice", "Fallback":
		n := len(p.forms)
		return n > 0 && p.wrote > p.forms[n-1] // another form of what came before
	case "del", "moveFrom":
		p.deleted = p.deleted || p.inRow
		return true
	case "rt": // how a word is pronounced
		return true
	case "p":
		p.mark, p.style, p.list, p.level, p.outline = "", "", "", "", 0
	case "pStyle":
		p.style = e.attr("val")
	case "outlineLvl":
		if n, err := strconv.Atoi(e.attr("val")); err == nil && n >= 0 && n < 9 {
			p.outline = n + 1
		}
	case "framePr":
		p.initial = e.says("dropCap")
	case "numId":
		p.list = e.attr("val")
	case "ilvl":
		p.level = e.attr("val")
	case "r":
		p.hidden = false
	case "vanish":
		p.hidden = e.on("val")
	case "t":
		p.inText = true
	case "instrText":
		p.inCode = true
	case "tab", "ptab":
		if e.attr("pos") == "" { // not where a tab leads to
			p.text(" ")
		}
	case "br", "cr":
		p.text("\n")
	case "noBreakHyphen":
		p.text("-")
	case "sym":
		p.symbol(e.attr("font"), e.attr("char"))
	case "fldChar":
		p.field(e.attr("fldCharType"))
	case "checkBox":
		p.choice = 0
	case "checked", "default", "result":
		p.choice, _ = strconv.Atoi(e.attr("val"))
		if name == "checked" && e.on("val") {
			p.choice = 1
		}
	case "listEntry":
		p.options = append(p.options, e.attr("val"))
	case "txbxContent":
		p.outer = append(p.outer, p.wordBox)
		p.wordBox = wordBox{w: newWriter(p.most)}
	case "textpath":
		p.text(e.attr("string"))
	case "tbl":
		p.w.beginTable()
	case "gridSpan":
		p.span, _ = strconv.Atoi(e.attr("val"))
	case "gridBefore":
		n, _ := strconv.Atoi(e.attr("val"))
		p.w.fillCells(n)
	default:
		return p.object(name, e)
	}
	return p.w.tooLong()
}

// object takes what is no text of the part itself.
func (p *wordPart) object(name string, e element) (skip bool) {
	switch name {
	case "trPr":
		p.inRow = true
	case "pic", "imagedata":
		p.wrote++
		p.count(1, "picture", " without text")
		return true
	case "object":
		p.wrote++
		p.count(1, "embedded object", "")
		return true
	case "commentReference":
		p.count(1, "comment", "")
	case "chart", "relIds":
		p.wrote++
		p.behind(p.graphic(name, e, p.parts))
	case "altChunk", "subDoc":
		if r, ok := e.relationOf(p.parts, "id"); ok {
			p.behind(p.chunk(r.target))
			p.end("p")
		} else {
			p.count(1, "embedded document", "")
		}
	case "headerReference", "footerReference":
		if r, ok := e.relationOf(p.parts, "id"); ok && e.attr("type") == "first" {
			p.firsts = append(p.firsts, r)
		} else if ok {
			p.header(r)
		}
	case "titlePg":
		p.titled = e.on("val")
	}
	return p.w.tooLong()
}

func (p *wordPart) end(name string) {
	p.inText, p.inCode = false, false
	switch name {
	case "AlternateContent":
		p.forms = p.forms[:max(0, len(p.forms)-1)]
	case "trPr":
		p.inRow = false
	case "pPr":
		p.number()
	case "p":
		for i := range p.fields {
			p.fields[i] = true // what is never ended does not hide the rest
		}
		if p.initial {
			p.initial = false
			return
		}
		p.w.paragraph(p.mark)
		p.mark = ""
		p.w.block(p.boxes)
		p.boxes = ""
	case "checkBox":
		p.wrote++
		p.w.text([]string{"☐ ", "☒ "}[min(max(p.choice, 0), 1)])
	case "ddList":
		if p.choice >= 0 && p.choice < len(p.options) {
			p.w.text(p.options[p.choice])
		}
		p.options, p.choice = nil, 0
	case "txbxContent":
		n := len(p.outer) - 1
		if n < 0 {
			return
		}
		box := p.w.String()
		p.wordBox, p.outer = p.outer[n], p.outer[:n]
		p.behind(box)
	case "tc":
		p.w.cell()
		if p.span > 1 && p.w.tables == 1 {
			p.w.fillCells(len(p.w.cells) + p.span - 1)
		}
		p.span = 0
	case "tr":
		if p.deleted && p.w.tables == 1 {
			p.w.cells = nil
		}
		p.deleted = false
		p.w.row()
	case "sectPr":
		for _, r := range p.firsts {
			if p.titled {
				p.header(r)
			}
		}
		p.firsts, p.titled = nil, false
	default:
		p.w.endOfTable(name)
	}
}

// behind puts Markdown behind the open paragraph.
func (p *wordPart) behind(markdown string) {
	p.boxes = strings.TrimSpace(p.boxes + "\n\n" + strings.TrimSpace(markdown))
}

// number gives the open paragraph its mark: of a heading, an item, or the number that Word shows.
func (p *wordPart) number() {
	style := p.word.style(p.style)
	list, level := p.list, style.level
	if list == "" {
		list = style.list
	}
	if n, err := strconv.Atoi(p.level); err == nil {
		level = n
	} else if n, ok := p.numbers.levelOf(list, p.style); ok {
		level = n
	}
	heading := p.outline
	if heading == 0 {
		heading = style.heading
	}
	label, bullet := p.numbers.next(list, level)
	if heading > 0 {
		p.mark = headingMark(heading)
	}
	switch {
	case label == "" && bullet && heading == 0:
		p.mark = itemMark
	case label == "":
	case p.w.tables > 0:
		p.w.text(label + " ")
	default:
		p.mark += mark(label + " ")
	}
}

// field takes note of the beginning, the middle or the end of a field. What it is made of is shown only of a button, which has no result:
// MACROBUTTON MACRO TEXT, GOTOBUTTON PLACE TEXT.
func (p *wordPart) field(kind string) {
	switch n := len(p.fields) - 1; {
	case kind == "begin":
		p.fields, p.code = append(p.fields, false), ""
	case kind == "separate" && n >= 0:
		p.fields[n] = true
	case kind == "end" && n >= 0:
		button := !p.fields[n]
		p.fields = p.fields[:n]
		code := strings.TrimSpace(p.code)
		if first, rest, _ := strings.Cut(code, " "); button && (first == "MACROBUTTON" || first == "GOTOBUTTON") {
			_, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
			p.text(text)
		}
		p.code = ""
	}
}

// maxFieldCode bounds what is kept of what a field is made of, in bytes.
const maxFieldCode = 64 << 10

// symbol writes a character of a font that has signs in place of letters.
func (p *wordPart) symbol(font, code string) {
	n, err := strconv.ParseUint(code, 16, 16)
	if s := symbol(font, rune(n)); err == nil && s != "" {
		p.text(s)
	} else {
		p.count(1, "symbol", "")
	}
}

// header reads a header or a footer, unless there was one with the same text.
func (p *wordPart) header(r relation) {
	kind := strings.TrimSuffix(r.kind, "er") + "er"
	if p.seen[r.target] || !p.has(r.target) {
		return
	}
	p.seen[r.target] = true
	text, err := p.part(r.target, "a "+kind)
	if err != nil || p.seen["="+text] || !strings.ContainsFunc(text, unicode.IsLetter) {
		return
	}
	p.seen["="+text] = true
	if kind == "header" {
		p.headers = append(p.headers, text)
	} else {
		p.footers = append(p.footers, text)
	}
}

// chunk returns the text of a document within the document.
func (p *wordPart) chunk(name string) (text string) {
	data, err := p.readAll(name)
	var more []string
	switch kind := kindOf(name, data); {
	case err != nil || p.nested || kind == "":
		p.count(1, "embedded document", "")
		return ""
	case kind == "docx":
		var inner *archive
		if inner, err = openArchive(p.ctx, data); err == nil {
			inner.left = min(inner.left, p.left)
			before := inner.left
			text, more, err = inner.markdown(func(a *archive, w *writer) error { return a.word(w, true) })
			p.left -= before - inner.left
		}
	case kind == "rtf":
		text, more, err = readRTF(p.ctx, data)
	case kind == "txt":
		text, _ = DecodePage(data, "")
	default:
		if kind == "mht" {
			data, err = unpackPage(data)
		}
		text, _ = pageText(data)
	}
	if err != nil {
		p.count(1, "embedded document", "")
	}
	for _, phrase := range more {
		p.say(phrase + " of an embedded document")
	}
	p.wrote++
	return text
}

// kindOf returns the type of a document within a document, "" if it is not known.
func kindOf(name string, data []byte) string {
	if kind := Sniff(data); kind != "" {
		return kind
	}
	switch ext := strings.ToLower(strings.TrimPrefix(path.Ext(name), ".")); ext {
	case "htm", "xhtml":
		return "html"
	case "mhtml":
		return "mht"
	case "html", "mht", "txt":
		return ext
	}
	return ""
}

// unpackPage returns the page of a web archive, which is a mail with the page and what belongs to it.
func unpackPage(data []byte) ([]byte, error) {
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	body, encoding := m.Body, m.Header.Get("Content-Transfer-Encoding")
	if strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(m.Body, params["boundary"])
		for kind = ""; kind != "text/html"; {
			p, err := parts.NextRawPart()
			if err != nil {
				return nil, err
			}
			kind, _, _ = mime.ParseMediaType(p.Header.Get("Content-Type"))
			body, encoding = p, p.Header.Get("Content-Transfer-Encoding")
		}
	}
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	return io.ReadAll(body)
}
