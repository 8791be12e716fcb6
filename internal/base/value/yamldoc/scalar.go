package yamldoc

import (
	"math"
	"strconv"
	"strings"

	"loki/internal/base/value"
)

// Kind is the type of a node.
type Kind uint8

// The kinds. A scalar that is quoted, or written as a block, is always a String.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Mapping
)

// String returns the kind with its article: "a string".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Int:
		return "an integer"
	case Float:
		return "a number"
	case String:
		return "a string"
	case List:
		return "a list"
	default:
		return "a mapping"
	}
}

// resolve returns the kind and value of a plain scalar.
func resolve(text string) (Kind, value.Value) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null, value.Value{}
	case "true", "True", "TRUE":
		return Bool, value.Of(true)
	case "false", "False", "FALSE":
		return Bool, value.Of(false)
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return Float, value.Value{} // JSON has no such numbers
	}
	if c := text[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		if kind, v, ok := number(text); ok {
			return kind, v
		}
	}
	return String, value.Of(text)
}

func number(text string) (Kind, value.Value, bool) {
	negative := text[0] == '-'
	digits := text
	if negative || text[0] == '+' {
		digits = text[1:]
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, value.Value{}, false
	}
	if len(digits) > 2 && digits[0] == '0' {
		if base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]]; base != 0 {
			return integer(digits[2:], base, negative)
		}
	}
	if !isDecimal(digits) {
		return 0, value.Value{}, false
	}
	v, err := value.ParseNumber(strings.TrimPrefix(text, "+"))
	if err != nil {
		return 0, value.Value{}, false // too large even for a float
	}
	if v.Kind() == value.Float && strings.ContainsAny(digits, ".eE") {
		return Float, v, true
	}
	return Int, v, true
}

// integer reads an integer of another base than ten; ok is false if it is not one.
func integer(digits string, base int, negative bool) (Kind, value.Value, bool) {
	if strings.ContainsAny(digits, "_+-") {
		return 0, value.Value{}, false
	}
	n, err := strconv.ParseUint(digits, base, 64)
	switch {
	case err != nil:
		return 0, value.Value{}, false
	case !negative:
		return Int, value.Of(n), true
	case n > 1<<63:
		return 0, value.Value{}, false
	case n == 1<<63:
		return Int, value.Of(int64(math.MinInt64)), true
	}
	return Int, value.Of(-int64(n)), true
}

// isDecimal reports whether text, without its sign, is a decimal number: digits with
// an optional fraction and exponent, and no leading zero before digits alone.
func isDecimal(text string) bool {
	whole := span(text)
	rest := text[whole:]
	if rest == "" {
		return whole == 1 || whole > 1 && text[0] != '0'
	}
	fraction := 0
	if rest[0] == '.' {
		fraction = span(rest[1:])
		rest = rest[1+fraction:]
	}
	if whole+fraction == 0 {
		return false
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && span(rest) == len(rest)
}

// span returns the number of digits text begins with.
func span(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
