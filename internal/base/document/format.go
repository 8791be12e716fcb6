package document

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/nfp"
)

// numberFormat is how a cell shows a number. Its sections are those for positive numbers, negative ones, zero and text, unless
// they have conditions. The zero value shows numbers as they are.
type numberFormat struct{ sections []section }

type section struct {
	items     []nfp.Token
	condition func(float64) bool // nil for none
	kind      sectionKind
	language  string // in hexadecimal digits, "" for none
	text      bool   // it is for text alone
}

type sectionKind int

const (
	general sectionKind = iota
	literal             // no part of it depends on the number
	numeric
	fraction
	dated
)

// maxFormat is the length of the longest format, which is that of Excel, in characters.
const maxFormat = 255

// builtIn are the formats that files refer to by number alone.
var builtIn = map[int]string{
	1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
	18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
	41: "#,##0;(#,##0);\"-\"", 42: "$#,##0;($#,##0);\"$-\"", 43: "#,##0.00;(#,##0.00);\"-\"", 44: "$#,##0.00;($#,##0.00);\"$-\"", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
	27: "yyyy-mm-dd", 28: "yyyy-mm-dd", 29: "yyyy-mm-dd", 30: "yyyy-mm-dd", 31: "yyyy-mm-dd", 36: "yyyy-mm-dd", 50: "yyyy-mm-dd", 51: "yyyy-mm-dd", 52: "yyyy-mm-dd", 53: "yyyy-mm-dd",
	54: "yyyy-mm-dd", 57: "yyyy-mm-dd", 58: "yyyy-mm-dd", 32: "h:mm", 33: "h:mm:ss", 34: "h:mm", 35: "h:mm:ss", 55: "h:mm", 56: "h:mm:ss",
}

// parseFormat returns the format with a code such as "0.0%". One that is malformed shows numbers as they are.
func parseFormat(code string) (f numberFormat) {
	if code == "" || len(code) > maxFormat || strings.EqualFold(code, "general") {
		return f
	}
	defer func() {
		if recover() != nil {
			f = numberFormat{}
		}
	}()
	parser := nfp.NumberFormatParser()
	for _, s := range parser.Parse(code) {
		f.sections = append(f.sections, parseSection(s))
	}
	return f
}

func parseSection(s nfp.Section) section {
	out := section{items: s.Items, kind: literal, text: s.Type == nfp.TokenSectionText}
	for _, t := range s.Items {
		switch t.TType {
		case nfp.TokenTypeGeneral:
			out.kind = max(out.kind, general)
			if out.kind == literal {
				out.kind = general
			}
		case nfp.TokenTypeZeroPlaceHolder, nfp.TokenTypeHashPlaceHolder, nfp.TokenTypeDigitalPlaceHolder:
			out.kind = max(out.kind, numeric)
		case nfp.TokenTypeFraction:
			out.kind = max(out.kind, fraction)
		case nfp.TokenTypeDateTimes, nfp.TokenTypeElapsedDateTimes:
			out.kind = dated
		case nfp.TokenTypeCondition:
			if len(t.Parts) == 2 {
				out.condition = conditionOf(t.Parts[0].Token.TValue, t.Parts[1].Token.TValue)
			}
		case nfp.TokenTypeCurrencyLanguage:
			for _, p := range t.Parts {
				if p.Token.TType == nfp.TokenSubTypeLanguageInfo {
					out.language = strings.ToLower(strings.TrimLeft(p.Token.TValue, "-"))
				}
			}
		}
	}
	return out
}

func conditionOf(operator, operand string) func(float64) bool {
	limit, err := strconv.ParseFloat(operand, 64)
	if err != nil {
		return nil
	}
	return func(n float64) bool { // an operator such as <= or <> has the signs of the orders that it allows
		return strings.Contains(operator, []string{"<", "=", ">"}[cmp.Compare(n, limit)+1])
	}
}

// sectionFor returns the section for a number, nil if there is none; signed reports whether it shows no sign by itself.
func (f numberFormat) sectionFor(n float64) (s *section, signed bool) {
	var all []*section
	conditions := false
	for i := range f.sections {
		if !f.sections[i].text {
			all = append(all, &f.sections[i])
			conditions = conditions || f.sections[i].condition != nil
		}
	}
	switch {
	case len(all) == 0:
		return nil, false
	case !conditions && n < 0 && len(all) > 1:
		return all[1], false
	case !conditions && n == 0 && len(all) > 2:
		return all[2], false
	case !conditions:
		return all[0], true
	}
	for i, s := range all {
		if s.condition != nil && s.condition(n) || s.condition == nil && (i == len(all)-1 || i == 0 && n > 0 || i == 1 && n < 0) {
			return s, i == 0 || s.condition == nil
		}
	}
	return nil, false
}

// number returns what a cell with a number shows. Days count from 1904 or from 1900.
func (f numberFormat) number(n float64, from1904 bool) string {
	s, signed := f.sectionFor(n)
	if s == nil && len(f.sections) > 0 && !f.sections[0].text {
		return "#" // what Excel shows if no condition is met
	}
	if s == nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return plainNumber(n)
	}
	switch s.kind {
	case dated:
		return s.date(n, from1904)
	case general:
		if !signed {
			n = math.Abs(n)
		}
		return s.around(plainNumber(n))
	case literal:
		if signed && n < 0 {
			return "-" + s.around("")
		}
		return s.around("")
	case fraction:
		return plainNumber(n) // 5.5 for 5 1/2
	}
	return s.decimal(n, signed)
}

// string returns what a cell with a text shows.
func (f numberFormat) string(text string) string {
	for _, s := range f.sections {
		if s.text {
			return s.around(text)
		}
	}
	return text
}

// plainNumber returns a number as it is shown without a format: with 15 digits at most.
func plainNumber(n float64) string {
	text := strconv.FormatFloat(n, 'g', 15, 64)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil {
		n = rounded
	}
	if size := math.Abs(n); size != 0 && (size < 1e-9 || size >= 1e21) {
		return strings.Replace(strconv.FormatFloat(n, 'E', -1, 64), "e", "E", 1)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// around returns the literal parts of a section around a text.
func (s *section) around(text string) string {
	var out strings.Builder
	for _, t := range s.items {
		switch t.TType {
		case nfp.TokenTypeGeneral, nfp.TokenTypeTextPlaceHolder:
			out.WriteString(text)
		default:
			out.WriteString(literalText(t))
		}
	}
	return strings.TrimSpace(out.String())
}

// literalText returns what a token shows whatever the number is.
func literalText(t nfp.Token) string {
	switch t.TType {
	case nfp.TokenTypeLiteral, nfp.TokenTypeDecimalPoint, nfp.TokenTypeThousandsSeparator, nfp.TokenTypePercent, nfp.TokenTypeDenominator:
		return t.TValue
	case nfp.TokenTypeAlignment:
		return " "
	case nfp.TokenTypeCurrencyLanguage:
		for _, p := range t.Parts {
			if p.Token.TType == nfp.TokenSubTypeCurrencyString {
				return p.Token.TValue
			}
		}
	}
	return ""
}

// isDigits reports whether a token means digits of a number.
func isDigits(t nfp.Token) bool {
	return t.TType == nfp.TokenTypeZeroPlaceHolder || t.TType == nfp.TokenTypeHashPlaceHolder || t.TType == nfp.TokenTypeDigitalPlaceHolder
}

// slot is a place for a digit in a section, or what is shown in any case.
type slot struct {
	digit byte   // '0', '#' or '?'; 0 for none
	text  string // if it is for no digit
}

// decimal returns a number with the digits, separators and literals of a section.
func (s *section) decimal(n float64, signed bool) string {
	var parts [3][]slot // before the decimal point, behind it, of the exponent
	var places [3]int   // for digits
	at, scale, thousands, plus := 0, 1.0, false, false
	for i, t := range s.items {
		switch {
		case isDigits(t):
			for _, c := range []byte(t.TValue) {
				parts[at] = append(parts[at], slot{digit: c})
				places[at]++
			}
		case t.TType == nfp.TokenTypeDecimalPoint && at == 0:
			at = 1
		case t.TType == nfp.TokenTypeExponential:
			at, plus = 2, strings.HasSuffix(t.TValue, "+")
		case strings.Trim(t.TValue, ",") == "" && t.TValue != "" && places[0] > 0 && at < 2 && behindDigits(s.items[:i]):
			if i+1 < len(s.items) && isDigits(s.items[i+1]) {
				thousands = true
			} else {
				scale /= math.Pow(1000, float64(len(t.TValue)))
			}
		default:
			if t.TType == nfp.TokenTypePercent {
				scale *= 100
			}
			parts[at] = append(parts[at], slot{text: literalText(t)})
		}
	}
	size, power := math.Abs(n)*scale, 0
	if at == 2 && size != 0 {
		step := max(places[0], 1)
		power = int(math.Floor(math.Floor(math.Log10(size))/float64(step))) * step
		size /= math.Pow10(power)
		if r, _ := strconv.ParseFloat(roundDecimal(size, places[1]), 64); r >= math.Pow10(step) {
			size, power = size/math.Pow10(step), power+step
		}
	}
	whole, rest, _ := strings.Cut(roundDecimal(size, places[1]), ".")
	out := fill(parts[0], strings.TrimLeft(whole, "0"), thousands)
	if behind := fillRest(parts[1], rest); at > 0 && s.has(nfp.TokenTypeDecimalPoint) && behind != "" {
		if behind[0] >= '0' && behind[0] <= '9' {
			out += "."
		}
		out += behind
	}
	if at == 2 {
		sign := ""
		if power < 0 {
			sign = "-"
		} else if plus {
			sign = "+"
		}
		out += "E" + sign + fill(parts[2], strings.TrimLeft(strconv.Itoa(max(power, -power)), "0"), false)
	}
	if n < 0 && signed && strings.Trim(whole+rest, "0") != "" {
		out = "-" + strings.TrimLeft(out, " ")
	}
	return strings.TrimSpace(out)
}

// behindDigits reports whether an item follows digits, with nothing but commas between.
func behindDigits(before []nfp.Token) bool {
	for _, t := range slices.Backward(before) {
		if strings.Trim(t.TValue, ",") != "" {
			return isDigits(t)
		}
	}
	return false
}

// roundDecimal returns a number that is not negative with so many decimals. Halves are rounded up, by the 15 digits that count.
func roundDecimal(n float64, decimals int) string {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(n, 'e', 14, 64))
	if !ok {
		return plainNumber(n)
	}
	return r.FloatString(decimals)
}

// fill puts the digits of a whole number into slots, from the right.
func fill(slots []slot, digits string, thousands bool) string {
	var out []string // from the right
	count, places := 0, 0
	for _, one := range slots {
		if one.digit != 0 {
			places++
		}
	}
	put := func(digit string) {
		if count > 0 && count%3 == 0 && thousands && digit != " " {
			out = append(out, ",")
		}
		out = append(out, digit)
		count++
	}
	for i := len(slots) - 1; i >= 0; i-- {
		one := slots[i]
		if one.digit == 0 {
			out = append(out, one.text)
			continue
		}
		places--
		n := len(digits)
		switch {
		case n > 0:
			put(digits[n-1:])
			digits = digits[:n-1]
		case one.digit == '0':
			put("0")
		case one.digit == '?':
			put(" ")
		}
		for places == 0 && digits != "" { // there are more than places for them
			n := len(digits)
			put(digits[n-1:])
			digits = digits[:n-1]
		}
	}
	slices.Reverse(out)
	return strings.Join(out, "")
}

// fillRest puts decimals into slots.
func fillRest(slots []slot, digits string) string {
	var out strings.Builder
	for _, one := range slots {
		switch {
		case one.digit == 0:
			out.WriteString(one.text)
		case one.digit != '0' && strings.Trim(digits, "0") == "":
			digits = digits[min(1, len(digits)):]
		default:
			out.WriteString(digits[:min(1, len(digits))])
			digits = digits[min(1, len(digits)):]
		}
	}
	return out.String()
}

// date returns a number of days as a date or a time. A date with names in a language that is not known is given in figures.
func (s *section) date(days float64, from1904 bool) string {
	const perDay = 86400
	if days < 0 && !s.has(nfp.TokenTypeElapsedDateTimes) || math.Abs(days) >= 3e6 {
		return plainNumber(days)
	}
	decimals := 0
	for i, t := range s.items {
		if isDigits(t) && i > 0 && s.items[i-1].TType == nfp.TokenTypeDecimalPoint {
			decimals = min(len(t.TValue), 3)
		}
	}
	unit := math.Pow10(decimals)
	total := math.Round(math.Abs(days) * perDay * unit) // in parts of a second
	at := dayZero(days, from1904).AddDate(0, 0, int(total/unit/perDay)).Add(time.Duration(math.Mod(total, unit*perDay)/unit*1e3+0.5) * time.Millisecond)
	seconds := math.Floor(total / unit)
	names, known := dateNames(s.language)
	half := s.hasDate("/") // hours count to 12
	var out strings.Builder
	if days < 0 {
		out.WriteByte('-')
	}
	for i, t := range s.items {
		code := strings.ToLower(t.TValue)
		switch {
		case t.TType == nfp.TokenTypeElapsedDateTimes:
			per := map[byte]float64{'h': 3600, 'm': 60, 's': 1}[code[0]]
			fmt.Fprintf(&out, "%0*.0f", len(code), math.Floor(seconds/max(per, 1)))
		case t.TType != nfp.TokenTypeDateTimes:
			if isDigits(t) {
				if decimals > 0 {
					fmt.Fprintf(&out, "%0*.0f", decimals, math.Mod(total, unit))
				}
				continue
			}
			out.WriteString(literalText(t))
		case strings.Contains(code, "/"):
			morning, evening, _ := strings.Cut(t.TValue, "/")
			if at.Hour() >= 12 {
				morning = evening
			}
			out.WriteString(morning)
		case !known && (code[0] == 'd' || code[0] == 'm' && !s.isMinute(i)) && len(code) > 2 || code[0] == 'a':
			return at.Format(map[bool]string{true: time.DateTime, false: time.DateOnly}[s.hasDate("h")])
		default:
			out.WriteString(dateField(code, at, names, half, s.isMinute(i)))
		}
	}
	return strings.TrimSpace(out.String())
}

// dayZero returns the day from which days count. 1900 has a day too many, as in Lotus 1-2-3.
func dayZero(days float64, from1904 bool) time.Time {
	switch {
	case from1904:
		return time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60:
		return time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
}

func (s *section) has(kind string) bool {
	return slices.ContainsFunc(s.items, func(t nfp.Token) bool { return t.TType == kind })
}

// hasDate reports whether part is in an item for a part of a date, such as the slash of "AM/PM".
func (s *section) hasDate(part string) bool {
	return slices.ContainsFunc(s.items, func(t nfp.Token) bool {
		return t.TType == nfp.TokenTypeDateTimes && strings.Contains(strings.ToLower(t.TValue), part)
	})
}

// isMinute reports whether the m of an item is that of minutes: behind hours, or before seconds.
func (s *section) isMinute(i int) bool {
	near := func(step int, want string) bool {
		for j := i + step; j >= 0 && j < len(s.items); j += step {
			if t := s.items[j]; t.TType == nfp.TokenTypeDateTimes || t.TType == nfp.TokenTypeElapsedDateTimes {
				return strings.HasPrefix(strings.ToLower(t.TValue), want)
			}
		}
		return false
	}
	return near(-1, "h") || near(1, "s")
}

// dateField returns a part of a date, such as that for "mmm".
func dateField(code string, at time.Time, names [2][]string, half, minute bool) string {
	number, name := 0, ""
	switch code[0] {
	case 'y', 'e':
		if len(code) > 2 || code[0] == 'e' {
			return at.Format("2006")
		}
		return at.Format("06")
	case 'm':
		if number = at.Minute(); !minute {
			number, name = int(at.Month()), names[0][at.Month()-1]
		}
	case 'd':
		number, name = at.Day(), names[1][at.Weekday()]
	case 'h':
		if number = at.Hour(); half {
			number = (number+11)%12 + 1
		}
	case 's':
		number = at.Second()
	default:
		return ""
	}
	switch n := len(code); {
	case name != "" && n == 3:
		return short(name, 3)
	case name != "" && n > 4 && code[0] == 'm':
		return short(name, 1)
	case name != "" && n > 3:
		return name
	case n > 1:
		return fmt.Sprintf("%02d", number)
	}
	return strconv.Itoa(number)
}

func short(name string, n int) string {
	r := []rune(name)
	return string(r[:min(n, len(r))])
}

// dateNames returns the names of months, and of days from Sunday on, in a language. known is false if they are English only
// for want of others.
func dateNames(language string) (names [2][]string, known bool) {
	id, err := strconv.ParseUint(language[max(0, len(language)-4):], 16, 32)
	list, known := namesOf[uint(id)&0x3ff]
	if language == "" || err == nil && id >= 0xf000 { // of the system
		list, known = namesOf[9], true
	} else if !known {
		list = namesOf[9]
	}
	for i, names1 := range list {
		names[i] = strings.Fields(names1)
	}
	return names, known
}

// namesOf has the names of months and days by the language that the lower bits of a locale of Windows mean.
var namesOf = map[uint][2]string{
	0x07: {"Januar Februar März April Mai Juni Juli August September Oktober November Dezember", "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag"},
	0x09: {"January February March April May June July August September October November December", "Sunday Monday Tuesday Wednesday Thursday Friday Saturday"},
	0x0a: {"enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre", "domingo lunes martes miércoles jueves viernes sábado"},
	0x0c: {"janvier février mars avril mai juin juillet août septembre octobre novembre décembre", "dimanche lundi mardi mercredi jeudi vendredi samedi"},
	0x10: {"gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre", "domenica lunedì martedì mercoledì giovedì venerdì sabato"},
	0x13: {"januari februari maart april mei juni juli augustus september oktober november december", "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag"},
	0x16: {"janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro", "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado"},
}
