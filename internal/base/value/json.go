package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of parsed JSON, so that hostile text cannot exhaust
// the stack of the recursive functions over values.
const maxDepth = 1000

// AppendJSON appends v as compact JSON to dst: members in order, nothing escaped
// that JSON does not demand. A float always has a point or an exponent.
func (v Value) AppendJSON(dst []byte) []byte {
	switch x := v.v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, x)
	case int64:
		return strconv.AppendInt(dst, x, 10)
	case uint64:
		return strconv.AppendUint(dst, x, 10)
	case float64:
		return appendFloat(dst, x)
	case string:
		return appendString(dst, x)
	case List:
		dst = append(dst, '[')
		for i := range x.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = x.items[i].AppendJSON(dst)
		}
		return append(dst, ']')
	case *Object:
		dst = append(dst, '{')
		for i := range x.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, x.members[i].Name)
			dst = append(dst, ':')
			dst = x.members[i].Value.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	panic(fmt.Sprintf("value: impossible type %T", v.v))
}

// MarshalJSON returns v as JSON; encoding/json may escape more of it.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// UnmarshalJSON sets v to the value of data. It is for use by encoding/json.
func (v *Value) UnmarshalJSON(data []byte) error {
	parsed, err := ParseJSON(data)
	if err == nil {
		*v = parsed
	}
	return err
}

// appendFloat writes the shortest digits that read back as f, as plain decimals
// from 1e-5 up to below 1e16 and with an exponent outside.
func appendFloat(dst []byte, f float64) []byte {
	start := len(dst)
	if a := math.Abs(f); a != 0 && (a < 1e-5 || a >= 1e16) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// 1e+21 and 1.5e-07 become 1e21 and 1.5e-7
		e := start + bytes.IndexByte(dst[start:], 'e') + 1
		out := e
		if dst[e] == '-' {
			out++
		}
		digits := bytes.TrimLeft(dst[e+1:], "0")
		return append(dst[:out], digits...)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

const hexDigits = "0123456789abcdef"

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// ParseJSON reads exactly one JSON value from data. Numbers without fraction and
// exponent become integers while they fit 64 bits, all others floats. Of repeated
// object members the last value counts. Invalid UTF-8 is replaced by U+FFFD.
func ParseJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := parse(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Value{}, errors.New("unexpected end of JSON")
		}
		return Value{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Value{}, fmt.Errorf("text after the JSON value, at byte %d", d.InputOffset())
	}
	return v, nil
}

func parse(d *json.Decoder, depth int) (Value, error) {
	t, err := d.Token()
	if err != nil {
		return Value{}, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth == maxDepth {
			return Value{}, fmt.Errorf("JSON nested deeper than %d levels", maxDepth)
		}
		if t == '[' {
			return parseList(d, depth+1)
		}
		return parseObject(d, depth+1)
	case json.Number:
		return ParseNumber(string(t))
	case string:
		return Value{t}, nil
	case bool:
		return Value{t}, nil
	default:
		return Value{}, nil
	}
}

func parseList(d *json.Decoder, depth int) (Value, error) {
	var items []Value
	for d.More() {
		v, err := parse(d, depth)
		if err != nil {
			return Value{}, err
		}
		items = append(items, v)
	}
	if _, err := d.Token(); err != nil {
		return Value{}, err
	}
	return adopt(items).Value(), nil
}

func parseObject(d *json.Decoder, depth int) (Value, error) {
	var members []Member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return Value{}, err
		}
		v, err := parse(d, depth)
		if err != nil {
			return Value{}, err
		}
		members = append(members, Member{t.(string), v}) // the decoder allows nothing else here
	}
	if _, err := d.Token(); err != nil {
		return Value{}, err
	}
	return adoptObject(members).Value(), nil
}

// ParseNumber returns the number that text means in JSON's or YAML's decimal notation.
func ParseNumber(text string) (Value, error) {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return Value{n}, nil
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return Value{n}, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, fmt.Errorf("number %s is out of range", text)
	}
	return Value{f}, nil
}
