package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"loki/internal/server/rest"
)

// invalid returns the error of a request whose member called param is wrong.
func invalid(param, format string, args ...any) *rest.Error {
	return &rest.Error{Status: http.StatusBadRequest, Code: "invalid_request", Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported returns the error of a request that asks for something that cannot be had.
func unsupported(param, what string) *rest.Error {
	return invalid(param, "%s: %s is not supported", param, what)
}

// decode reads the JSON object at a place of a request into the struct v, and refuses members that
// v does not have. The place is "" for the request itself. A member that is null counts as absent.
func decode(data []byte, at string, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			return invalid(at, "there is something behind the JSON object")
		}
		return nil
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = member(at, strings.Trim(name, `"`))
		return invalid(name, "unknown member %s", name)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		name := at
		if field := wrong.Field; field != "" {
			for _, embedded := range []string{"sampling.", "bookkeeping."} {
				field = strings.TrimPrefix(field, embedded)
			}
			name = member(at, field)
		}
		return invalid(name, "%s cannot be %s", orBody(name), kind(wrong.Value))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid(at, "the JSON is not complete")
	}
	return invalid(at, "%s is not valid JSON: %v", orBody(at), err)
}

// kind returns a JSON value of a kind with its article.
func kind(value string) string {
	switch word, _, _ := strings.Cut(value, " "); word {
	case "array", "object":
		return "an " + word
	case "bool":
		return "true or false"
	default:
		return "a " + word
	}
}

func orBody(place string) string {
	if place == "" {
		return "the request"
	}
	return place
}

// member returns the place of a member of the object at a place.
func member(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// element returns the place of an element of the list at a place.
func element(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

// absent reports whether a member is not there, or null.
func absent(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

// isString returns the text of a member that is one.
func isString(m json.RawMessage) (text string, ok bool) {
	if len(m) == 0 || m[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(m, &text) == nil
}

// is reports whether a member is one of some values, in compact JSON.
func is(m json.RawMessage, values ...string) bool {
	for _, v := range values {
		if string(m) == v {
			return true
		}
	}
	return false
}

// list returns the elements of a member that is a list.
func list(m json.RawMessage, at string) ([]json.RawMessage, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(m, &elements); err != nil {
		return nil, invalid(at, "%s has to be a list", at)
	}
	return elements, nil
}

// object returns a JSON Schema at a place, which has to be an object; nil if it is absent.
func object(m json.RawMessage, at string) (json.RawMessage, error) {
	if absent(m) {
		return nil, nil
	}
	if m[0] != '{' {
		return nil, invalid(at, "%s has to be an object", at)
	}
	return m, nil
}

// compact returns a member as compact JSON.
func compact(m json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, m) != nil {
		return string(m)
	}
	return b.String()
}
