package value

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// RepeatedMember returns the place, such as a.b[2].c, of a member that an object in a JSON text has more than once, and whether
// there is one. decoded is what encoding/json makes of the text, which is valid: it keeps the last of such members only.
func RepeatedMember(text []byte, decoded any) (place string, ok bool) {
	if membersOf(decoded) == membersIn(text) {
		return "", false
	}
	names := repeatedIn(json.NewDecoder(bytes.NewReader(text)))
	if len(names) > deepest {
		names = names[:1]
	}
	var b strings.Builder
	for i, name := range slices.Backward(names) {
		if i < len(names)-1 && !strings.HasPrefix(name, "[") {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return b.String(), true
}

// membersOf returns how many members the objects in a decoded value have.
func membersOf(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, m := range v {
			n += membersOf(m)
		}
	case []any:
		for _, e := range v {
			n += membersOf(e)
		}
	}
	return n
}

// membersIn returns how many members the objects in a JSON text have, including repeated ones: it counts the
// colons outside of strings.
func membersIn(text []byte) (n int) {
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case c == ':' && !inString:
			n++
		}
	}
	return n
}

// deepest is how many names the place of a repeated member has at most. Of one that is deeper only its own name is returned.
const deepest = 8

// repeatedIn returns the names on the way to a repeated member in the next value, its own name first; nil if there is none.
func repeatedIn(d *json.Decoder) (place []string) {
	t, _ := d.Token() // the text was decoded before
	begin, _ := t.(json.Delim)
	seen := make(map[string]bool)
	for i := 0; begin != 0 && d.More(); i++ {
		name := "[" + strconv.Itoa(i) + "]"
		if begin == '{' {
			t, _ := d.Token()
			name, _ = t.(string)
			if seen[name] {
				return []string{name}
			}
			seen[name] = true
		}
		if place = repeatedIn(d); place != nil {
			return append(place, name)
		}
	}
	if begin != 0 {
		_, _ = d.Token()
	}
	return nil
}
