package schema

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/value"
)

// The official test suite of JSON Schema is part of the source of a library that is
// linked for other purposes.
func TestOfficialSuite(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Skip("the source of the library is not at hand:", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	ran := 0
	for _, draft := range []struct{ name, uri string }{
		{"draft2020-12", draft2020.uri()},
		{"draft7", draft7.uri()},
	} {
		files, err := filepath.Glob(filepath.Join(dir, draft.name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			switch name {
			case "refRemote", "vocabulary", "format":
				continue // other documents are not read; formats do not constrain
			}
			t.Run(draft.name+"_"+name, func(t *testing.T) { ran += runSuiteFile(t, file, draft.uri) })
		}
	}
	if ran < 1000 {
		t.Errorf("only %d cases were found in %s", ran, dir)
	}
}

func runSuiteFile(t *testing.T, file, uri string) (ran int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := value.ParseJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range items(groups) {
		g := group.AsObject()
		source := member(g, "schema")
		if o := source.AsObject(); o != nil {
			source = value.ObjectOf(value.Member{Name: "$schema", Value: value.Of(uri)}).Merge(o).Value()
		}
		if strings.Contains(source.String(), "json-schema.org/draft/2020-12/schema\"}") ||
			strings.Contains(source.String(), "\"$ref\":\"http://json-schema.org") {
			continue // refers to the drafts' own documents
		}
		s, err := compile(source)
		if err != nil {
			if !strings.Contains(source.String(), "http://localhost:1234/") { // the suite's server
				t.Errorf("%s: %v", stringIn(g, "description"), err)
			}
			continue
		}
		for _, c := range items(member(g, "tests")) {
			ran++
			tc := c.AsObject()
			want, _ := member(tc, "valid").AsBool()
			data := member(tc, "data")
			name := stringIn(g, "description") + "/" + stringIn(tc, "description")
			if got := s.Validate(data); (len(got) == 0) != want {
				t.Errorf("%s: valid should be %v, violations %v", name, want, got)
			}
		}
	}
	return ran
}
