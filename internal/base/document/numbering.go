package document

import (
	"cmp"
	"strconv"
	"strings"
)

// numbering is how a document of Word numbers its paragraphs.
type numbering struct {
	lists  map[string]*numberedList // by the number of a paragraph's list
	shapes map[string]*listShape    // by the number of the list's definition
	styles map[string]string        // definitions that are those of a style, by its name
}

// numberedList is a list of paragraphs. Lists of one shape count on.
type numberedList struct {
	shape    string
	restarts map[int]int        // where levels begin to count in this list
	levels   map[int]*listLevel // in place of the shape's
}

// listShape is the definition of lists.
type listShape struct {
	link   string // the style whose definition counts
	levels map[int]*listLevel
	counts map[int]int // the last number of each level
}

// listLevel is how a level of a list is shown.
type listLevel struct {
	start  int
	format string // "decimal", "bullet" and the like
	text   string // with %1 for the number of the first level
	style  string // of paragraphs of this level
	legal  bool   // all numbers are decimal
	keeps  bool   // it counts on when an upper level does
}

// Limits of lists.
const (
	maxLevels = 9
	maxLabel  = 100 // bytes of the text of a level
)

// readNumbering reads the definitions of lists.
func (d *word) readNumbering(file string) error {
	n := numbering{make(map[string]*numberedList), make(map[string]*listShape), make(map[string]string)}
	d.numbers = n
	if !d.has(file) {
		return nil
	}
	shape, list, level, levels, at := &listShape{}, &numberedList{}, &listLevel{}, map[int]*listLevel{}, 0
	return d.noteDamage("the numbers of lists", d.walk(file, handler{start: func(name string, e element) bool {
		value := e.attr("val")
		number, err := strconv.Atoi(value)
		switch name {
		case "abstractNum":
			shape = newListShape()
			levels, n.shapes[e.attr("abstractNumId")] = shape.levels, shape
		case "num":
			levels = make(map[int]*listLevel)
			list = &numberedList{levels: levels, restarts: make(map[int]int)}
			n.lists[e.attr("numId")] = list
		case "abstractNumId":
			list.shape = value
		case "styleLink":
			for id, s := range n.shapes {
				if s == shape {
					n.styles[value] = id
				}
			}
		case "numStyleLink":
			shape.link = value
		case "lvlOverride":
			at, _ = strconv.Atoi(e.attr("ilvl"))
		case "startOverride":
			if err == nil && at < maxLevels {
				list.restarts[at] = number
			}
		case "lvl":
			level = &listLevel{format: "decimal"}
			if i, err := strconv.Atoi(e.attr("ilvl")); err == nil && i >= 0 && i < maxLevels {
				levels[i] = level
			}
		case "start":
			level.start = number
		case "numFmt":
			level.format = value
		case "lvlText":
			level.text = value[:min(len(value), maxLabel)]
		case "pStyle":
			level.style = value
		case "isLgl":
			level.legal = e.on("val")
		case "lvlRestart":
			level.keeps = value == "0"
		}
		return false
	}}))
}

// levelOf returns the level of a list whose paragraphs have a style.
func (n numbering) levelOf(list, style string) (int, bool) {
	l := n.lists[list]
	if l == nil || style == "" {
		return 0, false
	}
	for i := range maxLevels {
		if level := n.level(l, i); level != nil && level.style == style {
			return i, true
		}
	}
	return 0, false
}

func (n numbering) shape(l *numberedList) *listShape {
	s := n.shapes[l.shape]
	if s != nil && s.link != "" && n.shapes[n.styles[s.link]] != nil {
		s = n.shapes[n.styles[s.link]]
	}
	return s
}

func (n numbering) level(l *numberedList, i int) *listLevel {
	if level := l.levels[i]; level != nil {
		return level
	}
	if s := n.shape(l); s != nil {
		return s.levels[i]
	}
	return nil
}

// newListShape returns a definition without levels.
func newListShape() *listShape {
	return &listShape{levels: make(map[int]*listLevel), counts: make(map[int]int)}
}

// next counts a paragraph and returns what is shown before it. bullet reports whether it is an item whose sign says
// nothing, or one of a list that is not defined.
func (n numbering) next(list string, i int) (label string, bullet bool) {
	if list == "" || list == "0" {
		return "", false
	}
	l := n.lists[list]
	if l == nil || n.shape(l) == nil || n.level(l, i) == nil {
		return "", true
	}
	counts, level := n.shape(l).counts, n.level(l, i)
	if level.format == "bullet" {
		return "", true
	}
	if restart, ok := l.restarts[i]; ok {
		counts[i] = restart
		delete(l.restarts, i)
	} else if _, ok := counts[i]; ok {
		counts[i]++
	} else {
		counts[i] = level.start
	}
	for deeper := i + 1; deeper < maxLevels; deeper++ {
		if below := n.level(l, deeper); below == nil || !below.keeps {
			delete(counts, deeper)
		}
	}
	label = level.text
	for k := range maxLevels {
		part, count := n.level(l, k), counts[k]
		if part == nil || !strings.Contains(label, "%"+strconv.Itoa(k+1)) {
			continue
		}
		if _, ok := counts[k]; !ok {
			count = part.start
			counts[k] = count
		}
		format := part.format
		if level.legal {
			format = "decimal"
		}
		label = strings.ReplaceAll(label, "%"+strconv.Itoa(k+1), numeral(format, count))
	}
	return strings.TrimSpace(label), false
}

// alphabets are the letters of formats of Word that number with letters.
var alphabets = map[string]string{
	"lowerLetter":  "abcdefghijklmnopqrstuvwxyz",
	"upperLetter":  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя",
	"russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ",
}

// numeral returns a number in a format of Word.
func numeral(format string, n int) string {
	decimal := strconv.Itoa(n)
	if n <= 0 || n > 30000 {
		return decimal
	}
	if alphabet, ok := alphabets[format]; ok {
		return letters(alphabet, n)
	}
	switch format {
	case "decimalZero":
		if n < 10 {
			return "0" + decimal
		}
	case "lowerRoman":
		return strings.ToLower(roman(n))
	case "upperRoman":
		return roman(n)
	case "ordinal":
		suffix := "th"
		if n%100 < 11 || n%100 > 13 {
			suffix = cmp.Or(map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10], suffix)
		}
		return decimal + suffix
	case "decimalEnclosedCircle", "decimalEnclosedCircleChinese":
		if n <= 20 {
			return string(rune('①' + n - 1))
		}
	case "chineseCounting", "chineseCountingThousand", "taiwaneseCounting", "taiwaneseCountingThousand", "japaneseCounting", "ideographDigital":
		return chinese(n)
	case "none":
		return ""
	}
	return decimal
}

// letters returns a, b, ..., z, aa, bb, ...
func letters(alphabet string, n int) string {
	all := []rune(alphabet)
	return strings.Repeat(string(all[(n-1)%len(all)]), min((n-1)/len(all)+1, 10))
}

func roman(n int) string {
	var out strings.Builder
	for _, d := range []struct {
		value int
		sign  string
	}{
		{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
	} {
		for ; n >= d.value; n -= d.value {
			out.WriteString(d.sign)
		}
	}
	return out.String()
}

// chinese returns a number as it is counted in Chinese and Japanese.
func chinese(n int) string {
	digits := []rune("零一二三四五六七八九")
	if n > 9999 {
		return strconv.Itoa(n)
	}
	var out strings.Builder
	gap := false
	for i, unit := range []int{1000, 100, 10, 1} {
		d := n / unit % 10
		switch {
		case d == 0:
			gap = out.Len() > 0
			continue
		case gap:
			out.WriteRune('零')
		}
		gap = false
		if d > 1 || unit != 10 || out.Len() > 0 {
			out.WriteRune(digits[d])
		}
		out.WriteString([]string{"千", "百", "十", ""}[i])
	}
	return out.String()
}
