package tool

import (
	"slices"
	"strings"
)

// All is the selection of everything.
const All = "all"

// Pick returns which names of a pool a selection means, in the order of the pool, and
// the entries that mean nothing. A selection is [All] or a list with commas; an entry is
// an alias, whose value is a list of names, or a name, see [Name]. Aliases come first and
// do not nest.
func Pick(selection string, alias func(name string) (list string, ok bool), pool []string) (names, unknown []string) {
	wanted := make(map[string]bool)
	add := func(entry string) bool {
		i := slices.IndexFunc(pool, func(name string) bool { return name == entry || name == Name(entry) })
		if i >= 0 {
			wanted[pool[i]] = true
		}
		return i >= 0
	}
	for entry := range entries(selection) {
		list, isAlias := alias(entry)
		switch {
		case entry == All:
			return pool, nil
		case isAlias:
			for name := range entries(list) {
				if !add(name) {
					unknown = append(unknown, name)
				}
			}
		case !add(entry):
			unknown = append(unknown, entry)
		}
	}
	for _, name := range pool {
		if wanted[name] {
			names = append(names, name)
		}
	}
	return names, unknown
}

// entries ranges over the entries of a list with commas.
func entries(list string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for entry := range strings.SplitSeq(list, ",") {
			if entry = strings.TrimSpace(entry); entry != "" && !yield(entry) {
				return
			}
		}
	}
}
