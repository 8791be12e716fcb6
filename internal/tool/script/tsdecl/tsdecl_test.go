package tsdecl_test

import (
	"os"
	"strings"
	"testing"

	"loki/internal/tool/script/signature"
	"loki/internal/tool/script/tsdecl"
)

func all(string) bool { return true }

// declare returns the parameters schema of the only function of a source.
func declare(t *testing.T, src string) string {
	t.Helper()
	fs, err := tsdecl.Parse([]byte(src), all)
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
	for _, tt := range []struct{ name, typ, want string }{
		{"string", "string", `{"type":"string"}`},
		{"number", "number", `{"type":"number"}`},
		{"boolean", "boolean", `{"type":"boolean"}`},
		{"any", "any", `{"type":"string"}`},
		{"named", "Path.Like<string, number>", `{"type":"string"}`},
		{"brackets", "string[]", `{"type":"array","items":{"type":"string"}}`},
		{"generic", "Array<number>", `{"type":"array","items":{"type":"number"}}`},
		{"readonly", "readonly boolean[]", `{"type":"array","items":{"type":"boolean"}}`},
		{"nested", "Array<Array<number>>", `{"type":"array","items":{"type":"array","items":{"type":"number"}}}`},
		{"array_of_union", "('a' | 'b')[]", `{"type":"array","items":{"type":"string","enum":["a","b"]}}`},
		{"parentheses", "((string))", `{"type":"string"}`},
		{"literals", `"foo" | 'bar'`, `{"type":"string","enum":["foo","bar"]}`},
		{"literals_leading_bar", `| "foo" | ("bar" | "foo")`, `{"type":"string","enum":["foo","bar"]}`},
		{"one_literal", `"foo"`, `{"type":"string","enum":["foo"]}`},
		{"numbers", `1 | -2 | 0.5`, `{"type":"string","enum":["1","-2","0.5"]}`},
		{"truth", `true`, `{"type":"string","enum":["true"]}`},
		{"union_first", "string | number", `{"type":"string"}`},
		{"union_first_number", "number | string", `{"type":"number"}`},
		{"literal_or_string", `"a" | string`, `{"type":"string"}`},
		{"object", "{ a: string; b: number }", `{"type":"object"}`},
		{"record", "Record<string, number>", `{"type":"object"}`},
		{"tuple", "[string, number]", `{"type":"array","items":{"type":"string"}}`},
		{"function", "(a: string, b?: number) => void", `{"type":"string"}`},
		{"constructor", "abstract new <T>(a: T) => Date", `{"type":"string"}`},
		{"intersection", "A & { b: string }", `{"type":"string"}`},
		{"conditional", "T extends string ? number : boolean", `{"type":"string"}`},
		{"property", `Thing["name"][]`, `{"type":"array","items":{"type":"string"}}`},
		{"query", "keyof typeof table", `{"type":"string"}`},
		{"imported", `import("x").Y<string>`, `{"type":"string"}`},
		{"template", "`a${string}`", `{"type":"string"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := declare(t, "/** Does. */ export function f(x: "+tt.typ+"): Promise<{ a: string }> {}")
			if want := `{"type":"object","properties":{"x":` + tt.want + `},"required":["x"]}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestAccepts lists the schema that the arguments of calls are checked against.
func TestAccepts(t *testing.T) {
	for _, tt := range []struct{ name, param, want string }{
		{"no_type", "x", `{}`},
		{"any", "x: any", `{}`},
		{"unknown", "x: unknown", `{}`},
		{"interface", "x: Movie", `{}`},
		{"string", "x: string", `{"type":"string"}`},
		{"tuple", "x: [number, string]", `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"minItems":2,"maxItems":2}`},
		{"tuple_with_names", "x: [a: number, b?: string]", `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"minItems":1,"maxItems":2}`},
		{"tuple_optional", "x: [number, string?]", `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"minItems":1,"maxItems":2}`},
		{"tuple_open", "x: [number, ...string[]]", `{"type":"array","prefixItems":[{"type":"number"}],"minItems":1}`},
		{"tuples", "x: [string, number][]", `{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"minItems":2,"maxItems":2}}`},
		{"union", "x: number | string", `{"type":["number","string"]}`},
		{"union_with_any", "x: number | Movie", `{}`},
		{"element_may_be_null", "x: (number | null)[]", `{"type":"array","items":{"type":["number","null"]}}`},
		{"literals", `x: "a" | 1 | true | null`, `{"enum":[null,"a",1,true]}`},
		{"literal_or_type", `x: "a" | number`, `{"anyOf":[{"type":"number"},{"enum":["a"]}]}`},
		{"template", "x: `a${string}`", `{"type":"string"}`},
		{"default_of_another_type", `x: number = "auto"`, `{"anyOf":[{"type":"number"},{"enum":["auto"]}]}`},
		{"default_of_the_type", `x: number = 5`, `{"type":"number"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs, err := tsdecl.Parse([]byte("/** Does. */ export function f("+tt.param+") {}"), all)
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

func TestOptional(t *testing.T) {
	for _, param := range []string{"x?: number", "x: number | null", "x: undefined | number", "x: number | void", "x: number = 1", "x: (number | null)"} {
		if got, want := declare(t, "/** Does. */ export function f("+param+") {}"), `{"type":"object","properties":{"x":{"type":"number"}}}`; got != want {
			t.Errorf("%s: got %s", param, got)
		}
	}
	if got, want := declare(t, `/** Does. */ export function f(x: "a" | "b" | null) {}`), `{"type":"object","properties":{"x":{"type":"string","enum":["a","b"]}}}`; got != want {
		t.Errorf("literals and null: got %s", got)
	}
}

func TestDefaults(t *testing.T) {
	got := declare(t, `/** Does. */ export function f(a = new Map<string, number>(), b = (x: string, y = [1, 2]) => x, c = 1 < 2, public d = "x,)", e: string) {}`)
	want := `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"}},"required":["e"]}`
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestComment(t *testing.T) {
	src := `
/** Not this one. */
/**
 * Say hello
 *   to somebody.
 *
 * @param name - whom: to greet
 * @param {number} [count] how often
 * @param {string} tags? some
 * @param name the last one wins
 * @returns what @param says
 */
export default async function f<T extends object = {}>(name: string, count?: number, tags?: string[]): Promise<string> {}
`
	fs, err := tsdecl.Parse([]byte(src), all)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fs[0].Description, "Say hello\nto somebody."; got != want {
		t.Errorf("description %q", got)
	}
	tool, err := fs[0].Declare("f")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"name":{"type":"string","description":"the last one wins"},"count":{"type":"number"},` +
		`"tags":{"type":"array","description":"some","items":{"type":"string"}}},"required":["name"]}`
	if got := string(tool.Parameters); got != want {
		t.Errorf("got %s", got)
	}
}

func TestWhichComment(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"before", "/** One. */ export function f() {}", "One."},
		{"comment_between", "/** One. */ // two\nexport function f() {}", ""},
		{"statement_between", "/** One. */ let x;\nexport function f() {}", ""},
		{"plain", "/* One. */ export function f() {}", ""},
		{"tags_only", "/** @param x - y */ export function f(x) {}", ""},
		{"inside", "export /** One. */ function f() {}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs, err := tsdecl.Parse([]byte(tt.src), all)
			if err != nil || len(fs) != 1 || fs[0].Description != tt.want {
				t.Errorf("got %+v, %v", fs, err)
			}
		})
	}
}

func TestWhichFunctions(t *testing.T) {
	src := `

#!/usr/bin/env bun
export function one(a: string): string;
export function one(a: number): string;
export function one(a: any) { return /[/}]/.test(a) ? ` + "`}${ {a: `}`}.a }`" + ` : "}"; }
function hidden() {}
export const arrow = () => 1, expr = function () {};
export class C { method() {} }
export declare function declared(): void;
export function* generator() {}
export default function () {}
export { hidden };
namespace N { export function inner() {} }
export async function two() {}
`
	fs, err := tsdecl.Parse([]byte(src), all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range fs {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "one two" {
		t.Errorf("got %s", got)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"rest", "\nexport function f(...args: string[]) {}", "line 2: parameter ...args: a tool cannot have a variable number"},
		{"object", "export function f({ a, b }: { a: string }) {}", "line 1: a tool cannot destructure its parameters"},
		{"array", "export function f([a]: string[]) {}", "line 1: a tool cannot destructure its parameters"},
		{"this", "export function f(this: Window) {}", "line 1: a tool cannot have a parameter called this"},
		{"comma", "export function f(a b) {}", "line 1: unexpected b"},
		{"type", "export function f(a: ) {}", "line 1: unexpected )"},
		{"default", "export function f(a = ) {}", "line 1: unexpected )"},
		{"bracket", "f(1,\n", "line 1: ( is never closed"},
		{"mismatch", "f(1]", "line 1: ] does not match ( of line 1"},
		{"unmatched", "\n}", "line 2: unmatched }"},
		{"string", "x = 'abc\ny'", "line 1: a string does not end on its line"},
		{"template", "\n`abc${x", "line 2: a template is never closed"},
		{"comment", "x /* y", "line 1: a comment is never closed"},
		{"regex", "x = /abc", "line 1: a regular expression is never closed"},
		{"jsx", "export function f() { return <div>hello</div>; }", "line 1: "},
		{"jsx_empty", "export function f() { return <div />; }", "line 1: "},
		{"two_values", "x = 1 2", "line 1: unexpected 2"},
		{"misspelled", "retrun x", "line 1: unexpected x"},
		{"no_value", "x = ;", "line 1: unexpected ;"},
		{"number", "x = 1a", "line 1: invalid number 1a"},
		{"character", "x = \x01", `line 1: unexpected '\x01'`},
		{"nul", "x\n\x00", "line 2: the script has a NUL byte"},
		{"utf8", "x \xff", "line 1: the text is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tsdecl.Parse([]byte(tt.src), all)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestBind(t *testing.T) {
	fs, err := tsdecl.Parse([]byte(`/** Does. */ export function f(a: 1 | "1" | true, b: string | null, c?: number, d: number = 1) {}`), all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fs[0].Bind([]byte(`{"a":"true","c":null,"d":null}`))
	if want := `{"a":true,"b":null}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("testdata/broken.ts")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(src))
	for _, s := range []string{
		"/** D.\n * @param x - y */export function f(x: 'a' | 1 | null = 1, y?: Array<string>[]) {}", "export", "export function", "export function f", "export function f<",
		"export function f(x: (", "export function f(x:{}): {} {}", "`${`${a}`}`", "`${", "/[/]/g", "a</b", "export function f(x: A<B<", "export function f(x: -", "#!", "export function f(a: import", "export function f(x: null[]) {}", "\\u{61}", "x?.1:2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		fs, err := tsdecl.Parse([]byte(src), all)
		if err != nil {
			return
		}
		for _, fn := range fs {
			if _, err := fn.Declare(signature.Normal(fn.Name)); err != nil {
				continue
			}
			if _, err := fn.Bind([]byte(`{"x":null,"a":["1"]}`)); err != nil {
				t.Errorf("%q: %v", src, err)
			}
		}
	})
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		char        string
		start, part bool
	}{
		{"a", true, true},
		{"é", true, true},
		{"Ⅷ", true, true},
		{"\u2118", true, true},
		{"$", true, true},
		{`\u0041`, true, true},
		{`\u{41}`, true, true},
		{"1", false, true},
		{"\u0301", false, true},
		{"_", true, true},
		{"·", false, true},
		{"-", false, false},
		{" ", false, false},
	} {
		for name, want := range map[string]bool{tt.char + "x": tt.start, "x" + tt.char: tt.part} {
			fs, err := tsdecl.Parse([]byte("/** Does. */ export function "+name+"() {}"), all)
			if got := err == nil && len(fs) == 1 && fs[0].Name == name; got != want {
				t.Errorf("%q: got %v, %v; want %t", name, fs, err, want)
			}
		}
	}
}
