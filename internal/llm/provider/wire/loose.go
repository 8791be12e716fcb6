package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// String is a string; a number becomes its digits, anything else "".
type String string

// UnmarshalJSON implements [json.Unmarshaler] and never fails.
func (s *String) UnmarshalJSON(v []byte) error {
	*s = ""
	switch c := v[0]; {
	case c == '"':
		*s = String(Unquote(v))
	case c == '-' || c >= '0' && c <= '9':
		*s = String(v)
	}
	return nil
}

// Text is a text; null becomes "" and anything else its JSON.
type Text string

// UnmarshalJSON implements [json.Unmarshaler] and never fails.
func (s *Text) UnmarshalJSON(v []byte) error {
	switch {
	case v[0] == '"':
		*s = Text(Unquote(v))
	case string(v) == "null":
		*s = ""
	default:
		*s = Text(v)
	}
	return nil
}

// Arguments are the arguments of a tool call: JSON in a string, or the JSON itself. null means "".
type Arguments string

// UnmarshalJSON implements [json.Unmarshaler] and never fails.
func (a *Arguments) UnmarshalJSON(v []byte) error { return (*Text)(a).UnmarshalJSON(v) }

// Int is a whole number, also in quotes or with a fraction; anything else is 0, and
// so is what does not fit.
type Int int

// UnmarshalJSON implements [json.Unmarshaler] and never fails.
func (n *Int) UnmarshalJSON(v []byte) error {
	*n = 0
	f, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
	if err == nil && math.Abs(f) < 1<<53 {
		*n = Int(f)
	}
	return nil
}

// Unquote returns the string that the JSON text v is, "" if it is none.
func Unquote(v []byte) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// Tolerate drops the error of [json.Unmarshal] for values of another type than
// expected: what did fit has been read all the same.
func Tolerate(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}
