package permission

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/text/pattern"
	"loki/internal/base/value"
)

// arguments are the members of a JSON object, sorted by their names. Tools that are part of the program take a member whatever the
// case of its letters, as encoding/json does.
type arguments []argument

type argument struct {
	name  string
	value any
}

// readArguments reads the arguments of a call. ambiguous says, in words for the model, why it
// is not known which values the tool will use: a member comes twice, or, unless the tool takes exact names, in letters of
// different case. What is no object has no arguments.
func readArguments(raw json.RawMessage, exact bool) (args arguments, ambiguous string) {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return nil, ""
	}
	if place, ok := value.RepeatedMember(raw, members); ok {
		return nil, fmt.Sprintf("the arguments give %q more than once; write the call again with each name once", place)
	}
	return newArguments(members, exact)
}

func newArguments(members map[string]any, exact bool) (args arguments, ambiguous string) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if given := args.argumentsFor(name); len(given) > 0 && !exact {
			return nil, fmt.Sprintf("the arguments give both %q and %q; write the call again with each name once", given[0].name, name)
		}
		args = append(args, argument{name, members[name]})
	}
	return args, ""
}

// argumentsFor returns the members that a tool may take for name.
func (args arguments) argumentsFor(name string) (found []argument) {
	for _, a := range args {
		if strings.EqualFold(a.name, name) {
			found = append(found, a)
		}
	}
	return found
}

// value returns the first member that a tool may take for name, nil if there is none.
func (args arguments) value(name string) any {
	for _, a := range args.argumentsFor(name) {
		return a.value
	}
	return nil
}

// match reports whether all conditions of a rule on arguments hold. A rule that allows holds
// only for names as they are spelled, not for JSON lists, and for all of several values in a
// text; another one for names in any case, and if one value matches.
func (args arguments) match(r *Rule) bool {
	for _, c := range r.Arguments {
		var texts []string
		for _, a := range args.argumentsFor(c.Name) {
			if _, list := a.value.([]any); r.Action == Allow && (list || a.name != c.Name) {
				return false
			}
			texts = append(texts, argumentTexts(c.Name, a.value)...)
		}
		decides := func(text string) bool { return pattern.Text(c.Pattern, text) != (r.Action == Allow) }
		if r.Action == Allow && len(texts) == 0 || slices.ContainsFunc(texts, decides) == (r.Action == Allow) {
			return false
		}
	}
	return true
}

// argumentTexts returns the texts that the conditions on an argument are about, none if it is an object. Those of some arguments hold
// several values with commas between them.
func argumentTexts(name string, given any) (texts []string) {
	switch v := given.(type) {
	case string:
		if !slices.Contains([]string{"recipient", "recipients", "to", "cc", "bcc"}, strings.ToLower(name)) {
			return []string{v}
		}
		for _, part := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ';' }) {
			texts = append(texts, strings.TrimSpace(part))
		}
	case float64, bool:
		b, _ := json.Marshal(v) // cannot fail for these
		texts = []string{string(b)}
	case []any:
		for _, element := range v {
			texts = append(texts, argumentTexts(name, element)...)
		}
	}
	return texts
}

// pathKeys are the arguments of tools that name files.
var pathKeys = strings.Fields(`path paths file files file_path filename dir directory folder source destination target old_path new_path from_path to_path output_path`)

// pathArguments returns the files that arguments name.
func pathArguments(name string, args arguments) (paths []string) {
	for _, key := range pathKeys {
		for _, a := range args.argumentsFor(key) {
			paths = append(paths, argumentTexts(key, a.value)...)
		}
	}
	// A pattern of file names can lead out of the directory that it is searched in.
	if p, ok := args.value("pattern").(string); ok && name == "fs_glob" && (strings.Contains(p, "..") || filepath.IsAbs(p) || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~")) {
		paths = append(paths, p)
	}
	return paths
}
