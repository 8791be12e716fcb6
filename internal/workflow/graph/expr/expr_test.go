package expr_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/workflow/graph/expr"
)

// table is a state of a few keys.
type table struct{ *value.Object }

func parseState(t testing.TB, json string) table {
	t.Helper()
	v, err := value.ParseJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return table{v.AsObject()}
}

var midnight = expr.Env{Now: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}

// conformance calls do for every case of the table.
func conformance(t testing.TB, do func(t testing.TB, state table, source, want string, fails bool)) {
	t.Helper()
	file, err := os.ReadFile("testdata/conformance.txt")
	if err != nil {
		t.Fatal(err)
	}
	var state table
	cases := 0
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSpace(line)
		if json, ok := strings.CutPrefix(line, "state "); ok {
			state = parseState(t, json)
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		source, want, ok := strings.Cut(" "+line, " =>")
		if !ok {
			t.Fatalf("not a case: %s", line)
		}
		text, fails := strings.CutPrefix(want, "!")
		do(t, state, strings.TrimSpace(source), strings.TrimSpace(text), fails)
		cases++
	}
	if cases < 200 {
		t.Fatalf("only %d cases", cases)
	}
}

func TestConformance(t *testing.T) {
	conformance(t, func(t testing.TB, state table, source, want string, fails bool) {
		e, err := expr.Parse(source)
		if fails {
			if syntax, ok := errors.AsType[*expr.SyntaxError](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one with %q", source, err, want)
			} else if syntax.Offset < 0 || syntax.Offset > len(source) {
				t.Errorf("%s: offset %d is outside", source, syntax.Offset)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", source, err)
			return
		}
		expected, err := value.ParseJSON([]byte(want))
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got := e.EvalWith(state, midnight); !value.Equal(got, expected) {
			t.Errorf("%s is %s, want %s", source, got, expected)
		}
		again, err := expr.Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Errorf("%s is printed as %s, which is read as %v, %v", source, e, again, err)
		} else if got := again.EvalWith(state, midnight); !value.Equal(got, expected) {
			t.Errorf("%s is printed as %s, which is %s", source, e, got)
		}
	})
}

func TestSyntaxErrorPlaceAndHint(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		offset       int
		hint         string
	}{
		{"braces", "{{score}} > 8", 0, "without braces"},
		{"assignment", "a = 1", 2, "equality is =="},
		{"and", "a and b", 2, "and is &&"},
		{"not", "not a", 4, "not is !"},
		{"single_and", "a & b", 2, "and is &&"},
		{"function", "a && cuont(b)", 5, "did you mean count?"},
		{"unknown_function", "frobnicate(b)", 0, "loki --docs graph#expressions"},
		{"arguments", "1 + len()", 4, "write len(text, list or object)"},
		{"pattern", `a matches "("`, 10, "RE2"},
		{"chain", "1 < 2 < 3", 6, "&&"},
		{"end", "a &&", 4, ""},
		{"character", "a # b", 2, "letters A to Z"},
		{"escape", `a == "\d"`, 5, "single quotes"},
		{"not_utf8", "a\xff", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := expr.Parse(tt.source)
			syntax, ok := errors.AsType[*expr.SyntaxError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if syntax.Offset != tt.offset || !strings.Contains(syntax.Hint, tt.hint) || (tt.hint == "") != (syntax.Hint == "") {
				t.Errorf("%v at %d, hint %q; want offset %d, hint %q", err, syntax.Offset, syntax.Hint, tt.offset, tt.hint)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"longest", `"` + strings.Repeat("a", expr.MaxSource-2) + `"`, ""},
		{"too_long", `"` + strings.Repeat("a", expr.MaxSource-1) + `"`, "at most 4096 bytes"},
		{"deepest", strings.Repeat("(", expr.MaxDepth-1) + "a" + strings.Repeat(")", expr.MaxDepth-1), ""},
		{"too_deep", strings.Repeat("(", expr.MaxDepth) + "a" + strings.Repeat(")", expr.MaxDepth), "nested deeper than 64 levels"},
		{"too_many_signs", strings.Repeat("!", expr.MaxDepth) + "a", "nested deeper than 64 levels"},
		{"wide", strings.Repeat("a+", 2000) + "a", ""},
		{"long_path", "a" + strings.Repeat(".b", 2000), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := expr.Parse(tt.source)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				e.Eval(parseState(t, `{"a": 1}`))
			} else if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestWorkIsBounded evaluates expressions whose work multiplies.
func TestWorkIsBounded(t *testing.T) {
	numbers := make([]value.Value, 1<<20)
	for i := range numbers {
		numbers[i] = value.Of(i)
	}
	state := table{value.ObjectOf(
		value.Member{Name: "list", Value: value.ListOf(numbers...).Value()},
		value.Member{Name: "text", Value: value.Of(strings.Repeat("a", 1<<22))},
	)}
	for _, tt := range []struct{ name, source, ok string }{
		{"count", strings.TrimSuffix(strings.Repeat("count(list, -1)+", 200), "+"), "count(list, -1)"},
		{"any", strings.TrimSuffix(strings.Repeat("any(list)||", 200), "||"), "any(list)"},
		{"sum", strings.TrimSuffix(strings.Repeat("sum(list)+", 200), "+"), "sum(list)"},
		{"max", strings.TrimSuffix(strings.Repeat("max(list)+", 200), "+"), "max(list)"},
		{"in", strings.TrimSuffix(strings.Repeat("-1 in list||", 200), "||"), "-1 in list"},
		{"equal", strings.TrimSuffix(strings.Repeat("list!=list||", 200), "||"), "list == list"},
		{"join", `len(` + strings.Repeat("text+", 500) + `text)`, "len(text + text)"},
		{"string", strings.TrimSuffix(strings.Repeat("len(string(list))+", 200), "+"), "len(string(list))"},
		{"matches", `text matches "(a?b?c?d?e?){1000}x"`, `text matches "x"`},
		{"dynamic", `text matches ("(a?b?c?d?e?){1000}" + "x")`, `text matches ("x" + "y")`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := parse(t, tt.source)
			if v := e.Eval(state); !v.IsNull() {
				t.Errorf("%.60s is %.60s, want null for too much work", tt.source, v)
			}
			if _, err := e.Bool(state); err == nil || !strings.Contains(err.Error(), "takes too long") {
				t.Errorf("as a condition: %.80v", err)
			}
			if v := parse(t, tt.ok).Eval(state); v.IsNull() {
				t.Errorf("%s is null, although it is little work", tt.ok)
			}
		})
	}
}

func parse(t testing.TB, source string) *expr.Expr {
	t.Helper()
	e, err := expr.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBool(t *testing.T) {
	state := parseState(t, `{"score": 9, "text": "true", "done": true}`)
	for _, tt := range []struct {
		source string
		want   bool
		err    string
	}{
		{source: "score >= 8", want: true},
		{source: "score < 8"},
		{source: "done", want: true},
		{source: "approved == true"},
		{source: "approved ?? false"},
		{source: "approved", err: `the condition approved comes to null, neither true nor false: the state has no "approved" (for a default, write approved ?? false)`},
		{source: "text", err: "the condition text comes to a value of type string, neither true nor false"},
		{source: "score + 1", err: "comes to a value of type number"},
		{source: "null", err: "comes to a value of type null"},
	} {
		t.Run(tt.source, func(t *testing.T) {
			got, err := parse(t, tt.source).Bool(state)
			switch {
			case tt.err == "" && (err != nil || got != tt.want):
				t.Errorf("%v, %v, want %v", got, err, tt.want)
			case tt.err != "" && (err == nil || got || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%v, %v, want error %q", got, err, tt.err)
			}
		})
	}
}

func TestRootsAndClock(t *testing.T) {
	e := parse(t, `a.b[c] == lower(d) || a in [e, "f"] && now_is_past(a.g)`)
	if want := []string{"a", "c", "d", "e"}; !slices.Equal(e.Roots(), want) {
		t.Errorf("roots %v, want %v", e.Roots(), want)
	}
	if !e.UsesClock() || parse(t, "now_is_past == 1").UsesClock() {
		t.Error("UsesClock is wrong")
	}
	if v := parse(t, `now_is_past("2000-01-01T00:00:00Z")`).Eval(parseState(t, "{}")); !v.IsNull() {
		t.Errorf("without a clock it is %s, want null", v)
	}
}

func TestStringIsCanonical(t *testing.T) {
	for source, want := range map[string]string{
		"a   ==1":              "a == 1",
		"((a)) && (b || c)":    "a && (b || c)",
		"(a && b) || c":        "a && b || c",
		"a?.b [ 'x' ]":         `a.b["x"]`,
		"(a ?? b) ?? c":        "(a ?? b) ?? c",
		"a ?? (b ?? c)":        "a ?? b ?? c",
		"-(-a)":                "--a",
		"- 1":                  "-1",
		"(1).x":                "(1).x",
		"(a ? b : c) ? d : e":  "(a ? b : c) ? d : e",
		"a ? b : (c ? d : e)":  "a ? b : c ? d : e",
		"a - (b - c)":          "a - (b - c)",
		"(a < b) == true":      "(a < b) == true",
		"count( x ,\"y\" )>=2": `count(x, "y") >= 2`,
	} {
		if got := parse(t, source).String(); got != want {
			t.Errorf("%s is printed as %s, want %s", source, got, want)
		}
	}
}

// FuzzExpr checks that every text is either an expression or an error inside of it, that an expression is printed as one that means
// the same, and that it comes to a value for any state.
func FuzzExpr(f *testing.F) {
	conformance(f, func(_ testing.TB, state table, source, _ string, _ bool) { f.Add(source, state.Value().String()) })
	f.Fuzz(func(t *testing.T, source, json string) {
		e, err := expr.Parse(source)
		if err != nil {
			if syntax, ok := errors.AsType[*expr.SyntaxError](err); !ok || syntax.Offset < 0 || syntax.Offset > len(source) || syntax.Msg == "" {
				t.Fatalf("%q: %#v", source, err)
			}
			return
		}
		v, _ := value.ParseJSON([]byte(json))
		state := table{v.AsObject()}
		begin := time.Now()
		got := e.EvalWith(state, midnight)
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("%q took %v", source, took)
		}
		e.Check(nil, expr.Bool)
		_, _ = e.Bool(state)
		printed := e.String()
		again, err := expr.Parse(printed)
		if err != nil {
			if len(printed) > expr.MaxSource || strings.Contains(err.Error(), "nested deeper") { // spaces and quotes can make it longer
				return
			}
			t.Fatalf("%q is printed as %q: %v", source, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q is printed as %q, and that as %q", source, printed, again)
		}
		if other := again.EvalWith(state, midnight); !value.Equal(got, other) {
			t.Fatalf("%q is %s, but printed as %q it is %s", source, got, printed, other)
		}
	})
}

func BenchmarkBool(b *testing.B) {
	state := parseState(b, `{"score": 9, "category": "bug", "tries": 2, "o": {"a": {"b": [1, 2, 3]}}, "text": "an error here", "votes": ["yes", "no", "yes"]}`)
	for _, bb := range []struct{ name, source string }{
		{"compare", "score >= 8"},
		{"usual", `score >= 8 && category in ["bug", "idea"] || tries > 3`},
		{"path", "o.a.b[2] == 3"},
		{"default", "(missing ?? 0) < 3"},
		{"matches", `text matches "err(or)?"`},
		{"count", `count(votes, "yes") * 2 > len(votes)`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			e := parse(b, bb.source)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Bool(state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		parse(b, `score >= 8 && category in ["bug", "idea"] || tries > 3`)
	}
}
