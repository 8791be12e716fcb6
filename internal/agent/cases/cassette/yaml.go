package cassette

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"loki/internal/base/value"
)

// writer writes YAML that people can read: texts of several lines as block scalars, short lists and mappings on one
// line.
type writer struct{ strings.Builder }

// flowWidth is the length, in bytes, up to which a list or mapping of scalars is written on one line.
const flowWidth = 100

// member writes "key: value" at an indentation of level times two blanks.
func (w *writer) member(level int, key string, v value.Value) {
	w.indent(level)
	w.WriteString(quotedUnless(inKey(), key) + ":")
	w.value(level, v)
}

func (w *writer) indent(level int) { w.WriteString(strings.Repeat("  ", level)) }

// value writes a value behind a key or the dash of an item, which stands at level.
func (w *writer) value(level int, v value.Value) {
	if text, ok := v.AsString(); ok && isBlock(text) {
		w.block(level+1, text)
		return
	}
	if text, ok := v.AsString(); ok {
		w.WriteString(" " + quotedUnless(inBlock(), text) + "\n")
		return
	}
	if line, ok := flow(v); ok && len(line) <= flowWidth || isScalar(v) {
		w.WriteString(" " + line + "\n")
		return
	}
	if list, ok := v.AsList(); ok {
		w.WriteByte('\n')
		for _, item := range list.All() {
			w.item(level+1, item)
		}
		return
	}
	w.WriteByte('\n')
	for name, m := range v.AsObject().All() {
		w.member(level+1, name, m)
	}
}

// item writes an item of a list whose dash stands at level.
func (w *writer) item(level int, v value.Value) {
	w.indent(level)
	w.WriteByte('-')
	o := v.AsObject()
	if line, ok := flow(v); o == nil || ok && len(line) <= flowWidth {
		w.value(level, v)
		return
	}
	first := true
	for name, m := range o.All() {
		if first {
			w.WriteString(" " + quotedUnless(inKey(), name) + ":")
			w.value(level+1, m)
			first = false
			continue
		}
		w.member(level+1, name, m)
	}
}

func isScalar(v value.Value) bool {
	_, list := v.AsList()
	return !list && v.AsObject() == nil
}

// flow returns a value on one line; ok is false for one with texts of several lines, and for one that
// holds lists or mappings in lists or mappings.
func flow(v value.Value) (line string, ok bool) { return flowTo(v, 2) }

func flowTo(v value.Value, depth int) (string, bool) {
	if text, ok := v.AsString(); ok {
		return scalar(text), !strings.Contains(text, "\n")
	}
	if isScalar(v) {
		return v.String(), true
	}
	if depth == 0 {
		return "", false
	}
	var parts []string
	if list, ok := v.AsList(); ok {
		for _, item := range list.All() {
			part, ok := flowTo(item, depth-1)
			if !ok {
				return "", false
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	}
	for name, m := range v.AsObject().All() {
		part, ok := flowTo(m, depth-1)
		if !ok {
			return "", false
		}
		parts = append(parts, quotedUnless(inKey(), name)+": "+part)
	}
	return "{" + strings.Join(parts, ", ") + "}", true
}

// Texts that mean themselves without quotes: as a key, wherever else they stand, and outside of lists and mappings on one line.
var (
	inKey  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_/.$][A-Za-z0-9_/.@+$-]*$`) })
	inFlow = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z_/.$]|[0-9]+ [A-Za-z])[A-Za-z0-9_/.@+$-]*(:[A-Za-z0-9_/.@+$-]+)*( [A-Za-z0-9_/.@+$(-][A-Za-z0-9_/.@+$()-]*)*$`)
	})
	inBlock = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z_/.$(]|[0-9]+ [A-Za-z])[^:#\pC\pZ]*([:#]+[^:#\pC\pZ]+)*( +[^:#\pC\pZ]+([:#]+[^:#\pC\pZ]+)*)*$`)
	})
)

// scalar returns a text as it stands on one line, wherever that is.
func scalar(text string) string { return quotedUnless(inFlow(), text) }

// quotedUnless returns a text that plain matches as it is, and another one in quotes.
func quotedUnless(plain *regexp.Regexp, text string) string {
	if plain.MatchString(text) && !isWord(text) {
		return text
	}
	return value.Of(text).String() // JSON is YAML
}

// isWord reports whether a text would be taken for something else than a text.
func isWord(text string) bool {
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", "~", ".inf", ".nan", "-.inf", "+.inf":
		return true
	}
	return !unicode.IsLetter(rune(text[0])) && strings.IndexFunc(text, unicode.IsLetter) < 0
}

// isBlock reports whether a text is written as a block scalar: it has several lines, and all that they hold can
// be seen.
func isBlock(text string) bool {
	body := strings.TrimRight(text, "\n")
	if !strings.Contains(text, "\n") || body == "" || strings.HasPrefix(text, "\n") || strings.HasPrefix(text, " ") ||
		body != strings.TrimRight(body, " \t") { // which readers of YAML remove
		return false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && strings.TrimSpace(line) == "" || strings.HasPrefix(line, "\t") {
			return false
		}
		for _, r := range line {
			if r != '\t' && (!unicode.IsGraphic(r) || r == '\uFEFF' || r == unicode.ReplacementChar || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
				return false
			}
		}
	}
	return true
}

// block writes a text as a block scalar whose lines stand at level.
func (w *writer) block(level int, text string) {
	body := strings.TrimRight(text, "\n")
	ends := len(text) - len(body)
	w.WriteString([]string{" |-\n", " |\n", " |+\n"}[min(ends, 2)])
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			w.indent(level)
			w.WriteString(line)
		}
		w.WriteByte('\n')
	}
	w.WriteString(strings.Repeat("\n", max(0, ends-1)))
}
