package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ParseArguments returns the JSON object that a model wrote as the arguments of a call. An
// object that is valid comes back unchanged, nothing and null are the empty object, and
// an object that was written as a JSON string is taken out of it.
//
// Text that is not valid JSON is repaired once, where its meaning is clear: a Markdown fence
// around it, line breaks and other control characters in strings, a comma before a closing
// bracket, and closing brackets missing at the end. A string or number in which the text ends
// is never completed: half a command must not be run. Half of a surrogate pair becomes U+FFFD, see [CleanJSON]. The repair is for calls of complete
// replies only: in a reply that was cut off, members may be missing as well. The error says
// what is wrong, in words for the model.
func ParseArguments(text string) (json.RawMessage, error) {
	trimmed := CleanJSON(strings.TrimSpace(text))
	if trimmed == "" || trimmed == "null" {
		return json.RawMessage("{}"), nil
	}
	var problem error
	if !json.Valid([]byte(trimmed)) {
		problem = syntaxProblem(trimmed)
		repaired, ok := repair(trimmed)
		if !ok || !json.Valid([]byte(repaired)) {
			return nil, problem
		}
		trimmed = repaired
	}
	switch trimmed[0] {
	case '{':
		return json.RawMessage(trimmed), nil
	case '"':
		var inner string
		if err := json.Unmarshal([]byte(trimmed), &inner); err == nil {
			if inner = strings.TrimSpace(inner); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
				return json.RawMessage(inner), nil
			}
		}
	}
	return nil, errors.New("the arguments have to be a JSON object, such as {\"name\": \"value\"}")
}

// syntaxProblem returns an error that says where text stops being JSON.
func syntaxProblem(text string) error {
	var v json.RawMessage
	err := json.Unmarshal([]byte(text), &v)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if syntax.Offset >= int64(len(text)) {
		return fmt.Errorf("the arguments are not valid JSON: %w, after %q", err, lastBytes(text, 20))
	}
	return fmt.Errorf("the arguments are not valid JSON: %w, after %q (byte %d)", err, lastBytes(text[:syntax.Offset], 20), syntax.Offset)
}

func lastBytes(s string, n int) string {
	return strings.ToValidUTF8(s[max(0, len(s)-n):], "")
}

// repair returns text with the repairs of [ParseArguments], which may not be enough. It
// reports false if the text ends in a place that cannot be completed.
func repair(text string) (string, bool) {
	text = unfence(text)
	out := make([]byte, 0, len(text)+8)
	var open []byte   // closing brackets that are due, the innermost last
	inString := false // between quotes
	comma := -1       // where in out the comma is that was read last, -1 if something followed it
	first := false    // nothing followed the bracket that was opened last, commas aside
	for i := 0; i < len(text); i++ {
		c := text[i]
		if inString {
			switch {
			case c == '\\':
				if i+1 == len(text) || text[i+1] < ' ' {
					return "", false // was the backslash meant, or only the line break?
				}
				out = append(out, c, text[i+1])
				i++
			case c < ' ':
				out = fmt.Appendf(out, `\u%04x`, c)
			default:
				out = append(out, c)
				inString = c != '"'
			}
			continue
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			out = append(out, c)
			continue
		case ',':
			if comma >= 0 {
				return "", false
			}
			comma = len(out)
			out = append(out, c)
			continue
		case '"':
			inString = true
		case '{':
			open = append(open, '}')
		case '[':
			open = append(open, ']')
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return "", false
			}
			open = open[:len(open)-1]
			if comma >= 0 && !first {
				out = append(out[:comma], out[comma+1:]...)
			}
		}
		first = c == '{' || c == '['
		comma = -1
		out = append(out, c)
	}
	if inString || comma >= 0 || len(open) > 0 && !endsWhole(out) {
		return "", false
	}
	for _, bracket := range slices.Backward(open) {
		out = append(out, bracket)
	}
	return string(out), true
}

// endsWhole reports whether the last value of text is complete. A number could continue.
func endsWhole(text []byte) bool {
	text = bytes.TrimRight(text, " \t\r\n")
	for _, end := range [...]string{`"`, "}", "]", "true", "false", "null"} {
		if bytes.HasSuffix(text, []byte(end)) {
			return true
		}
	}
	return false
}

// unfence removes a Markdown code fence that surrounds all of text.
func unfence(text string) string {
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	if inner, ok = strings.CutSuffix(inner, "```"); !ok {
		return text
	}
	return strings.TrimSpace(strings.TrimPrefix(inner, "json"))
}

// CleanJSON returns JSON text in which each escape that is half of a surrogate pair, such as \ud83d alone, and each
// byte that is not UTF-8 is U+FFFD. encoding/json takes both for valid, and strict parsers do not.
func CleanJSON(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var b strings.Builder
	done := 0 // how much of text is in b
	for i := 0; i < len(text); {
		next := strings.IndexByte(text[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		first := unit(text[i:])
		switch {
		case !utf16.IsSurrogate(first):
			i += 2
		case utf16.DecodeRune(first, unit(text[min(i+6, len(text)):])) != utf8.RuneError:
			i += 12
		default:
			b.WriteString(text[done:i] + `\ufffd`)
			i += 6
			done = i
		}
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// unit returns the code unit of the escape \uXXXX that text begins with, 0 if it does not.
func unit(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return 0
	}
	v, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return 0
	}
	return rune(v)
}
