package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readPage returns the pages about the configuration.
func readPage(t *testing.T) string {
	t.Helper()
	var all []byte
	for _, page := range []string{"settings.md", "configuration.md"} {
		text, err := os.ReadFile(filepath.Join("../../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
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
	guide, err := os.ReadFile("../../../docs/guide-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	examples = append(examples, blocks(string(guide), "yaml")...)
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

// TestPageOfSettings compares the rows of settings.md with the settings: F is in the file, V has a variable.
func TestPageOfSettings(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]+) \\| ([A-Z ]+) \\| [^|]+ \\|$").FindAllStringSubmatch(readPage(t), -1)
	listed := make(map[string]bool)
	for _, row := range rows {
		name, value, places := row[1], strings.Trim(row[2], "`"), strings.Fields(row[3])
		if listed[name] {
			t.Errorf("%s is on the page twice", name)
		}
		listed[name] = true
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		if inFile := i >= 0 || name == "clients" || name == "api"; inFile != slices.Contains(places, "F") {
			t.Errorf("%s is set in %q", name, places)
		}
		if i < 0 {
			continue
		}
		if keys[i].env != slices.Contains(places, "V") {
			t.Errorf("%s is set in %q", name, places)
		}
		switch is := reflect.Indirect(reflect.ValueOf(keys[i].field(defaults()))).Interface().(type) {
		case bool:
			if value != strconv.FormatBool(is) {
				t.Errorf("%s has the default %v, the page says %s", name, is, value)
			}
		case int:
			if is > 0 && value != strconv.Itoa(is) {
				t.Errorf("%s has the default %d, the page says %s", name, is, value)
			}
		}
	}
	for _, k := range keys {
		if !listed[k.name] {
			t.Errorf("settings.md lacks %s", k.name)
		}
	}
}
