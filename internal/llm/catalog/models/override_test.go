package models

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "models-override.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// shown is what a user sees of problems in file.
func shown(problems []*yamldoc.Problem, file string) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, strings.ReplaceAll(p.Error(), file, "FILE")+" | "+p.Hint)
	}
	return strings.Join(lines, "\n")
}

func ids(providers []catalog.Provider) string {
	var list []string
	for _, p := range providers {
		for _, m := range p.Models() {
			list = append(list, p.Name+"/"+string(m.Type)+"/"+m.Name)
		}
	}
	return strings.Join(list, " ")
}

const good = `
version: 1.2.3
list:
  - provider: openai
    models:
      - {name: new, input_price: 1, output_price: 2}
      - {name: vec, type: embedding}
`

func TestLoad(t *testing.T) {
	const replaced = "openai/chat/new openai/embedding/vec"
	for _, tt := range []struct {
		name, text string
		want       string // empty for the built-in list
		problems   string
	}{
		{"replaces_everything", good, replaced, ""},
		{"as_written_by_sync", `{"version":"1.2.3","list":[{"provider":"openai","models":[{"name":"new"},{"name":"vec","type":"embedding"}]}]}`, replaced, ""},
		{"version_is_text", strings.Replace(good, "1.2.3", "'1.2.3'", 1), replaced, ""},
		{"unknown_key", strings.Replace(good, "type: embedding", "type: embedding, prise: 1", 1), replaced, `FILE:7:38: list[0].models[1]: unknown key "prise" is ignored | `},
		{
			"provider_twice", good + "  - {provider: openai, models: []}\n", replaced,
			`FILE:8:5: list[1]: provider "openai" is already in the list, and this one is never used | `,
		},
		{
			"other_version_of_another_program", "# a comment\nversion: 0.9.1\nlist:\n- provider: [what, ever", "", "outdated 0.9.1",
		},
		{
			"models_twice", good + "      - {name: new}\n      - {name: vec, type: embedding}\n", replaced + " openai/chat/new openai/embedding/vec",
			`FILE:8:9: list[0].models[2]: model "new" and 1 more are in the list twice, and the second is never used | `,
		},
		{
			"other_version", strings.Replace(good, "1.2.3", "1.2.2", 1), "",
			"outdated 1.2.2",
		},
		{
			"other_version_as_written_by_sync", `{"version":"0","list":[]}`, "",
			"outdated 0",
		},
		{
			"wrong_type", strings.Replace(good, "input_price: 1", "input_price: cheap", 1), "",
			`FILE:6:34: list[0].models[0].input_price: expected a number, found the string "cheap"; the built-in list of models is used | ` + updateHint,
		},
		{
			"wrong_type_in_json", "{\"version\":\"1.2.3\",\"list\":[{\"provider\":\"p\",\"models\":[\n{\"name\":\"n\",\"max_input_tokens\":-1}]}]}", "",
			"FILE:2:32: list[0].models[0].max_input_tokens: must not be negative, found the number -1; the built-in list of models is used | " + updateHint,
		},
		{
			"negative_price_in_json", "{\"version\":\"1.2.3\",\"list\":[{\"provider\":\"p\",\"models\":[{\"name\":\"n\",\"input_price\":-1}]}]}", "",
			"FILE:1:80: list[0].models[0].input_price: a price must not be negative; the built-in list of models is used | " + updateHint,
		},
		{
			"not_yaml", "version: [", "",
			"FILE:1:10: sequence end token ']' not found; the built-in list of models is used | " + updateHint,
		},
		{
			"nothing_in_it", "", "",
			"FILE:1:1: required field \"version\" is missing; the built-in list of models is used | " + updateHint +
				"\nFILE:1:1: required field \"list\" is missing | " + updateHint,
		},
		{
			"list_alone", "- {provider: p, models: []}", "",
			"FILE:1:1: expected a mapping, found a list; the built-in list of models is used | write a mapping as lines of \"key: value\"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := write(t, tt.text)
			providers, problems, outdated := Load(file, "1.2.3")
			got := shown(problems, file)
			if outdated != "" {
				got = "outdated " + outdated
			}
			if got != tt.problems {
				t.Errorf("\n got %s\nwant %s", got, tt.problems)
			}
			if tt.want == "" {
				if len(providers) != len(BuiltinList()) {
					t.Errorf("%d providers and not the built-in ones", len(providers))
				}
			} else if got := ids(providers); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestPutAside renames a file without touching another.
func TestPutAside(t *testing.T) {
	file := write(t, "version: 0.9/1\n")
	for i, want := range []string{"models-override-0.9_1.yaml", "models-override-0.9_1-2.yaml"} {
		if i > 0 {
			if err := os.WriteFile(file, []byte("again"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		renamed, err := PutAside(file, "0.9/1")
		if err != nil || filepath.Base(renamed) != want {
			t.Errorf("renamed to %s, %v; want %s", renamed, err, want)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is still there")
	}
}

func TestLoadWithoutFile(t *testing.T) {
	for name, file := range map[string]string{"none": "", "missing": filepath.Join(t.TempDir(), "missing", "models-override.yaml")} {
		if providers, problems, _ := Load(file, "1"); len(providers) != len(BuiltinList()) || len(problems) > 0 {
			t.Errorf("%s: %d providers, %v", name, len(providers), problems)
		}
	}
}

func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir() // a directory is no file
	providers, problems, _ := Load(dir, "1")
	if len(providers) != len(BuiltinList()) || len(problems) != 1 || !strings.Contains(problems[0].Error(), "the list of models is not read: ") {
		t.Errorf("%d providers, %v", len(providers), problems)
	}
}

// TestOverrideRoundTrip writes the built-in list as an override file and reads it
// back, in the fast way and as YAML.
func TestOverrideRoundTrip(t *testing.T) {
	want := source(t)
	text, err := encodeOverride("1", want)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := parseFast(text)
	if !ok {
		t.Fatal("the fast reader refuses what the writer wrote")
	}
	doc, err := yamldoc.Parse("o", text)
	if err != nil {
		t.Fatal(err)
	}
	slow := decodeList(doc.Root().Map().Get("list"))
	for _, p := range append(doc.Errors(), doc.Warnings()...) {
		t.Error(p)
	}
	for name, got := range map[string][]provider{"fast": o.List, "yaml": slow} {
		if len(got) != len(want) {
			t.Fatalf("%s: %d providers", name, len(got))
		}
		for i := range want {
			if diff := cmp.Diff(want[i].models(), got[i].models(), sameValue); got[i].Name != want[i].Name || diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, want[i].Name, diff)
			}
		}
	}
}

// FuzzList reads any text as a list. What can be read survives being written as an
// override file; what cannot has a problem within the text.
func FuzzList(f *testing.F) {
	for _, seed := range []string{
		"", "[]", "- {provider: p, models: []}",
		"- provider: openai\n  models:\n  - name: gpt\n    type: embeddings\n    input_price: 0.1\n    cached_input_price: 1e-3\n",
		"- provider: 1\n  models:\n  - name: 4.10\n    real_name: r\n    max_input_tokens: 7\n    fallback_models: []\n    patch:\n      url: u\n      body: {a: null, b: [1.0, {c: 9007199254740993}]}\n      headers: {N: 5, R: null}\n",
		"- provider: \"\\u2028<&>\"\n  models:\n  - {name: '', system_prompt_prefix: \"a\\nb\", patch: {body: {}, headers: {}}}\n",
		"- {provider: p, models: [{name: a, type: other}, {name: a}]}\n- {provider: p, models: null}",
		"- {models: [{}]}\n- 3", "{version: 1}", "- provider: p\n  models: [{name: n, input_price: -1}]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		doc, err := yamldoc.Parse("f", []byte(src))
		if err != nil {
			return
		}
		list := decodeList(doc.Root())
		if doc.Err() != nil {
			if len(doc.Errors()) == 0 {
				t.Fatal("an error without a problem")
			}
			return
		}
		text, err := encodeOverride("v", list)
		if err != nil {
			t.Fatal(err)
		}
		o, ok := parseFast(text)
		if !ok {
			t.Fatalf("cannot be read back:\n%s", text)
		}
		if len(o.List) != len(list) {
			t.Fatalf("%d providers of %d in\n%s", len(o.List), len(list), text)
		}
		for i := range list {
			if diff := cmp.Diff(list[i].models(), o.List[i].models(), sameValue); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// FuzzOverride reads any text as an override file: the result is a list, or problems
// that say why not.
func FuzzOverride(f *testing.F) {
	for _, seed := range []string{
		good, "{", `{"version":"1","list":[{"provider":"p","models":[{"name":"n","patch":{"body":[],"headers":{"a":1}}}]}]}`,
		`{"version":"1","list":[]} x`, `{"version":null,"list":null}`, `{"version":"1","version":"2"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if v := otherVersion([]byte(src), "1"); v == "1" {
			t.Errorf("version %q is another one", v)
		}
		_, problems, ok := parseOverride("f", []byte(src))
		if !ok && len(problems) == 0 {
			t.Error("refused without a reason")
		}
	})
}

func BenchmarkLoadSynced(b *testing.B) {
	text, err := encodeOverride("1", source(b))
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "o.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		providers, problems, _ := Load(file, "1")
		if len(problems) > 0 {
			b.Fatal(problems)
		}
		runtime.KeepAlive(providers)
	}
}

// TestPage reads the override file that the page shows.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n```yaml\nversion:")
	example, _, _ := strings.Cut("version:"+rest, "\n```")
	providers, problems, _ := Load(write(t, example), "1.0.0")
	if want := "groq/chat/openai/gpt-oss-120b"; ids(providers) != want || len(problems) > 0 {
		t.Errorf("got %.80s, %v; want %s", ids(providers), problems, want)
	}
	for _, p := range BuiltinList() {
		if !strings.Contains(string(page), "`"+p.Name+"`") {
			t.Errorf("the page does not name %s", p.Name)
		}
	}
}
