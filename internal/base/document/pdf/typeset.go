package pdf

import (
	"bytes"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matrix is a transformation [a b c d e f] of ISO 32000.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the transformation that does m, then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func shift(x, y float64) matrix { return matrix{1, 0, 0, 1, x, y} }

// state is the part of the graphics state that text depends on.
type state struct {
	matrix  matrix
	font    *font
	size    float64
	charGap float64
	wordGap float64
	scale   float64
	leading float64
	rise    float64
}

// typesetter runs the program of a page and puts its glyphs into lines.
type typesetter struct {
	*file
	fonts   map[ref]*font
	running map[*stream]bool // forms
	state
	saved      []state
	text, line matrix

	marks    []*replacement // the parts of marked content that are open; nil for one without a text of its own
	pictures int            // that were put on the page

	row   row
	out   bytes.Buffer
	begun bool       // there was a glyph
	end   [2]float64 // where the last glyph ended
	dir   [2]float64 // in which direction text ran there
	em    float64    // how large it was
}

// replacement is the text that a part of a page has instead of its glyphs: an ActualText.
type replacement struct {
	text string
	used bool
}

const (
	maxForms    = 12      // in each other
	maxSaved    = 256     // graphics states
	maxOperands = 1 << 16 // of an operator
)

// run runs a program with its resources.
func (t *typesetter) run(program []byte, resources dict, m matrix, depth int) error {
	outer, saved := t.state, t.saved
	t.state, t.saved = state{matrix: m, scale: 1, font: outer.font, size: outer.size}, nil
	defer func() { t.state, t.saved = outer, saved }()
	l := &lexer{data: program}
	var operands []any
	for n := 0; ; n++ {
		if n%1024 == 0 {
			if err := t.ctx.Err(); err != nil {
				return err
			}
			if t.out.Len() > maxText {
				return errTooLong
			}
		}
		obj, ok := l.next(0)
		if !ok {
			return nil
		}
		if err := t.step(1); err != nil {
			return err
		}
		op, isOp := obj.(operator)
		if !isOp {
			if operands = append(operands, obj); len(operands) > maxOperands {
				operands = operands[:0]
			}
			continue
		}
		switch op {
		case "ID":
			t.pictures++
			l.skipImage()
		case "BMC", "BDC":
			t.mark(op, operands, resources)
		case "Do":
			if err := t.form(operands, resources, depth); err != nil {
				return err
			}
		case "Tf":
			t.setFont(operands, resources)
		default:
			t.do(op, operands)
		}
		operands = operands[:0]
	}
}

// skipImage skips the data of a picture within a program.
func (l *lexer) skipImage() {
	for l.pos < len(l.data) {
		i := bytes.Index(l.data[l.pos:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.data)
			return
		}
		at := l.pos + i
		l.pos = at + 2
		if at > 0 && isSpace(l.data[at-1]) && (l.pos == len(l.data) || isSpace(l.data[l.pos])) {
			return
		}
	}
}

// form runs a part of a page that is an object of its own.
func (t *typesetter) form(operands []any, resources dict, depth int) error {
	if len(operands) == 0 || depth >= maxForms {
		return nil
	}
	id, _ := operands[len(operands)-1].(name)
	s, ok := t.resolve(t.file.dict(resources["XObject"])[id]).(*stream)
	if ok && t.name(s.dict["Subtype"]) == "Image" {
		t.pictures++
	}
	if !ok || t.name(s.dict["Subtype"]) != "Form" {
		return nil
	}
	return t.runForm(s, resources, t.matrix, depth+1)
}

func (t *typesetter) runForm(s *stream, resources dict, m matrix, depth int) error {
	if t.running[s] {
		return nil // it is a part of itself
	}
	t.running[s] = true
	defer delete(t.running, s)
	if err := t.step(formSteps); err != nil {
		return err
	}
	program, err := t.read(s)
	if err != nil {
		return err
	}
	if list := t.array(s.dict["Matrix"]); len(list) == 6 {
		var own matrix
		for i := range own {
			own[i] = t.numberOr(list[i], 0)
		}
		m = own.mul(m)
	}
	if own := t.file.dict(s.dict["Resources"]); own != nil {
		resources = own
	}
	return t.run(program, resources, m, depth)
}

func (t *typesetter) setFont(operands []any, resources dict) {
	if len(operands) < 2 {
		return
	}
	id, _ := operands[len(operands)-2].(name)
	t.size, _ = operands[len(operands)-1].(float64)
	entry := t.file.dict(resources["Font"])[id]
	r, isRef := entry.(ref)
	if isRef && t.fonts[r] != nil {
		t.state.font = t.fonts[r]
		return
	}
	t.state.font = nil
	if d := t.file.dict(entry); d != nil {
		t.state.font = t.file.font(d)
		if isRef {
			t.fonts[r] = t.state.font
		}
	}
}

// numbers returns the last n operands; ok is false if there are fewer, or others.
func numbers(operands []any, n int) (list [6]float64, ok bool) {
	if len(operands) < n {
		return list, false
	}
	for i, o := range operands[len(operands)-n:] {
		if list[i], ok = o.(float64); !ok {
			return list, false
		}
	}
	return list, true
}

// do runs an operator (ISO 32000-1, annex A). One with wrong operands does nothing.
func (t *typesetter) do(op operator, operands []any) {
	switch op {
	case "q":
		if len(t.saved) < maxSaved {
			t.saved = append(t.saved, t.state)
		}
	case "Q":
		if n := len(t.saved) - 1; n >= 0 {
			t.state, t.saved = t.saved[n], t.saved[:n]
		}
	case "cm":
		if m, ok := numbers(operands, 6); ok {
			t.matrix = matrix(m).mul(t.matrix)
		}
	case "BT":
		t.text, t.line = identity, identity
	case "Tc", "Tw", "Tz", "TL", "Ts":
		if v, ok := numbers(operands, 1); ok {
			t.set(op, v[0])
		}
	case "Tm":
		if m, ok := numbers(operands, 6); ok {
			t.text, t.line = m, m
		}
	case "Td", "TD":
		if to, ok := numbers(operands, 2); ok {
			if op == "TD" {
				t.leading = -to[1]
			}
			t.nextLine(to[0], to[1])
		}
	case "T*":
		t.nextLine(0, -t.leading)
	case "Tj", "TJ", "'", `"`:
		t.showText(op, operands)
	case "EMC":
		t.endMark()
	}
}

// mark begins a part of marked content.
func (t *typesetter) mark(op operator, operands []any, resources dict) {
	var r *replacement
	if op == "BDC" && len(operands) > 0 {
		properties := operands[len(operands)-1]
		if id, ok := properties.(name); ok {
			properties = t.file.dict(resources["Properties"])[id]
		}
		if text, ok := t.resolve(t.file.dict(properties)["ActualText"]).(string); ok {
			r = &replacement{text: textString(text)}
		}
	}
	if len(t.marks) < maxSaved {
		t.marks = append(t.marks, r)
	}
}

// endMark ends the last part of marked content. A text that no glyph was there for follows the last glyph.
func (t *typesetter) endMark() {
	n := len(t.marks) - 1
	if n < 0 {
		return
	}
	if r := t.replacement(); r != nil && r == t.marks[n] && !r.used && len(t.row) > 0 {
		last := t.row[len(t.row)-1]
		t.row = append(t.row, placed{text: r.text, from: last.to, to: last.to, em: last.em, exact: true})
	}
	t.marks = t.marks[:n]
}

// replacement returns the text that the glyphs to come have instead of their own; nil for none.
func (t *typesetter) replacement() *replacement {
	for _, r := range t.marks {
		if r != nil {
			return r
		}
	}
	return nil
}

// set runs an operator that sets a number of the text.
func (t *typesetter) set(op operator, v float64) {
	switch op {
	case "Tc":
		t.charGap = v
	case "Tw":
		t.wordGap = v
	case "Tz":
		t.scale = v / 100
	case "TL":
		t.leading = v
	case "Ts":
		t.rise = v
	}
}

// showText runs an operator that shows text, perhaps on the next line.
func (t *typesetter) showText(op operator, operands []any) {
	switch op {
	case "TJ":
		if len(operands) > 0 {
			operands, _ = operands[len(operands)-1].(array)
		}
	case `"`:
		if gaps, ok := numbers(operands[:max(0, len(operands)-1)], 2); ok {
			t.wordGap, t.charGap = gaps[0], gaps[1]
		}
		fallthrough
	case "'":
		t.nextLine(0, -t.leading)
	}
	t.show(operands)
}

func (t *typesetter) nextLine(x, y float64) {
	t.line = shift(x, y).mul(t.line)
	t.text = t.line
}

// show shows strings, with numbers between them that move what follows to the left.
func (t *typesetter) show(list []any) {
	for _, item := range list {
		switch x := item.(type) {
		case float64:
			t.text = shift(-x/1000*t.size*t.scale, 0).mul(t.text)
		case string:
			if t.state.font == nil {
				continue
			}
			for _, g := range t.state.font.glyphs(x) {
				t.glyph(g)
				advance := g.width*t.size + t.charGap
				if g.space {
					advance += t.wordGap
				}
				t.text = shift(advance*t.scale, 0).mul(t.text)
			}
		}
	}
}

// Distances in parts of the size of the text.
const (
	lineDistance      = 0.5 // between two lines
	paragraphDistance = 1.75
	backDistance      = 0.6 // to the left, for glyphs that are not accents
)

// glyph puts a glyph into its line.
func (t *typesetter) glyph(g glyph) {
	t.steps--
	m := matrix{t.size * t.scale, 0, 0, t.size, 0, t.rise}.mul(t.text).mul(t.matrix)
	length, em := math.Hypot(m[0], m[1]), math.Hypot(m[2], m[3])
	if length == 0 || em == 0 || math.IsNaN(length+em+m[4]+m[5]) || math.IsInf(length+em+m[4]+m[5], 0) {
		return
	}
	dir := [2]float64{m[0] / length, m[1] / length}
	p := placed{text: g.text, from: m[4]*dir[0] + m[5]*dir[1], em: em}
	p.to = p.from + g.width*length
	end := [2]float64{m[4] + dir[0]*g.width*length, m[5] + dir[1]*g.width*length}
	if r := t.replacement(); r != nil {
		if r.used {
			if n := len(t.row) - 1; n >= 0 {
				t.row[n].from, t.row[n].to = min(t.row[n].from, p.from), max(t.row[n].to, p.to)
			}
			t.begun, t.end, t.dir, t.em = true, end, dir, em
			return
		}
		p.text, p.exact, r.used = r.text, true, true
	}
	if p.text == "" {
		return
	}
	blank := strings.TrimSpace(p.text) == ""
	if t.begun {
		dx, dy := m[4]-t.end[0], m[5]-t.end[1]
		along := (dx*dir[0] + dy*dir[1]) / em // to the right of the last glyph
		below := math.Abs(dx*dir[1]-dy*dir[0]) / max(em, t.em)
		turned := dir[0]*t.dir[0]+dir[1]*t.dir[1] < 0.9
		switch {
		case blank && !turned && below <= lineDistance:
		case blank:
			return
		case !turned && below < paragraphDistance/2 && t.row.compose(p):
			return
		case below > paragraphDistance || turned:
			t.breakLine("\n\n")
		case below > lineDistance || along < -backDistance && below > 0.2 && markOf(p.text) == "":
			t.breakLine("\n")
		}
	} else if blank {
		return
	}
	if t.row = append(t.row, p); blank {
		return
	}
	t.begun, t.end, t.dir, t.em = true, end, dir, em
}

// breakLine ends the line.
func (t *typesetter) breakLine(with string) {
	line := t.row.text(&t.rightward)
	t.row = t.row[:0]
	if line == "" {
		return
	}
	t.join(line)
	t.out.WriteString(line)
	t.out.WriteString(with)
}

// join joins a word that was divided at the end of a line, if text continues in lower case.
func (t *typesetter) join(text string) {
	s := bytes.TrimRight(t.out.Bytes(), "\n")
	s, divided := bytes.CutSuffix(s, []byte("-"))
	if !divided || t.out.Len() != len(s)+2 {
		return
	}
	before, _ := utf8.DecodeLastRune(s)
	after, _ := utf8.DecodeRuneInString(text)
	if unicode.IsLetter(before) && unicode.IsLower(after) {
		t.out.Truncate(len(s))
	}
}
