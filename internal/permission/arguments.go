package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// arguments are the members of a JSON object by their folded names. Tools that are part of
// the program take a member whatever the case of its letters, as encoding/json does. Only tools that take
// exact names have several members of one folded name, sorted by the name as it was written.
type arguments map[string][]argument

type argument struct {
	name  string // as it was written
	value any
}

// readArguments reads the arguments of a call. ambiguous says, in words for the model, why it
// is not known which values the tool will use: a member comes twice, or, unless the tool takes exact names, in letters of
// different case. What is no object has no arguments.
func readArguments(raw json.RawMessage, exact bool) (args arguments, ambiguous string) {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, ""
	}
	if name := repeated(json.NewDecoder(bytes.NewReader(raw))); name != "" {
		return nil, fmt.Sprintf("the arguments give %q more than once; write the call again with each name once", name)
	}
	return newArguments(members, exact)
}

func newArguments(members map[string]any, exact bool) (args arguments, ambiguous string) {
	args = make(arguments, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		folded := fold(name)
		if given := args[folded]; given != nil && !exact {
			return nil, fmt.Sprintf("the arguments give both %q and %q; write the call again with each name once", given[0].name, name)
		}
		args[folded] = append(args[folded], argument{name, members[name]})
	}
	return args, ""
}

// value returns the first member that a tool may take for name, nil if there is none.
func (args arguments) value(name string) any {
	for _, a := range args[fold(name)] {
		return a.value
	}
	return nil
}

// fold makes names equal that encoding/json takes for the same member: it compares them under
// Unicode's simple case folding.
func fold(name string) string {
	return strings.Map(smallest, name)
}

// smallest returns the smallest character that folds to the same as r.
func smallest(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// repeated returns a member name that an object in the next value of d, at any depth, has twice, and "" if there is none.
func repeated(d *json.Decoder) string {
	token, _ := d.Token() // the text is valid
	if delim, ok := token.(json.Delim); !ok || delim != '{' && delim != '[' {
		return ""
	}
	seen := make(map[any]bool)
	for d.More() {
		if token == json.Delim('{') {
			name, _ := d.Token()
			if seen[name] {
				return fmt.Sprint(name)
			}
			seen[name] = true
		}
		if name := repeated(d); name != "" {
			return name
		}
	}
	_, _ = d.Token() // the end
	return ""
}

// match reports whether all conditions of a rule on arguments hold. A rule that allows holds
// only for names as they are spelled, not for JSON lists, and for all of several values in a
// text; another one for names in any case, and if one value matches.
func (args arguments) match(r *Rule) bool {
	for _, c := range r.Arguments {
		given := args[fold(c.Name)]
		var texts []string
		for _, a := range given {
			if _, list := a.value.([]any); r.Action == Allow && (list || a.name != c.Name) {
				return false
			}
			texts = append(texts, argumentTexts(c.Name, a.value)...)
		}
		matches := func(text string) bool { return glob(c.Pattern, text) }
		if r.Action == Allow {
			if len(texts) == 0 || slices.ContainsFunc(texts, func(text string) bool { return !matches(text) }) {
				return false
			}
		} else if !slices.ContainsFunc(texts, matches) {
			return false
		}
	}
	return true
}

// listed are the arguments whose texts hold several values with commas between them.
var listed = [...]string{"recipient", "recipients", "to", "cc", "bcc"}

// argumentTexts returns the texts that the conditions on an argument are about, none if it is
// an object.
func argumentTexts(name string, value any) []string {
	switch v := value.(type) {
	case string:
		if !slices.Contains(listed[:], strings.ToLower(name)) {
			return []string{v}
		}
		parts := strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ';' })
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	case float64, bool:
		b, _ := json.Marshal(v) // cannot fail for these
		return []string{string(b)}
	case []any:
		var texts []string
		for _, element := range v {
			texts = append(texts, argumentTexts(name, element)...)
		}
		return texts
	}
	return nil
}

// pathKeys are the arguments of tools that name files.
var pathKeys = [...]string{
	"path", "paths", "file", "files", "file_path", "filename", "dir", "directory", "folder",
	"source", "destination", "target", "old_path", "new_path", "from_path", "to_path", "output_path",
}

// pathArguments returns the files that arguments name.
func pathArguments(name string, args arguments) []string {
	var paths []string
	for _, key := range pathKeys {
		for _, a := range args[fold(key)] {
			switch v := a.value.(type) {
			case string:
				paths = append(paths, v)
			case []any:
				for _, element := range v {
					if s, ok := element.(string); ok {
						paths = append(paths, s)
					}
				}
			}
		}
	}
	// A pattern of file names can lead out of the directory that it is searched in.
	if p, ok := args.value("pattern").(string); ok && name == "fs_glob" && (strings.Contains(p, "..") || filepath.IsAbs(p) || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~")) {
		paths = append(paths, p)
	}
	return paths
}
