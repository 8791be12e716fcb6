package yamldoc_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// json reads src and returns it as compact JSON, or the error.
func json(t *testing.T, src string) string {
	t.Helper()
	doc, err := yamldoc.Parse("", []byte(src))
	if err != nil {
		return err.Error()
	}
	v, ok := doc.Root().Value()
	if !ok {
		return doc.Err().Error()
	}
	return v.String()
}

func TestScalars(t *testing.T) {
	for src, want := range map[string]string{
		"true": "true", "True": "true", "TRUE": "true", "tRUE": `"tRUE"`,
		"false": "false", "False": "false", "FALSE": "false",
		"yes": `"yes"`, "no": `"no"`, "on": `"on"`, "off": `"off"`, "y": `"y"`, "n": `"n"`,
		"null": "null", "Null": "null", "NULL": "null", "~": "null", "": "null", "nULL": `"nULL"`,
		"0": "0", "7": "7", "-7": "-7", "+7": "7", "-0": "0",
		"017": `"017"`, "-017": `"-017"`, "00": `"00"`, "1_000": `"1_000"`, "0x1F": "31", "0o17": "15", "0b101": "5",
		"-0x10": "-16", "0x": `"0x"`, "0x_1": `"0x_1"`, "0xG": `"0xG"`, "0b2": `"0b2"`,
		"0x8000000000000000":   "9223372036854775808",
		"-0x8000000000000000":  "-9223372036854775808",
		"-0x8000000000000001":  `"-0x8000000000000001"`,
		"0xFFFFFFFFFFFFFFFF0":  `"0xFFFFFFFFFFFFFFFF0"`,
		"9223372036854775807":  "9223372036854775807",
		"18446744073709551615": "18446744073709551615",
		"18446744073709551616": "1.8446744073709552e19",
		"1.0":                  "1.0", "1.": "1.0", ".5": "0.5", "-.5": "-0.5", "01.5": "1.5", "1e3": "1000.0", "1E-3": "0.001", "1.5e+3": "1500.0",
		".": `"."`, "1e": `"1e"`, "e1": `"e1"`, "1.2.3": `"1.2.3"`, "1e999": `"1e999"`, "+-1": `"+-1"`, "--1": `"--1"`, "+": `"+"`,
		"inf": `"inf"`, "nan": `"nan"`, "0x1p4": `"0x1p4"`,
		"2024-01-02": `"2024-01-02"`, "2024-01-02T03:04:05Z": `"2024-01-02T03:04:05Z"`, "12:30": `"12:30"`,
		`"1"`: `"1"`, "'true'": `"true"`, `""`: `""`, `"a\tb\u00e9\n"`: `"a\tbé\n"`, "'it''s'": `"it's"`,
		"|\n  1\n": `"1\n"`, ">-\n  a\n  b\n": `"a b"`,
		"!!str 1": `"1"`, "!!int \"1\"": "1", "!!float 1": "1.0", "!!bool 'true'": "true", "! 1": `"1"`, "!!null ''": "null",
		"a # b": `"a"`, "a#b": `"a#b"`, "http://x/y": `"http://x/y"`, "{{k}}": "line 1, column 2: could not find flow map content",
	} {
		t.Run(strings.NewReplacer("\n", "_", " ", "_", "/", "_").Replace(src), func(t *testing.T) {
			if got := json(t, src); got != want {
				t.Errorf("%q is %s, want %s", src, got, want)
			}
		})
	}
}

func TestStructure(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"order_is_kept", "b: 1\na: 2\nc: {z: 1, y: 2}", `{"b":1,"a":2,"c":{"z":1,"y":2}}`},
		{"sequence_at_key_column", "a:\n- 1\n- 2\nb: 3", `{"a":[1,2],"b":3}`},
		{"nested_sequences", "- - 1\n  - 2\n-\n- a: 1\n  b: 2", `[[1,2],null,{"a":1,"b":2}]`},
		{"literal_keeps_lines", "a: |\n  x\n    y\n\n  z\n\n\nb: 1", `{"a":"x\n  y\n\nz\n","b":1}`},
		{"literal_strip_and_keep", "a: |-\n  x\n\nb: |+\n  y\n\nc: 1", `{"a":"x","b":"y\n\n","c":1}`},
		{"literal_with_indentation_indicator", "a: |2\n    x\n  y\n", `{"a":"  x\ny\n"}`},
		{"folded_paragraphs", "a: >\n  x\n  y\n\n  z\n   w\n", `{"a":"x y\nz\n w\n"}`},
		{"literal_with_hash_and_colon", "a: |\n  # no comment\n  k: v\n", `{"a":"# no comment\nk: v\n"}`},
		{"literal_with_placeholder", "a: |\n  {{x}} and {{y.z[0]}}\n", `{"a":"{{x}} and {{y.z[0]}}\n"}`},
		{"plain_over_lines", "a: x\n  y\nb: z", `{"a":"x y","b":"z"}`},
		{"double_quoted_over_lines", "a: \"x\n  y\\\n  z\"", `{"a":"x yz"}`},
		{"comments", "# a\na: 1 # b\n# c\n\nb: # d\n  - 1 # e\n# f\n", `{"a":1,"b":[1]}`},
		{"empty_flow", "a: {}\nb: []", `{"a":{},"b":[]}`},
		{"trailing_commas", "a: {x: 1,}\nb: [1,]", `{"a":{"x":1},"b":[1]}`},
		{"flow_over_lines", "a: [\n  1,\n  2\n]\nb: {\n  x: 1,\n  y: [a,\n b]\n}", `{"a":[1,2],"b":{"x":1,"y":["a","b"]}}`},
		{"keys_are_literal_text", "1: a\ntrue: b\n1.0: c\n~: d\n'q': e", `{"1":"a","true":"b","1.0":"c","~":"d","q":"e"}`},
		{"explicit_key", "? a\n: 1", `{"a":1}`},
		{"alias", "a: &x {k: 1}\nb: *x\nc: [*x, *x]", `{"a":{"k":1},"b":{"k":1},"c":[{"k":1},{"k":1}]}`},
		{"alias_of_scalar", "a: &x hi\nb: *x", `{"a":"hi","b":"hi"}`},
		{"anchor_defined_again", "a: &x 1\nb: *x\nc: &x 2\nd: *x", `{"a":1,"b":1,"c":2,"d":2}`},
		{"merge_key_is_a_key", "a: &x {k: 1}\nb:\n  <<: *x", `{"a":{"k":1},"b":{"<<":{"k":1}}}`},
		{"document_markers", "%YAML 1.2\n---\na: 1\n...\n", `{"a":1}`},
		{"only_comments", "# nothing\n", "null"},
		{"byte_order_mark", "\uFEFFa: 1", `{"a":1}`},
		{"crlf", "a: 1\r\nb: |\r\n  x\r\n  y\r\nc: 2\r\n", `{"a":1,"b":"x\ny\n","c":2}`},
		{"crlf_in_quotes", "a: 'x\r\n  y\r\n\r\n  z'\r\n", `{"a":"x y\nz"}`},
		{"not_ascii", "ключ: значение\nemoji: 🙂", `{"ключ":"значение","emoji":"🙂"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := json(t, tt.src); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	deepAliases := "a0: &a0 " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n"
	for i := 1; i < 10; i++ {
		deepAliases += fmt.Sprintf("a%d: &a%d %s*a%d%s\n", i, i, strings.Repeat("[", 100), i-1, strings.Repeat("]", 100))
	}
	bomb := "a0: &a0 " + strings.Repeat("x", 1000) + "\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	for _, tt := range []struct{ name, src, want string }{
		{"unclosed_flow", "a: [1, 2", "f.yaml:1:4: sequence end token ']' not found"},
		{"unclosed_quote", "a: 1\nb: \"x", `f.yaml:2:4: could not find end character of double-quoted text`},
		{"tab_indentation", "a:\n\tb: 1", "f.yaml:2:1: a tab is used for indentation"},
		{"two_values", "a: b: c", `f.yaml:1:4: ": " is not allowed here`},
		{"duplicate_key", "a: 1\nb: 2\na: 3", `f.yaml:3:1: a: key "a" occurs twice, first in line 1`},
		{"duplicate_nested_keys", "m:\n  k: 1\n  k: 2\nl: [{x: 1, x: 2}]", "f.yaml:3:3: m.k: key \"k\" occurs twice, first in line 2\n" +
			"f.yaml:4:12: l[0].x: key \"x\" occurs twice, first in line 4"},
		{"key_and_quoted_key_are_the_same", "a: 1\n\"a\": 2", `f.yaml:2:1: a: key "a" occurs twice, first in line 1`},
		{"unknown_alias", "a: *x", "f.yaml:1:4: a: alias *x has no anchor &x before it"},
		{"alias_inside_itself", "a: &x [*x]", "f.yaml:1:8: a[0]: alias *x is inside its own anchor"},
		{"alias_bomb", bomb, "f.yaml:6:40: a5: the aliases of the document expand to an unreasonable size"},
		{"deep_aliases", deepAliases, "f.yaml:5:9: nested deeper than 500 levels"},
		{"deep_flow", strings.Repeat("[", 5000), "f.yaml:1:1001: nested deeper than 500 levels"},
		{"deep_sequences", strings.Repeat("- ", 5000) + "a", "f.yaml:1:2001: nested deeper than 500 levels"},
		{"many_keys", strings.Repeat("a: 1\n", 30_000), "f.yaml:20001:1: a mapping with more than 20000 keys"},
		{"two_documents", "a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins here, only one is allowed"},
		{"unknown_tag", "a: !env HOME", `f.yaml:1:4: a: tag "!env" is not supported`},
		{"tag_that_does_not_fit", "a: !!int x", "f.yaml:1:4: a: tag !!int does not fit a string"},
		{"mapping_as_key", "{a: 1}: 2", "f.yaml:1:7: found an invalid key for this map"},
		{"no_key", ": 1", "f.yaml:1:1: unexpected key name"},
		{"not_utf8", "a: 1\nbé: \xff", "f.yaml:2:5: the file is not valid UTF-8"},
		{"too_large", strings.Repeat(" ", yamldoc.MaxSize+1), "f.yaml: the file has 16777217 bytes, more than the 16777216 allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := yamldoc.Parse("f.yaml", []byte(tt.src))
			if err == nil {
				t.Fatal("no error")
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(yamldoc.AsProblems(fmt.Errorf("wrapped: %w", err))) == 0 {
				t.Error("no Problem in the error")
			}
		})
	}
}

const everything = `name: demo
version: 1.0
flag: yes
on: true
count: 3
ratio: 2
wait: 30
words: [a, 1, true]
strict: [a, "1"]
empty: []
nothing: ~
data: {b: [1, 2.5], a: null}
inner:
  key: v
`

type target struct {
	name, version, flag string
	on                  bool
	count               int
	ratio               float64
	wait                time.Duration
	words, strict       []string
	data                string
}

func TestReaders(t *testing.T) {
	doc, err := yamldoc.Parse("f.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	var got target
	m := doc.Root().Map()
	m.Require("name", "count")
	m.Str("name", &got.name)
	m.Text("version", &got.version)
	m.Str("flag", &got.flag)
	m.Bool("on", &got.on)
	m.Uint("count", &got.count)
	m.Float("ratio", &got.ratio)
	m.Seconds("wait", &got.wait)
	m.Texts("words", &got.words)
	m.Strs("strict", &got.strict)
	empty := []string{"default"}
	m.Strs("empty", &empty)
	nothing := "default"
	if m.Text("nothing", &nothing) || m.Text("absent", &nothing) {
		t.Error("null and absent keys were read")
	}
	var data value.Value
	m.Value("data", &data)
	got.data = data.String()
	key := ""
	m.Map("inner").Str("key", &key)
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	if warnings := m.Done(); len(warnings) != 0 {
		t.Errorf("unexpected warnings: %v", warnings)
	}
	if empty == nil || len(empty) != 0 || nothing != "default" || key != "v" {
		t.Errorf("empty %v, nothing %q, key %q", empty, nothing, key)
	}
	if s := fmt.Sprintf("%+v", got); s != `{name:demo version:1.0 flag:yes on:true count:3 ratio:2 wait:30000000000 words:[a 1 true] strict:[a 1] data:{"b":[1,2.5],"a":null}}` {
		t.Error(s)
	}
}

func TestMismatches(t *testing.T) {
	const src = "v: %s\n"
	readers := map[string]func(m *yamldoc.Map) bool{
		"text":    func(m *yamldoc.Map) bool { return m.Text("v", new(string)) },
		"str":     func(m *yamldoc.Map) bool { return m.Str("v", new(string)) },
		"bool":    func(m *yamldoc.Map) bool { return m.Bool("v", new(bool)) },
		"percent": func(m *yamldoc.Map) bool { return m.Int("v", new(int), 0, 100) },
		"int":     func(m *yamldoc.Map) bool { return m.Int("v", new(int), math.MinInt, math.MaxInt) },
		"uint":    func(m *yamldoc.Map) bool { return m.Uint("v", new(int)) },
		"float":   func(m *yamldoc.Map) bool { return m.Float("v", new(float64)) },
		"seconds": func(m *yamldoc.Map) bool { return m.Seconds("v", new(time.Duration)) },
		"texts":   func(m *yamldoc.Map) bool { return m.Texts("v", new([]string)) },
		"strs":    func(m *yamldoc.Map) bool { return m.Strs("v", new([]string)) },
		"value":   func(m *yamldoc.Map) bool { return m.Value("v", new(value.Value)) },
		"map":     func(m *yamldoc.Map) bool { return m.Map("v") != nil },
		"list":    func(m *yamldoc.Map) bool { return m.List("v") != nil },
	}
	for _, tt := range []struct{ reader, value, want, hint string }{
		{"text", "[a]", "1:4: v: expected a text, found a list", `a text that begins with [ or - needs quotes`},
		{"text", "{k: 1}", "1:4: v: expected a text, found a mapping", `a text that contains ": " or begins with { needs quotes, or a block scalar (|)`},
		{"str", "42", "1:4: v: expected a string, found the number 42", `write the text in quotes: "42"`},
		{"str", "true", "1:4: v: expected a string, found the boolean true", `write the text in quotes: "true"`},
		{"bool", "yes", `1:4: v: expected true or false, found the string "yes"`, "booleans are true and false"},
		{"bool", `"true"`, `1:4: v: expected true or false, found the string "true"`, "write it without quotes"},
		{"int", "1.5", "1:4: v: expected a whole number, found the number 1.5", ""},
		{"int", `"5"`, `1:4: v: expected a whole number, found the string "5"`, "write it without quotes"},
		{"int", "18446744073709551615", "1:4: v: must be at least -9223372036854775808 and fit 64 bits, found the number 18446744073709551615", ""},
		{"uint", "-1", "1:4: v: must not be negative, found the number -1", ""},
		{"percent", "101", "1:4: v: must be from 0 to 100, found the number 101", ""},
		{"percent", "99999999999999999999", "1:4: v: must be from 0 to 100, found the number 99999999999999999999", ""},
		{"float", "x", `1:4: v: expected a number, found the string "x"`, ""},
		{"float", ".inf", "1:4: v: expected a number, found the number .inf", ""},
		{"seconds", "30s", `1:4: v: expected whole seconds, found the string "30s"`, "times are whole numbers of seconds, without a unit: 30"},
		{"seconds", "1.5", "1:4: v: expected whole seconds, found the number 1.5", "times are whole numbers of seconds, without a unit: 30"},
		{"seconds", "-1", "1:4: v: must not be negative, found the number -1", ""},
		{"seconds", "9223372037", "1:4: v: must be from 0 to 9223372036, found the number 9223372037", ""},
		{"texts", "a", `1:4: v: expected a list, found the string "a"`, `write a list as [a, b], or as lines that begin with "- "`},
		{"texts", "[a, ~]", "1:8: v[1]: expected a text, found null", ""},
		{"strs", "[a, 1]", "1:8: v[1]: expected a string, found the number 1", `write the text in quotes: "1"`},
		{"value", "[1, {a: .nan}]", "1:12: v[1].a: .nan cannot be expressed in JSON", ""},
		{"map", "a", `1:4: v: expected a mapping, found the string "a"`, `write a mapping as lines of "key: value"`},
		{"list", "a", `1:4: v: expected a list, found the string "a"`, `write a list as [a, b], or as lines that begin with "- "`},
	} {
		t.Run(tt.reader+"_"+tt.value, func(t *testing.T) {
			doc, err := yamldoc.Parse("f", fmt.Appendf(nil, src, tt.value))
			if err != nil {
				t.Fatal(err)
			}
			if readers[tt.reader](doc.Root().Map()) {
				t.Error("the value was accepted")
			}
			problems := doc.Errors()
			if len(problems) != 1 {
				t.Fatalf("problems: %v", problems)
			}
			if got := problems[0].Error(); got != "f:"+tt.want {
				t.Errorf("got  %s\nwant f:%s", got, tt.want)
			}
			if problems[0].Hint != tt.hint {
				t.Errorf("hint %q, want %q", problems[0].Hint, tt.hint)
			}
		})
	}
}

func TestSyntaxHints(t *testing.T) {
	for _, tt := range []struct{ name, src, hint string }{
		{"braces", "a:\n  prompt: {{topic}} please\n", `a text that begins with {{ needs quotes: "{{key}}"`},
		{"braces_in_list", "- {{topic}} please\n", `a text that begins with {{ needs quotes: "{{key}}"`},
		{"colon", "prompt: Answer: {{topic}}", `check the indentation; a text that contains ": " needs quotes, or a block scalar (|)`},
		{"tab", "a:\n  b: 1\n\tc: 2\n", "indent with spaces"},
		{"open_quote", "a: 'b\nc: 1\n", "a quote is opened here and never closed"},
		{"indentation", "a: 1\n  b: 2\n", `check the indentation; a text that contains ": " needs quotes, or a block scalar (|)`},
		{"stray_text", "a:\n  b: 1\n c\n", "check the indentation, and that a space follows each colon"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := yamldoc.Parse("f", []byte(tt.src))
			problems := yamldoc.AsProblems(err)
			if len(problems) != 1 || problems[0].Hint != tt.hint {
				t.Errorf("%v, hint %q", err, problems[0].Hint)
			}
		})
	}
}

func TestRequire(t *testing.T) {
	doc, err := yamldoc.Parse("f", []byte("m:\n  a: 1\n  b:\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := doc.Root().Map().Map("m")
	if m.Has("c") || !m.Has("b") {
		t.Error("Has is wrong")
	}
	m.Require("a", "b", "c")
	want := "f:1:1: m: required field \"c\" is missing\nf:3:3: m.b: required field \"b\" has no value"
	if got := doc.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if p, ok := errors.AsType[*yamldoc.Problem](doc.Err()); !ok || p.Pos.Line != 1 {
		t.Errorf("the first problem is %v", p)
	}
}

func TestUnknownKeys(t *testing.T) {
	doc, err := yamldoc.Parse("f", []byte("promt: x\nxyz: 1\nprompt: y\n<<: z\nmax: 1\nignored: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := doc.Root().Map()
	s := ""
	m.Text("prompt", &s)
	m.Text("max_tokens", &s)
	m.Ignore("ignored")
	m.Done()
	got := ""
	for _, w := range doc.Warnings() {
		got += w.Error() + " | " + w.Hint + "\n"
	}
	want := `f:1:1: unknown key "promt" is ignored | did you mean "prompt"?
f:2:1: unknown key "xyz" is ignored | 
f:4:1: unknown key "<<" is ignored | merge keys are not applied; repeat the keys, or use an alias for a whole value
f:5:1: unknown key "max" is ignored | did you mean "max_tokens"?
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if doc.Err() != nil {
		t.Error("warnings are no errors")
	}
}

func TestPositions(t *testing.T) {
	doc, err := yamldoc.Parse("f", []byte("ä: {b: [x, 'y', \"z\"], c: é}\nd:\n  - e: 1\n    f: |\n      text\n  - g\nh: &i [1]\nj: *i\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	var walk func(n *yamldoc.Node)
	walk = func(n *yamldoc.Node) {
		fmt.Fprintf(&got, "%d:%d %s\n", n.Pos().Line, n.Pos().Column, n.Path())
		switch n.Kind() {
		case yamldoc.Mapping:
			for e := range n.Map().All() {
				fmt.Fprintf(&got, "%d:%d key %s\n", e.KeyPos.Line, e.KeyPos.Column, e.Key)
				walk(e.Node)
			}
		case yamldoc.List:
			items, _ := n.List()
			for _, item := range items {
				walk(item)
			}
		}
	}
	walk(doc.Root())
	want := `1:1 
1:1 key ä
1:4 ä
1:5 key b
1:8 ä.b
1:9 ä.b[0]
1:12 ä.b[1]
1:17 ä.b[2]
1:23 key c
1:26 ä.c
2:1 key d
3:3 d
3:5 d[0]
3:5 key e
3:8 d[0].e
4:5 key f
4:8 d[0].f
6:5 d[1]
7:1 key h
7:7 h
7:8 h[0]
8:1 key j
8:4 j
7:8 j[0]
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestExcerpt(t *testing.T) {
	long := "k: [" + strings.Repeat("a, ", 100) + "{}]"
	for _, tt := range []struct{ name, src, want string }{
		{"plain", "a: 1\nkey: 42\n", "2 | key: 42\n  |      ^"},
		{"tab", "{a: '\t', key: 42}\r\n", "1 | {a: '\t', key: 42}\n  |      \t        ^"},
		{"wide_number", strings.Repeat("\n", 99) + "key: 42", "100 | key: 42\n    |      ^"},
		{"not_ascii", "key: {ä: 42}", "1 | key: {ä: 42}\n  |      ^"},
		{"long_line", long, "1 | …" + strings.Repeat("a, ", 20) + "{}]\n  |  " + strings.Repeat(" ", 60) + "^"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f", []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			n := doc.Root().Map().Get("key")
			if n == nil {
				n = doc.Root().Map().List("k")[100]
			}
			if got := n.Errorf("x").Excerpt(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestHideSource(t *testing.T) {
	const secret = "sk-12345"
	_, err := yamldoc.Parse("f", []byte("a: ["+secret), yamldoc.HideSource)
	if p := yamldoc.AsProblems(err); len(p) != 1 || p[0].Excerpt() != "" || strings.Contains(p[0].Error(), secret) {
		t.Errorf("syntax problem shows the source: %v", err)
	}
	doc, err := yamldoc.Parse("f", []byte("a: "+secret), yamldoc.HideSource)
	if err != nil {
		t.Fatal(err)
	}
	doc.Root().Map().Uint("a", new(int))
	p := doc.Errors()[0]
	if p.Error() != "f:1:4: a: expected a whole number, found a string" || p.Excerpt() != "" {
		t.Errorf("problem shows the source: %v\n%s", p, p.Excerpt())
	}
}

func TestNilMap(t *testing.T) {
	var m *yamldoc.Map
	s := "kept"
	if m.Text("a", &s) || m.Has("a") || m.Get("a") != nil || m.Map("a") != nil || m.List("a") != nil || m.Len() != 0 || m.Node() != nil {
		t.Error("a nil map has something")
	}
	m.Require("a")
	m.Ignore("a")
	m.Done()
	for e := range m.All() {
		t.Errorf("entry %v", e)
	}
}

func TestEmptyDocumentIsAnEmptyMapping(t *testing.T) {
	doc, err := yamldoc.Parse("f", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := doc.Root().Map()
	m.Require("a")
	if err := doc.Err(); err == nil || err.Error() != `f:1:1: required field "a" is missing` {
		t.Error(err)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"prompt", "next", "id", "max_attempts", "max_iterations", "timeout", "fallback"}
	for name, want := range map[string]string{
		"promt": "prompt", "Prompt": "prompt", "prmopt": "prompt", "nxt": "next", "nest": "next", "max": "max_attempts",
		"max-attempts": "max_attempts", "max_iteration": "max_iterations", "time": "timeout", "timeout_seconds": "timeout",
		"ip": "", "di": "", "zzz": "", "": "", "ID": "id", "callback": "fallback", "tools": "",
	} {
		if got := yamldoc.Nearest(name, known); got != want {
			t.Errorf("nearest of %q is %q, want %q", name, got, want)
		}
	}
}
