package document

import (
	"strconv"
	"strings"
)

// graphic returns the text of the chart or the diagram (SmartArt) that an element refers to, as Markdown.
func (a *archive) graphic(name string, e element, parts relations) string {
	attribute, read, what := "id", a.chart, "chart"
	if name == "relIds" {
		attribute, read, what = "dm", a.diagram, "diagram"
	}
	r, ok := e.relationOf(parts, attribute)
	if !ok || !a.has(r.target) {
		a.count(1, what, "")
		return ""
	}
	w := newWriter(a.most)
	if err := read(w, r.target); err != nil {
		_ = a.noteDamage("a "+what, err)
	}
	text := w.String()
	if strings.TrimSpace(text) == "" {
		a.count(1, what, "")
	}
	return text
}

// diagram writes the paragraphs of the data of a diagram.
func (a *archive) diagram(w *writer, file string) error {
	v := &shapes{presentation: &presentation{a, make(map[string]bool)}, w: w}
	return a.walk(file, v.handler())
}

// series is a row of values of a chart.
type series struct {
	name, format string
	names        []string // of the values, as they stand at the axis
	values       []string
}

// maxPoints bounds the values of a series.
const maxPoints = 10_000

// chart writes the titles of a chart, and its values as a table.
func (a *archive) chart(w *writer, file string) error {
	var (
		all    []series
		one    series
		value  strings.Builder
		in, is string // of a series: "tx", "cat" or "val"; and the element whose text counts
		inner  bool   // of a series
		at     int
	)
	err := a.walk(file, handler{
		start: func(name string, e element) bool {
			value.Reset()
			switch is = name; name {
			case "ser":
				one, inner = series{}, true
			case "tx", "cat", "val":
				in = name
			case "xVal":
				in = "cat"
			case "yVal":
				in = "val"
			case "pt":
				at, _ = strconv.Atoi(e.attr("idx"))
			case "Fallback", "dLbls", "extLst":
				return true
			case "br":
				w.text(" ")
			}
			return w.tooLong()
		},
		text: func(s string) {
			switch is {
			case "t":
				w.text(s)
			case "v", "formatCode":
				value.WriteString(s)
			}
		},
		end: func(name string) {
			is = ""
			switch name {
			case "p":
				w.paragraph("")
			case "formatCode":
				if in == "val" {
					one.format = value.String()
				}
			case "v":
				switch text := value.String(); {
				case !inner:
				case in == "tx":
					one.name = text
				case in == "cat":
					put(&one.names, at, text)
				case in == "val":
					put(&one.values, at, text)
				}
				value.Reset()
			case "ser":
				all, inner, in = append(all, one), false, ""
			}
		},
	})
	w.beginTable()
	w.addCell("")
	rows := 0
	var names []string
	for _, s := range all {
		w.addCell(s.name)
		rows = max(rows, len(s.values), len(s.names))
		if names == nil {
			names = s.names
		}
	}
	w.row()
	for i := 0; i < rows && !w.tooLong(); i++ {
		w.addCell(item(names, i))
		for _, s := range all {
			text := item(s.values, i)
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				text = parseFormat(s.format).number(n, false)
			}
			w.addCell(text)
		}
		w.row()
	}
	w.endTable()
	return err
}

func item(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// put sets an item of a list, which grows as far as it has to.
func put(list *[]string, i int, text string) {
	if i < 0 || i >= maxPoints {
		return
	}
	for len(*list) <= i {
		*list = append(*list, "")
	}
	(*list)[i] = text
}

// symbol returns a character of a font that has signs in place of letters, "" if it is not known.
func symbol(font string, code rune) string {
	if code >= 0xf000 && code <= 0xf0ff {
		code -= 0xf000
	}
	var known map[rune]string
	switch font = strings.ToLower(font); font {
	case "symbol":
		known = symbols
	case "wingdings":
		known = wingdings
	case "wingdings 2":
		known = wingdings2
	case "wingdings 3", "webdings":
		known = nil
	default:
		if code < 0xe000 || code > 0xf8ff {
			return string(code)
		}
	}
	return known[code]
}

var wingdings = map[rune]string{
	0x22: "✂", 0x28: "☎", 0x2a: "✉", 0x3f: "✍", 0x46: "☞", 0x45: "☜", 0x4a: "☺", 0x4c: "☹", 0x6c: "●", 0x6d: "❍", 0x6e: "■", 0x6f: "□", 0x71: "❑", 0x72: "❒",
	0x73: "⬧", 0x74: "⧫", 0x75: "◆", 0x76: "❖", 0x78: "☒", 0x9f: "•", 0xa7: "▪", 0xa8: "☐", 0xab: "★", 0xd8: "➢", 0xdf: "←", 0xe0: "→", 0xe1: "↑", 0xe2: "↓", 0xe8: "➔",
	0xf0: "⇨", 0xfb: "✗", 0xfc: "✓", 0xfd: "☒", 0xfe: "☑",
}

var wingdings2 = map[rune]string{
	0x4f: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0x96: "•", 0x97: "•", 0x98: "●", 0xa2: "■", 0xa3: "☐", 0xa4: "☐",
}

// symbols are the signs of the font Symbol.
var symbols = func() map[rune]string {
	all := map[rune]string{
		0xa3: "≤", 0xa5: "∞", 0xab: "↔", 0xac: "←", 0xad: "↑", 0xae: "→", 0xaf: "↓", 0xb0: "°", 0xb1: "±", 0xb2: "″", 0xb3: "≥", 0xb4: "×", 0xb5: "∝", 0xb6: "∂", 0xb7: "•",
		0xb8: "÷", 0xb9: "≠", 0xba: "≡", 0xbb: "≈", 0xbc: "…", 0xc6: "∅", 0xc7: "∩", 0xc8: "∪", 0xcc: "⊂", 0xce: "∈", 0xcf: "∉", 0xd0: "∠", 0xd1: "∇", 0xd2: "®", 0xd3: "©", 0xd4: "™",
		0xd5: "∏", 0xd6: "√", 0xd7: "⋅", 0xd8: "¬", 0xd9: "∧", 0xda: "∨", 0xdb: "⇔", 0xdc: "⇐", 0xde: "⇒", 0xe5: "∑", 0xf2: "∫", 0x22: "∀", 0x24: "∃", 0x27: "∋", 0x40: "≅", 0x5c: "∴", 0x5e: "⊥", 0x7e: "∼",
	}
	for i, r := range []rune("ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ") {
		all[rune('A'+i)] = string(r)
	}
	for i, r := range []rune("αβχδεφγηιϕκλμνοπθρστυϖωξψζ") {
		all[rune('a'+i)] = string(r)
	}
	for r := rune(' '); r < 0x7f; r++ {
		if all[r] == "" {
			all[r] = string(r)
		}
	}
	return all
}()
