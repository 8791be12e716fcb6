package pdf

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// glyph is a character as a font shows it.
type glyph struct {
	text  string
	width float64 // for a font of size 1
	space bool    // it is the single-byte code 32, which word spacing makes wider
}

// font turns the strings of a page into glyphs.
type font struct {
	composite bool     // codes have two bytes
	unicode   *mapping // nil if the font does not say what its codes mean
	utf16     bool     // codes are UTF-16
	cids      []uint16 // characters of the codes, if these are CIDs of a collection
	legacy    *encoding.Decoder
	names     [256]string // text of the codes of a simple font
	widths    map[int]float64
	missing   float64 // width of other codes
}

// font reads a font.
func (f *file) font(d dict) *font {
	t := &font{composite: f.name(d["Subtype"]) == "Type0", widths: make(map[int]float64)}
	if s, ok := f.resolve(d["ToUnicode"]).(*stream); ok {
		t.unicode = f.mapping(s)
	}
	if t.composite {
		f.compositeFont(t, d)
		return t
	}
	f.simpleEncoding(t, d)
	scale := 0.001
	if m := f.array(d["FontMatrix"]); len(m) > 0 && f.name(d["Subtype"]) == "Type3" {
		scale = f.numberOr(m[0], scale)
	}
	descriptor := f.dict(d["FontDescriptor"])
	t.missing = f.numberOr(descriptor["MissingWidth"], 0) * scale
	first := int(f.numberOr(d["FirstChar"], 0))
	widths := f.array(d["Widths"])
	for i, w := range widths[:min(len(widths), 256)] {
		t.widths[first+i] = f.numberOr(w, 0) * scale
	}
	if widths == nil { // one of the fonts that every reader has
		width := usualWidths(string(f.name(d["BaseFont"])))
		for code, text := range t.names {
			t.widths[code] = width(text)
		}
	}
	return t
}

func (f *file) compositeFont(t *font, d dict) {
	t.missing = 1
	cmap := string(f.name(d["Encoding"]))
	t.utf16 = t.unicode == nil && (strings.Contains(cmap, "UCS2") || strings.Contains(cmap, "UTF16"))
	descendants := f.array(d["DescendantFonts"])
	if len(descendants) == 0 {
		return
	}
	cid := f.dict(descendants[0])
	if t.unicode == nil && strings.HasPrefix(cmap, "Identity") {
		ordering, _ := f.resolve(f.dict(cid["CIDSystemInfo"])["Ordering"]).(string)
		t.cids = collection(ordering)
	} else if t.unicode == nil && !t.utf16 {
		t.legacy = legacy(cmap)
	}
	t.missing = f.numberOr(cid["DW"], 1000) / 1000
	w := f.array(cid["W"])
	for i := 0; i+1 < len(w) && len(t.widths) < 1<<16; {
		first := int(f.numberOr(w[i], 0))
		if list := f.array(w[i+1]); list != nil {
			for j, width := range list {
				t.widths[first+j] = f.numberOr(width, 1000) / 1000
			}
			i += 2
			continue
		}
		if i+2 >= len(w) {
			return
		}
		last, width := int(f.numberOr(w[i+1], 0)), f.numberOr(w[i+2], 1000)/1000
		for code := max(first, 0); code <= min(last, 0xffff); code++ {
			t.widths[code] = width
		}
		i += 3
	}
}

// simpleEncoding finds the texts of the codes of a font with one byte for each.
func (f *file) simpleEncoding(t *font, d dict) {
	encoding := f.resolve(d["Encoding"])
	base, _ := encoding.(name)
	differences, _ := encoding.(dict)
	if differences != nil {
		base = f.name(differences["BaseEncoding"])
	}
	for code := range 256 {
		switch base {
		case "MacRomanEncoding":
			t.names[code] = string(charmap.Macintosh.DecodeByte(byte(code)))
		case "WinAnsiEncoding":
			t.names[code] = string(charmap.Windows1252.DecodeByte(byte(code)))
		default:
			t.names[code] = standardText(byte(code))
		}
	}
	if base == "" {
		f.builtinEncoding(t, f.dict(d["FontDescriptor"]))
	}
	code, drawn := 0, f.name(d["Subtype"]) == "Type3"
	for _, item := range f.array(differences["Differences"]) {
		switch x := f.resolve(item).(type) {
		case float64:
			code = int(x)
		case name:
			if code >= 0 && code < 256 {
				t.names[code] = nameText(string(x))
				if drawn && t.names[code] == "" && strings.TrimLeft(string(x), "abcdefgABCDEFG") == strconv.Itoa(code) {
					t.names[code] = string(charmap.Windows1252.DecodeByte(byte(code))) // a49, for which code 49 is the only hint
				}
			}
			code++
		}
	}
}

// builtinEncoding reads the encoding in the program of a Type 1 font: lines like "dup 12 /fi put".
func (f *file) builtinEncoding(t *font, descriptor dict) {
	s, ok := f.resolve(descriptor["FontFile"]).(*stream)
	if !ok {
		return
	}
	program, err := f.read(s)
	if err != nil {
		return
	}
	program, _, _ = bytes.Cut(program, []byte("eexec"))
	_, program, ok = bytes.Cut(program, []byte("/Encoding"))
	if !ok || bytes.HasPrefix(bytes.TrimSpace(program), []byte("StandardEncoding")) {
		return
	}
	words := bytes.Fields(bytes.ReplaceAll(program[:min(len(program), 1<<16)], []byte("/"), []byte(" /")))
	for i := 0; i+3 < len(words); i++ {
		if string(words[i]) == "dup" && string(words[i+3]) == "put" {
			if code, err := strconv.ParseUint(string(words[i+1]), 10, 8); err == nil {
				t.names[code] = nameText(strings.TrimPrefix(string(words[i+2]), "/"))
			}
		}
	}
}

// glyphs returns the glyphs of a string.
func (t *font) glyphs(s string) []glyph {
	if t.legacy != nil {
		return t.legacyGlyphs(s)
	}
	size := 1
	if t.composite {
		size = 2
		if t.unicode != nil && t.unicode.size > 0 {
			size = t.unicode.size
		}
	}
	out := make([]glyph, 0, len(s)/size)
	for len(s) > 0 {
		n := min(size, len(s))
		code := codeOf(s[:n])
		g := glyph{width: t.missing, space: n == 1 && code == ' '}
		if w, ok := t.widths[code]; ok {
			g.width = w
		}
		switch text, ok := t.unicode.text(code); {
		case ok && (text == "" || strings.Trim(text, "\x00\uFFFD") != ""): // some programs write these for ligatures
			g.text = strings.ReplaceAll(text, "\x00", "")
		case t.utf16:
			g.text = string(rune(code))
		case code < len(t.cids) && t.cids[code] != 0:
			g.text = string(rune(t.cids[code]))
		case !t.composite:
			g.text = t.names[code&0xff]
		}
		out = append(out, g)
		s = s[n:]
	}
	return out
}

// mapping says what the codes of a font mean.
type mapping struct {
	chars  map[int]string
	ranges []codeRange // by their low ends
	size   int         // bytes of a code; 0 if it is not known
}

type codeRange struct {
	low, high int
	first     []rune   // of low; the last one grows
	each      []string // or one for each code
}

// maxMappings bounds the entries of a mapping.
const maxMappings = 1 << 17

// text returns what a code means.
func (m *mapping) text(code int) (string, bool) {
	if m == nil {
		return "", false
	}
	if text, ok := m.chars[code]; ok {
		return text, true
	}
	at, found := slices.BinarySearchFunc(m.ranges, code, func(r codeRange, code int) int { return cmp.Compare(r.low, code) })
	if !found {
		at--
	}
	if at < 0 || code > m.ranges[at].high {
		return "", false
	}
	r, text := m.ranges[at], ""
	switch i := code - r.low; {
	case i < len(r.each):
		text = r.each[i]
	case len(r.first) > 0:
		last := len(r.first) - 1
		text = string(r.first[:last]) + string(r.first[last]+rune(i))
	}
	m.chars[code] = text
	return text, true
}

// mapping reads a ToUnicode stream.
func (f *file) mapping(s *stream) *mapping {
	data, err := f.read(s)
	if err != nil {
		return nil
	}
	m := &mapping{chars: make(map[int]string)}
	l := &lexer{data: data}
	var operands []any
	for {
		obj, ok := l.next(0)
		if !ok {
			break
		}
		op, isOp := obj.(operator)
		if !isOp {
			if operands = append(operands, obj); len(operands) > maxMappings {
				break
			}
			continue
		}
		switch op {
		case "endcodespacerange":
			for _, o := range operands {
				if s, ok := o.(string); ok {
					m.size = max(m.size, min(len(s), 4))
				}
			}
		case "endbfchar":
			for i := 0; i+1 < len(operands); i += 2 {
				m.chars[codeOf(operands[i])] = string(utf16Of(operands[i+1]))
			}
		case "endbfrange":
			for i := 0; i+2 < len(operands) && len(m.ranges) < maxMappings; i += 3 {
				r := codeRange{low: codeOf(operands[i]), high: codeOf(operands[i+1])}
				if list, ok := operands[i+2].(array); ok {
					for _, item := range list {
						r.each = append(r.each, string(utf16Of(item)))
					}
				} else {
					r.first = utf16Of(operands[i+2])
				}
				m.ranges = append(m.ranges, r)
			}
		}
		operands = operands[:0]
	}
	if len(m.chars)+len(m.ranges) == 0 {
		return nil
	}
	slices.SortStableFunc(m.ranges, func(a, b codeRange) int { return cmp.Compare(a.low, b.low) })
	return m
}

// textString returns what a string means that is a text: UTF-16 or UTF-8 with a mark, or an encoding of its own, which
// is nearly that of Windows.
func textString(s string) string {
	switch {
	case strings.HasPrefix(s, "\xfe\xff"):
		return string(runesOf(s[2:]))
	case strings.HasPrefix(s, "\xef\xbb\xbf"):
		return s[3:]
	}
	text, _ := charmap.Windows1252.NewDecoder().String(s)
	return text
}

func codeOf(obj any) int {
	s, _ := obj.(string)
	code := 0
	for i := range min(len(s), 4) {
		code = code<<8 | int(s[i])
	}
	return code
}

func utf16Of(obj any) []rune {
	s, _ := obj.(string)
	if len(s) == 1 {
		return []rune{rune(s[0])}
	}
	return runesOf(s[:min(len(s), 64)])
}

// runesOf decodes UTF-16 in big-endian order.
func runesOf(s string) []rune {
	var units []uint16
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return utf16.Decode(units)
}

// standardText returns the text of a code in the standard encoding of Adobe.
func standardText(code byte) string {
	switch {
	case code == '\'':
		return "’"
	case code == '`':
		return "‘"
	case code >= ' ' && code < 0x7f:
		return string(rune(code))
	}
	return map[byte]string{
		0xa1: "¡", 0xa2: "¢", 0xa3: "£", 0xa4: "⁄", 0xa5: "¥", 0xa6: "ƒ", 0xa7: "§", 0xa8: "¤", 0xa9: "'", 0xaa: "“", 0xab: "«", 0xac: "‹", 0xad: "›", 0xae: "fi", 0xaf: "fl",
		0xb1: "–", 0xb2: "†", 0xb3: "‡", 0xb4: "·", 0xb6: "¶", 0xb7: "•", 0xb8: "‚", 0xb9: "„", 0xba: "”", 0xbb: "»", 0xbc: "…", 0xbd: "‰", 0xbf: "¿", 0xd0: "—",
		0xe1: "Æ", 0xe3: "ª", 0xe8: "Ł", 0xe9: "Ø", 0xea: "Œ", 0xeb: "º", 0xf1: "æ", 0xf5: "ı", 0xf8: "ł", 0xf9: "ø", 0xfa: "œ", 0xfb: "ß",
	}[code]
}

// accents are the ends of names of glyphs and the characters that they put on a letter.
var accents = [...]struct{ end, mark string }{
	{"acute", "\u0301"},
	{"grave", "\u0300"},
	{"circumflex", "\u0302"},
	{"dieresis", "\u0308"},
	{"tilde", "\u0303"},
	{"ring", "\u030a"},
	{"cedilla", "\u0327"},
	{"caron", "\u030c"},
	{"ogonek", "\u0328"},
	{"macron", "\u0304"},
	{"breve", "\u0306"},
	{"dotaccent", "\u0307"},
	{"hungarumlaut", "\u030b"},
	{"commaaccent", "\u0326"},
}

// glyphNames are names of glyphs and their texts, in pairs.
const glyphNames = `exclam ! quotedbl " numbersign # dollar $ percent % ampersand & quotesingle ' quoteright ’ quoteleft ‘ parenleft ( parenright ) asterisk * plus + comma ,
hyphen - minus − period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal = greater > question ? at @
bracketleft [ backslash \ bracketright ] asciicircum ^ underscore _ grave ` + "` acute ´" + ` braceleft { bar | braceright } asciitilde ~ exclamdown ¡ cent ¢ sterling £ fraction ⁄ yen ¥ florin ƒ section §
currency ¤ quotedblleft “ quotedblright ” quotedblbase „ quotesinglbase ‚ guillemotleft « guillemotright » guilsinglleft ‹ guilsinglright › endash – emdash — dagger † daggerdbl ‡
periodcentered · paragraph ¶ bullet • ellipsis … perthousand ‰ questiondown ¿ AE Æ ae æ OE Œ oe œ Oslash Ø oslash ø Lslash Ł lslash ł germandbls ß dotlessi ı dotlessj ȷ Eth Ð eth ð Thorn Þ thorn þ
ff ff fi fi fl fl ffi ffi ffl ffl f_f ff f_i fi f_l fl f_f_i ffi f_f_l ffl copyright © registered ® trademark ™ degree ° plusminus ± mu µ multiply × divide ÷ Euro € onehalf ½ onequarter ¼ threequarters ¾
onesuperior ¹ twosuperior ² threesuperior ³ ordfeminine ª ordmasculine º logicalnot ¬ brokenbar ¦ infinity ∞ notequal ≠ lessequal ≤ greaterequal ≥ summation ∑ product ∏ integral ∫ radical √ partialdiff ∂
arrowright → arrowleft ← arrowup ↑ arrowdown ↓ element ∈ emptyset ∅ union ∪ intersection ∩ approxequal ≈ equivalence ≡ nabla ∇ similar ∼ proportional ∝ circlemultiply ⊗ circleplus ⊕ logicaland ∧ logicalor ∨
alpha α beta β gamma γ delta δ epsilon ε epsilon1 ϵ zeta ζ eta η theta θ iota ι kappa κ lambda λ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ phi1 ϕ chi χ psi ψ omega ω
Gamma Γ Delta ∆ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω nbspace   sfthyphen - visiblespace ␣ asteriskmath ∗ prime ′ ring ˚ circumflex ˆ tilde ˜ dieresis ¨ caron ˇ breve ˘ macron ¯ cedilla ¸`

// namedTexts are the texts of glyphs by their names.
var namedTexts = sync.OnceValue(func() map[string]string {
	texts := map[string]string{"space": " ", "nbspace": " "}
	words := strings.Fields(glyphNames)
	for i := 0; i+1 < len(words); i += 2 {
		texts[words[i]] = words[i+1]
	}
	return texts
})

// nameText returns the text of a glyph by its name, "" if the name says nothing.
func nameText(glyph string) string {
	glyph, _, _ = strings.Cut(glyph, ".") // a.sc is a small capital
	if utf8.RuneCountInString(glyph) == 1 {
		return glyph
	}
	if text, ok := namedTexts()[glyph]; ok {
		return text
	}
	if strings.Contains(glyph, "_") { // a ligature
		all := ""
		for part := range strings.SplitSeq(glyph, "_") {
			text := nameText(part)
			if text == "" {
				return ""
			}
			all += text
		}
		return all
	}
	for _, a := range accents {
		if letter, ok := strings.CutSuffix(glyph, a.end); ok && len(letter) == 1 {
			return norm.NFC.String(letter + a.mark)
		}
	}
	if hex, ok := strings.CutPrefix(glyph, "uni"); ok && len(hex) >= 4 {
		if n, err := strconv.ParseUint(hex[:4], 16, 16); err == nil {
			return string(rune(n))
		}
	}
	if hex, ok := strings.CutPrefix(glyph, "u"); ok && len(hex) >= 4 {
		if n, err := strconv.ParseUint(hex, 16, 21); err == nil {
			return string(rune(n))
		}
	}
	return ""
}
