package graph_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

// TestJSONSchemaFile compares the file for editors with what the program prints.
func TestJSONSchemaFile(t *testing.T) {
	golden(t, "../../../docs/graph.schema.json", string(graph.JSONSchema()))
}

// TestValidDefinitionsConform checks the graphs that users are shown, and those that come with the program.
func TestValidDefinitionsConform(t *testing.T) {
	s := jsonSchema(t)
	count := 0
	check := func(where, src string) {
		t.Helper()
		count++
		if _, _, err := graph.Read("", []byte(src), graph.Beside("../../../examples/graphs/drafts")); err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		for _, v := range s.Validate(asJSON(t, src)) {
			t.Errorf("%s: %s", where, v)
		}
	}
	for _, pattern := range []string{"testdata/examples/*.yaml", "../../../examples/*/graph.yaml", "../../../examples/graphs/*/graph.yaml", "../../../assets/agents/*/graph.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, file := range files {
			check(file, string(readFile(t, file)))
		}
	}
	pages, err := filepath.Glob("../../../docs/graph*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages, %v", err)
	}
	for _, page := range pages {
		for _, block := range strings.Split(string(readFile(t, page)), "\n```yaml\n")[1:] {
			src, _, _ := strings.Cut(block, "\n```")
			if line, _, _ := strings.Cut(src, "\n"); strings.Contains(src, "\nnodes:") {
				check(page+": "+line, src)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d definitions were checked", count)
	}
}

// TestBadDefinitionsDoNotConform checks each node of what the parser refuses, and what stands around them. What a JSON Schema
// cannot express is listed with the reason.
func TestBadDefinitionsDoNotConform(t *testing.T) {
	s := jsonSchema(t)
	const id, expression = "an id that a node of this type may not have", "the syntax of an expression"
	excepted := map[string]string{ // by name, or name and node
		"syntax": "not YAML", "tab": "not YAML", "duplicate_key": "not a mapping of JSON", "duplicate_node": "not a mapping of JSON",
		"start_missing": "start is a node",
		"id_mismatch":   "an id is the key of the node", "id_mismatch a": "see above", "order_version_first a": "see above",
		"version_number":  "1 is 1.0 in JSON",
		"edges a":         expression,
		"edges b":         expression,
		"edges_keys a":    "pick needs edges",
		"output_schema b": "a reference within a JSON Schema leads nowhere",
		"rag_ids":         id, "rag_ids graph": id, "rag_ids config": id, "rag_ids a/b": id,
		"tool tool: t, arguments: {a: .inf}": "infinity is not a value of JSON",
	}
	real := map[string]bool{}
	check := func(name, src string) {
		t.Helper()
		_, warnings, err := graph.Parse("", []byte(src))
		said := messages(err, warnings)
		if said == "" {
			return
		}
		if doc, err := yamldoc.Parse("", []byte(src)); err == nil && s.Validate(doc.Root().FiniteValue()) != nil {
			return
		}
		if excepted[name] == "" {
			t.Errorf("%s conforms, but the parser says %s", name, said)
		}
		real[name] = true
	}
	for _, file := range definitions(t, "testdata/bad") {
		name, src := strings.TrimSuffix(filepath.Base(file), ".yaml"), string(readFile(t, file))
		check(name, src)
		doc, err := yamldoc.Parse("", []byte(src))
		if err != nil {
			continue
		}
		nodes, _ := doc.Root().FiniteValue().AsObject().Get("nodes")
		for id, node := range nodes.AsObject().All() {
			one := value.ObjectOf(value.Member{Name: id, Value: node}).Value()
			check(name+" "+id, fmt.Sprintf(`{"name":"x","start":%q,"nodes":%s}`, id, one))
		}
	}
	for _, list := range []struct {
		kind string
		bad  []struct{ fields, want string }
	}{{"wait", badWaits}, {"tool", badTools}} {
		for _, tt := range list.bad {
			check(list.kind+" "+tt.fields, "name: x\nstart: a\nnodes:\n  a: {type: "+list.kind+", "+tt.fields+"}\n")
		}
	}
	for name := range excepted {
		if !real[name] {
			t.Errorf("%s is excepted, but does not conform", name)
		}
	}
}

func jsonSchema(t *testing.T) *schema.Schema {
	t.Helper()
	v, err := value.ParseJSON(graph.JSONSchema())
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, src string) value.Value {
	t.Helper()
	doc, err := yamldoc.Parse("", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Root().FiniteValue()
}
