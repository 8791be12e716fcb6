package graph

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Predicate is a condition on the length of a text, counted in characters. The zero
// Predicate holds for no text.
type Predicate struct {
	op    string
	limit uint64
}

// predicateOps are the comparison operators, longer ones first.
var predicateOps = [...]string{">=", "<=", "==", ">", "<"}

// ParsePredicate reads "len(input)", one of >= <= == > <, and a decimal number that
// is not negative. White space around the operator and the whole is allowed, and
// nothing else is.
func ParsePredicate(source string) (Predicate, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(source), "len(input)")
	if !ok {
		return Predicate{}, predicateError(source)
	}
	rest = strings.TrimSpace(rest)
	for _, op := range predicateOps {
		digits, ok := strings.CutPrefix(rest, op)
		if !ok {
			continue
		}
		digits = strings.TrimSpace(digits)
		limit, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || strings.HasPrefix(digits, "+") {
			return Predicate{}, predicateError(source)
		}
		return Predicate{op, limit}, nil
	}
	return Predicate{}, predicateError(source)
}

func predicateError(source string) error {
	return fmt.Errorf("%q is not a length predicate: expected len(input), one of >= <= == > <, and a whole number, as in len(input) > 0", source)
}

// Holds reports whether text has the length asked for.
func (p Predicate) Holds(text string) bool {
	n := uint64(utf8.RuneCountInString(text))
	switch p.op {
	case ">=":
		return n >= p.limit
	case "<=":
		return n <= p.limit
	case "==":
		return n == p.limit
	case ">":
		return n > p.limit
	case "<":
		return n < p.limit
	}
	return false
}
