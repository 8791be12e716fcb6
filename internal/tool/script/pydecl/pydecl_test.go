package pydecl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"loki/internal/base/process"
	"loki/internal/tool/script/pydecl"
)

func all(string) bool { return true }

// reader returns a reader with the installed Python; without one the test is skipped.
func reader(t *testing.T) pydecl.Reader {
	t.Helper()
	argv, err := process.Interpreter(".py", "", nil)
	if err != nil {
		t.Skip(err)
	}
	return pydecl.Reader{Python: func() ([]string, error) { return argv, nil }, Environ: os.Environ()}
}

// declare returns the parameters schema of the only function of a source.
func declare(t *testing.T, src string) string {
	t.Helper()
	fs, err := reader(t).Parse([]byte(src), all)
	if err != nil {
		t.Fatal(err)
	}
	if len(fs) != 1 {
		t.Fatalf("%d functions", len(fs))
	}
	tool, err := fs[0].Declare("f")
	if err != nil {
		t.Fatal(err)
	}
	return string(tool.Parameters)
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct{ name, annotation, want string }{
		{"str", "str", `{"type":"string"}`},
		{"int", "int", `{"type":"integer"}`},
		{"float", "float", `{"type":"number"}`},
		{"bool", "bool", `{"type":"boolean"}`},
		{"unknown", "Path", `{"type":"string"}`},
		{"list_typing", "List[int]", `{"type":"array","items":{"type":"integer"}}`},
		{"list_generic", "list[str]", `{"type":"array","items":{"type":"string"}}`},
		{"list_bare", "list", `{"type":"array","items":{"type":"string"}}`},
		{"list_nested", "list[list[float]]", `{"type":"array","items":{"type":"array","items":{"type":"number"}}}`},
		{"list_of_literals", `List[Literal["a", 'b']]`, `{"type":"array","items":{"type":"string","enum":["a","b"]}}`},
		{"tuple", "tuple[int, ...]", `{"type":"array","items":{"type":"integer"}}`},
		{"tuple_mixed", "tuple[int, str]", `{"type":"array","items":{"type":"string"}}`},
		{"dict", "dict[str, int]", `{"type":"object"}`},
		{"dotted", "typing.List[bool]", `{"type":"array","items":{"type":"boolean"}}`},
		{"quoted", `"list[int]"`, `{"type":"array","items":{"type":"integer"}}`},
		{"annotated", `Annotated[int, "a comment"]`, `{"type":"integer"}`},
		{"literal", `Literal["foo", 'bar']`, `{"type":"string","enum":["foo","bar"]}`},
		{"literal_mixed", `Literal[1, -2, True, None, Mode.FAST]`, `{"type":"string","enum":["1","-2","True","None","Mode.FAST"]}`},
		{"literal_union", `Literal["a"] | Literal["b"]`, `{"type":"string","enum":["a","b"]}`},
		{"literal_odd", `Literal[1 + 2]`, `{"type":"string"}`},
		{"parentheses", "(int)", `{"type":"integer"}`},
		{"union_numbers", "int | float", `{"type":"number"}`},
		{"union_mixed", "Union[int, str]", `{"type":"string"}`},
		{"string_of_string", `"'int'"`, `{"type":"string"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := declare(t, "def f(x: "+tt.annotation+"):\n  'Does.'\n")
			if want := `{"type":"object","properties":{"x":` + tt.want + `},"required":["x"]}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestOptional(t *testing.T) {
	for _, annotation := range []string{"Optional[int]", "int | None", "None | int", "Union[int, None]", "typing.Optional[int]", `"int | None"`, "Optional[Optional[int]]"} {
		if got, want := declare(t, "def f(x: "+annotation+"): 'Does.'\n"), `{"type":"object","properties":{"x":{"type":"integer"}}}`; got != want {
			t.Errorf("%s: got %s", annotation, got)
		}
	}
}

// TestAccepts lists the schema that the arguments of calls are checked against.
func TestAccepts(t *testing.T) {
	for _, tt := range []struct{ name, param, want string }{
		{"no_type", "x", `{}`},
		{"any", "x: Any", `{}`},
		{"class", "x: Movie", `{}`},
		{"str", "x: str", `{"type":"string"}`},
		{"tuple", "x: tuple[int, str]", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2}`},
		{"tuple_of_any_length", "x: Tuple[int, ...]", `{"type":"array","items":{"type":"integer"}}`},
		{"tuple_without_elements", "x: tuple[()]", `{"type":"array","items":{}}`},
		{"tuples", "x: list[tuple[str, int]]", `{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"minItems":2,"maxItems":2}}`},
		{"set", "x: set[int]", `{"type":"array","items":{"type":"integer"}}`},
		{"bare_list", "x: list", `{"type":"array","items":{}}`},
		{"union", "x: int | str", `{"type":["integer","string"]}`},
		{"optional_union", "x: Optional[int | str]", `{"type":["integer","string","null"]}`},
		{"union_with_list", "x: Union[int, list[str]]", `{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"string"}}]}`},
		{"union_with_any", "x: int | Movie", `{}`},
		{"element_may_be_none", "x: list[Optional[int]]", `{"type":"array","items":{"type":["integer","null"]}}`},
		{"literals", `x: Literal[True, "a", 1, None]`, `{"enum":[true,"a",1,null,"None"]}`},
		{"literal_or_type", `x: Literal["a"] | int`, `{"anyOf":[{"type":"integer"},{"enum":["a"]}]}`},
		{"default_of_another_type", `x: int = "auto"`, `{"anyOf":[{"type":"integer"},{"enum":["auto"]}]}`},
		{"default_number", `x: str = -1.5`, `{"type":["string","number"]}`},
		{"default_list", `x: str = []`, `{"anyOf":[{"type":"string"},{"type":"array","items":{}}]}`},
		{"default_of_the_type", `x: float = 5`, `{"type":"number"}`},
		{"default_none", `x: int = None`, `{"type":"integer"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs, err := reader(t).Parse([]byte("def f("+tt.param+"): 'Does.'\n"), all)
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := strings.Cut(strings.TrimPrefix(string(fs[0].Accepts()), `{"type":"object","properties":{"x":`), `},"required":`)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRequired(t *testing.T) {
	got := declare(t, "def f(a, b=1, *, c, d: str = lambda x, y: (x, y), e: int=-1): 'Does.'\n")
	want := `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"integer"}},"required":["a","c"]}`
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestDocstring(t *testing.T) {
	src := `
# A comment does not count.
def f(name, count, tags, mode: int, level, note):
    # nor does this one
    """ Say "hello".

    Args: what it takes
        name: whom to greet: by name
        count (int, optional): how often,
            and no more than that: never
        tags list[str]: some
        mode str?: the annotation wins
        level (Literal["low", "high"]): how loud
        no colon here
    Returns:
        note: is none of the parameters
    """
`
	fs, err := reader(t).Parse([]byte(src), all)
	if err != nil {
		t.Fatal(err)
	}
	tool, err := fs[0].Declare("f")
	if err != nil {
		t.Fatal(err)
	}
	if tool.Description != "Say \"hello\".\n\nReturns:\n    note: is none of the parameters" {
		t.Errorf("description %q", tool.Description)
	}
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","description":"whom to greet: by name"},` +
		`"count":{"type":"integer","description":"how often, and no more than that: never"},` +
		`"tags":{"type":"array","description":"some","items":{"type":"string"}},` +
		`"mode":{"type":"integer","description":"the annotation wins"},` +
		`"level":{"type":"string","description":"how loud","enum":["low","high"]},` +
		`"note":{"type":"string"}},"required":["name","tags","level","note"]}`
	if got := string(tool.Parameters); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDocstringForms(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"single_quotes", `'one'`, "one"},
		{"raw", `r"""a\b"""`, `a\b`},
		{"no_escapes", `"a\tb"`, `a\tb`},
		{"bytes", `b'one'`, "one"},
		{"formatted", `f"one"`, ""},
		{"concatenated", `"one" "two"`, ""},
		{"in_parentheses", `("one")`, ""},
		{"empty", `""`, ""},
		{"none", "pass", ""},
		{"second_statement", `"one"; pass`, "one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []string{"def f(): " + tt.body + "\n", "def f():\n\t" + tt.body + "\r\n"} {
				fs, err := reader(t).Parse([]byte(src), all)
				if err != nil || len(fs) != 1 || fs[0].Description != tt.want {
					t.Errorf("%q: %+v, %v", src, fs, err)
				}
			}
		})
	}
}

func TestWhichFunctions(t *testing.T) {
	src := `
@decorated(by="x")
async def one(): pass
class C:
    def method(self): pass
if True:
    def inner(): pass
def two(): pass
def one(x): pass
three = lambda: 0
`
	fs, err := reader(t).Parse([]byte(src), all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range fs {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "two one" {
		t.Errorf("got %s", got)
	}
	if len(fs[1].Params) != 1 {
		t.Errorf("the first of two functions with one name counts")
	}
}

func TestMistakes(t *testing.T) {
	// The messages of Python differ between its versions.
	for _, tt := range []struct{ name, src, want string }{
		{"variable", "def f(*args): pass", "line 1: parameter *args: a tool cannot have a variable number of parameters"},
		{"keywords", "def f(\n  **kw): pass", "line 2: parameter **kw"},
		{"positional", "def f(a, /): pass", `line 1: "/"`},
		{"order", "def f(a=1, b): pass", "line 1: "},
		{"bracket", "x = (1,\n2", "line 1: "},
		{"mismatch", "x = (1]", "line 1: "},
		{"unmatched", "\n}", "line 2: "},
		{"string", "x = 'abc\ny", "line 1: "},
		{"long_string", "\n'''abc\n", "line 2: "},
		{"colon", "def f()\n  pass", "line 1: "},
		{"block", "if x:\ny", "line 2: "},
		{"indent", "x\n  y", "line 2: "},
		{"dedent", "if x:\n    y\n  z", "line 3: "},
		{"tabs", "if x:\n        y\n\tz", "line 3: "},
		{"two_values", "x = 1 2", "line 1: "},
		{"python2", "print 'x'", "line 1: "},
		{"no_value", "x =", "line 1: "},
		{"else", "else:\n  x", "line 1: "},
		{"try", "try:\n  x\ny", "line 3: "},
		{"character", "x = a ? b", "line 1: "},
		{"nul", "x\n\x00", "line 2: the script has a NUL byte"},
		{"utf8", "x\xff", "line 1: the text is not UTF-8"},
		{"continuation", "x = \\ 1", "line 1: "},
		{"decorator", "@x\ny = 1", "line 2: "},
		{"leading_zero", "x = 012", "line 1: "},
		{"field", "f'{x'", "line 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := reader(t).Parse([]byte(tt.src), all)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestNoDescription(t *testing.T) {
	fs, err := reader(t).Parse([]byte("\ndef f(): pass"), all)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs[0].Declare("f"); err == nil || !strings.Contains(err.Error(), "line 2: function f has no description") {
		t.Errorf("got %v", err)
	}
}

func TestBind(t *testing.T) {
	fs, err := reader(t).Parse([]byte(`
def f(a: Literal[1, "1", None], b: Optional[str], c=1, d: Optional[int] = 2, e: list[Literal[1, 2]] = []): "Does."
`), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, in, want string }{
		{"missing", `{"a":"x"}`, `{"a":"x","b":null}`},
		{"null_for_default", `{"c":null,"d":null}`, `{"d":null,"a":null,"b":null}`},
		{"literals", `{"a":"1","b":"1","e":["1","2","3"]}`, `{"a":"1","b":"1","e":[1,2,"3"]}`},
		{"others_stay", `{"a":1,"b":2,"z":{}}`, `{"a":1,"b":2,"z":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fs[0].Bind([]byte(tt.in))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	for _, in := range []string{"[]", "null", "{"} {
		if _, err := fs[0].Bind([]byte(in)); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

// TestOnlyParses: the code of a source does not run, and Python gets neither secrets nor modules from the working directory.
func TestOnlyParses(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	evil := fmt.Sprintf("open(%q, 'w').close()\n", mark)
	if err := os.WriteFile(filepath.Join(dir, "json.py"), []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	r := reader(t)
	r.Environ = append(r.Environ, "PYTHONPATH="+dir, "SOME_API_KEY=secret")
	if _, err := r.Parse([]byte(evil+"def f(x=open('"+mark+"', 'w')): 'Does.'\n"), all); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("code was run")
	}
	if runtime.GOOS == "windows" {
		return
	}
	r.Python = func() ([]string, error) { return []string{"/bin/sh", "-c", "env >" + mark + "; echo '{}'", "--"}, nil }
	if _, err := r.Parse([]byte("x"), all); err != nil {
		t.Fatal(err)
	}
	if env, err := os.ReadFile(mark); err != nil || strings.Contains(string(env), "secret") || strings.Contains(string(env), "PYTHONPATH") {
		t.Errorf("environment %s, %v", env, err)
	}
}

// TestCache: a source is read once, also by another reader; one with a mistake is read anew.
func TestCache(t *testing.T) {
	r := reader(t)
	r.Cache = t.TempDir()
	argv, _ := r.Python()
	started := 0
	r.Python = func() ([]string, error) { started++; return argv, nil }
	for _, src := range []string{"def f(): 'Does.'", "def f(): 'Does.'", "def f(", "def f("} {
		fs, err := r.Parse([]byte(src), all)
		if (err == nil) != (len(fs) == 1) {
			t.Errorf("%s: %v, %v", src, fs, err)
		}
	}
	if started != 3 {
		t.Errorf("Python was started %d times, want 3", started)
	}
	r.Python = func() ([]string, error) { return nil, errors.New("no python here") }
	if _, err := r.Parse([]byte("def g(): 'Does.'"), all); err == nil || !strings.Contains(err.Error(), "no python here") {
		t.Errorf("without Python: %v", err)
	}
}
