package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "../../../docs/configuration.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a language.
func blocks(text, language string) []string {
	var list []string
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		list = append(list, block)
	}
	return list
}

func TestPageExamples(t *testing.T) {
	text := readPage(t)
	examples := blocks(text, "yaml")
	if len(examples) < 3 {
		t.Fatalf("%d YAML blocks", len(examples))
	}
	for _, example := range examples {
		if cfg := mustLoad(t, example); len(cfg.Clients) == 0 {
			t.Errorf("no clients in\n%s", example)
		}
	}
	files := blocks(text, "dotenv")
	if len(files) == 0 {
		t.Fatal("no env file")
	}
	for _, file := range files {
		if len(ParseEnvFile([]byte(file))) == 0 {
			t.Errorf("no variables in\n%s", file)
		}
	}
}

func TestPageNamesEverything(t *testing.T) {
	text := readPage(t)
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	for _, f := range clientFields {
		names = append(names, f.name)
	}
	for _, p := range platforms {
		names = append(names, p.Name)
	}
	names = append(names, typeNames()...)
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
	starred := regexp.MustCompile("`([a-z_]+)`\\\\\\*")
	var without []string
	for _, k := range keys {
		if !k.env {
			without = append(without, k.name)
		}
	}
	var marked []string
	for _, match := range starred.FindAllStringSubmatch(text, -1) {
		marked = append(marked, match[1])
	}
	slices.Sort(without)
	slices.Sort(marked)
	if !slices.Equal(without, marked) {
		t.Errorf("marked as without a variable are %q, and it is %q", marked, without)
	}
}

// TestPageVariables compares the variables that the page names with those that the
// program reads.
func TestPageVariables(t *testing.T) {
	variable := regexp.MustCompile(`LOKI_[A-Z_]+[A-Z]`)
	set := func(text string) map[string]bool {
		names := make(map[string]bool)
		for _, name := range variable.FindAllString(text, -1) {
			if !strings.HasPrefix(name, "LOKI_PATCH") {
				names[name] = true
			}
		}
		return names
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := make(map[string]bool)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(read, set(string(text)))
	}
	named := set(readPage(t))
	for name := range read {
		if !named[name] {
			t.Errorf("the page does not name %s", name)
		}
	}
	for _, k := range keys {
		read[k.variable()] = k.env
	}
	for name := range named {
		if !read[name] {
			t.Errorf("nothing reads %s", name)
		}
	}
}

// TestPageDefaults looks up the defaults that the page gives in its first table.
func TestPageDefaults(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([^|]+) \\| `(LOKI_[A-Z_]+)` \\|")
	rows := row.FindAllStringSubmatch(readPage(t), -1)
	if len(rows) != 7 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		name, value, variable := r[1], strings.Trim(r[2], "`"), r[3]
		if want := "LOKI_" + strings.ToUpper(name); variable != want {
			t.Errorf("%s has variable %s", name, variable)
		}
		if b, err := parseBool(value); err == nil && setting(t, defaults(), name) != b {
			t.Errorf("%s has not the default %v", name, b)
		}
	}
}
