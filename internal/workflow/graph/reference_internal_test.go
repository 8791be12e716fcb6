package graph

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReference compares the fields that Reference lists with those that the parser reads: each word in its source is tried as a
// field of the top level, of the settings and of each type of node.
func TestReference(t *testing.T) {
	t.Parallel()
	words := literals(t)
	read := func(format string) []string {
		var known []string
		for _, word := range words {
			if isRead(fmt.Sprintf(format, word)) {
				known = append(known, word)
			}
		}
		return known
	}
	check := func(where string, listed, known []string) {
		t.Helper()
		slices.Sort(listed)
		if listed = slices.Compact(listed); !slices.Equal(listed, known) {
			t.Errorf("%s: the reference lists\n%q, the parser reads\n%q", where, listed, known)
		}
	}
	check("top level", slices.Clone(topFields), read("%s: 1\n"))
	check("settings", slices.Clone(settingFields), read("settings: {%s: 1}\n"))
	text := Reference()
	for _, kind := range Types {
		listed := slices.Concat(commonFields, requiredFields[kind], optionalFields[kind])
		check(string(kind), listed, read("nodes: {a: {type: "+string(kind)+", %s: 1}}\n"))
		if purposes[kind] == "" || !strings.Contains(text, "\ntype "+string(kind)+": ") {
			t.Errorf("the reference does not say what %s nodes do", kind)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasSuffix(line, ": ") {
			t.Errorf("the reference does not say what a field holds: %s", line)
		}
	}
	used := map[string]bool{}
	for _, l := range allLayouts() {
		for _, name := range slices.Concat(l.required, l.optional) {
			switch own := l.name + "." + name; {
			case fields[own].holds != "":
				used[own] = true
			case fields[name].holds != "":
				used[name] = true
			default:
				t.Errorf("nothing says what %s of %s holds", name, l.name)
			}
		}
	}
	for name := range fields {
		if !used[name] {
			t.Errorf("the table explains %s, which nothing has", name)
		}
	}
}

// allLayouts returns the layouts of everything in a definition that has fields.
func allLayouts() []layout {
	all := append([]layout{root}, layouts...)
	for _, kind := range Types {
		all = append(all, nodeOf(kind))
	}
	return all
}

// literals returns the words in quotes in the source of the package, ascending.
func literals(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`"([a-z][a-z_]*)"`)
	var words []string
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(src), -1) {
			words = append(words, m[1])
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// isRead reports whether the parser reads all keys of src: it warns of none. Their values may be wrong.
func isRead(src string) bool {
	_, warnings, _ := Parse("", []byte(src))
	return len(warnings) == 0
}
