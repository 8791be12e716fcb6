package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// checkType checks the keyword type and reports whether s allows the type of v.
func checkType(s *value.Object, v value.Value, path string, r *report) bool {
	arg, ok := s.Get("type")
	if !ok {
		return true
	}
	wanted := items(arg)
	if arg.Kind() == value.String {
		wanted = []value.Value{arg}
	}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		name, _ := w.AsString()
		if hasType(v, name) {
			return true
		}
		names[i] = withArticle(name)
	}
	r.add(finding{path, "type", "must be " + text.Or(names), describe(v)})
	return false
}

func hasType(v value.Value, name string) bool {
	switch v.Kind() {
	case value.Null:
		return name == "null"
	case value.Bool:
		return name == "boolean"
	case value.String:
		return name == "string"
	case value.ListKind:
		return name == "array"
	case value.ObjectKind:
		return name == "object"
	case value.Float:
		return name == "number" || name == "integer" && exact(v).IsInt()
	default:
		return name == "number" || name == "integer"
	}
}

// checkScalar checks the keywords that do not look into v, except type.
func (c *checker) checkScalar(keyword string, arg, v value.Value, path string, r *report) {
	fail := func(got, format string, args ...any) {
		r.add(finding{path, keyword, fmt.Sprintf(format, args...), got})
	}
	switch keyword {
	case "enum":
		for _, allowed := range items(arg) {
			if equal(allowed, v) {
				return
			}
		}
		fail(describe(v), "must be one of %s", choices(items(arg)))
	case "const":
		if !equal(arg, v) {
			fail(describe(v), "must be %s", brief(arg))
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		if isNumber(v) {
			if want, ok := number(keyword, exact(arg), exact(v)); !ok {
				fail(v.Text(), "must be %s %s", want, arg.Text())
			}
		}
	case "minLength", "maxLength":
		s, ok := v.AsString()
		if n := utf8.RuneCountInString(s); ok && outside(keyword, n, arg) {
			fail(strconv.Itoa(n), "must have %s", boundText(keyword, arg, "character"))
		}
	case "pattern":
		s, ok := v.AsString()
		pattern, _ := arg.AsString()
		if ok && !c.index.patterns[pattern].MatchString(s) {
			fail(describe(v), "must match the regular expression %s", pattern)
		}
	case "minItems", "maxItems":
		l, ok := v.AsList()
		if ok && outside(keyword, l.Len(), arg) {
			fail(strconv.Itoa(l.Len()), "must have %s", boundText(keyword, arg, "element"))
		}
	case "uniqueItems":
		if on, _ := arg.AsBool(); on {
			if i, j, found := duplicate(items(v)); found {
				fail("", "must not repeat elements, but element %d equals element %d", j, i)
			}
		}
	case "minProperties", "maxProperties":
		if o := v.AsObject(); o != nil && outside(keyword, o.Len(), arg) {
			fail(strconv.Itoa(o.Len()), "must have %s", boundText(keyword, arg, "member"))
		}
	}
}

// number checks n against one of the numeric keywords; want is its limit in words.
func number(keyword string, limit, n *big.Rat) (want string, ok bool) {
	switch keyword {
	case "minimum":
		return "at least", n.Cmp(limit) >= 0
	case "maximum":
		return "at most", n.Cmp(limit) <= 0
	case "exclusiveMinimum":
		return "greater than", n.Cmp(limit) > 0
	case "exclusiveMaximum":
		return "less than", n.Cmp(limit) < 0
	default:
		return "a multiple of", limit.Sign() != 0 && new(big.Rat).Quo(n, limit).IsInt()
	}
}

func outside(keyword string, n int, limit value.Value) bool {
	f, _ := limit.AsFloat()
	if strings.HasPrefix(keyword, "min") {
		return float64(n) < f
	}
	return float64(n) > f
}

func boundText(keyword string, limit value.Value, noun string) string {
	f, _ := limit.AsFloat()
	side := "at most "
	if strings.HasPrefix(keyword, "min") {
		side = "at least "
	}
	return side + text.Count(int(f), noun)
}

// duplicate returns the place of the first element that equals an earlier one.
func duplicate(list []value.Value) (i, j int, found bool) {
	seen := make(map[string]int, len(list))
	for j, v := range list {
		key := canonical(v)
		if i, ok := seen[key]; ok {
			return i, j, true
		}
		seen[key] = j
	}
	return 0, 0, false
}

// equal is the equality of JSON Schema, to which 1 and 1.0 are the same number.
func equal(a, b value.Value) bool { return canonical(a) == canonical(b) }

// canonical returns a text that equal values share, and no others.
func canonical(v value.Value) string {
	switch v.Kind() {
	case value.Int, value.Uint, value.Float:
		return exact(v).RatString()
	case value.ListKind:
		parts := make([]string, 0, 8)
		for _, item := range items(v) {
			parts = append(parts, canonical(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case value.ObjectKind:
		parts := make([]string, 0, v.AsObject().Len())
		for name, item := range v.AsObject().All() {
			parts = append(parts, value.Of(name).String()+":"+canonical(item))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return v.String()
	}
}

func isNumber(v value.Value) bool {
	return v.Kind() == value.Int || v.Kind() == value.Uint || v.Kind() == value.Float
}

// exact returns the number that v is written as: 0.1 is a tenth.
func exact(v value.Value) *big.Rat {
	r, ok := new(big.Rat).SetString(v.Text())
	if !ok {
		return new(big.Rat)
	}
	return r
}
