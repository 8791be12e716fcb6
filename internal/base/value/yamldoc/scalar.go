package yamldoc

import (
	"strconv"
	"strings"

	"loki/internal/base/text"
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

var kindNames = [...]string{"null", "a boolean", "an integer", "a number", "a string", "a list", "a mapping"}

// String returns the kind with its article: "a string".
func (k Kind) String() string { return kindNames[k] }

// resolve returns the kind and value of a plain scalar.
func resolve(scalar string) (Kind, value.Value) {
	switch scalar {
	case "", "~", "null", "Null", "NULL":
		return Null, value.Value{}
	case "true", "True", "TRUE":
		return Bool, value.Of(true)
	case "false", "False", "FALSE":
		return Bool, value.Of(false)
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return Float, value.Value{} // JSON has no such numbers
	}
	if c := scalar[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		if kind, v, ok := number(scalar); ok {
			return kind, v
		}
	}
	return String, value.Of(scalar)
}

func number(scalar string) (Kind, value.Value, bool) {
	negative := scalar[0] == '-'
	digits := scalar
	if negative || scalar[0] == '+' {
		digits = scalar[1:]
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, value.Value{}, false
	}
	if len(digits) > 2 && digits[0] == '0' {
		if base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]]; base != 0 {
			return integer(digits[2:], base, negative)
		}
	}
	if !decimal().MatchString(digits) {
		return 0, value.Value{}, false
	}
	v, err := value.ParseNumber(strings.TrimPrefix(scalar, "+"))
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
	sign := "+"
	if negative {
		sign = "-"
	}
	if n, err := strconv.ParseInt(sign+digits, base, 64); err == nil {
		return Int, value.Of(n), true
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return Int, value.Of(n), err == nil && !negative
}

// decimal matches decimal numbers without a sign: digits with an optional fraction and exponent, and no leading zero before digits alone.
var decimal = text.Regexp(`^(0|[1-9][0-9]*|([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$`)
