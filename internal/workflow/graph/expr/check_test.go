package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph/expr"
)

// schemas are the types of the keys that the cases of TestCheck know.
const schemas = `{
	"score": {"type": "integer"},
	"category": {"enum": ["bug", "idea", "question"]},
	"kind": {"const": "report"},
	"done": {"type": "boolean"},
	"title": {"type": "string"},
	"maybe": {"type": ["string", "null"]},
	"either": {"type": ["string", "number"]},
	"tags": {"type": "array", "items": {"type": "string"}},
	"levels": {"type": "array", "items": {"enum": [1, 2, 3]}},
	"anything": {"type": "array"},
	"user": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "additionalProperties": false},
	"open": {"type": "object", "properties": {"n": {"type": "number"}}},
	"any": {}
}`

func types(t testing.TB) expr.Types {
	known := parseState(t, schemas)
	return func(key string) (expr.Type, bool) {
		schema, ok := known.Get(key)
		return expr.TypeOf(schema), ok
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		source string
		want   string // "offset message; hint", several separated by " | "; empty for none
	}{
		{"score >= 8", ""},
		{"score == 8.5", ""},
		{"score == null", ""},
		{"score != null && score > 1", ""},
		{`score == "8"`, "6 this is always false: a number is compared with a text"},
		{`score != "8"`, "6 this is always true: a number is compared with a text"},
		{`"8" < score`, "4 this is always false: a text is compared with a number"},
		{`either < 8`, ""},
		{`done > false`, "5 > takes a number or a text, and finds null or a boolean | 5 > takes a number or a text, and finds a boolean"},
		{`category == "bug"`, ""},
		{`category == null`, ""},
		{`category == "bgu"`, `9 this is always false: the value is never "bgu"; did you mean "bug"? valid are bug, idea, question`},
		{`"buggy" != category`, `8 this is always true: the value is never "buggy"; did you mean "bug"? valid are bug, idea, question`},
		{`kind == "x"`, `5 this is always false: the value is never "x"; valid are report`},
		{`category == kind`, ""}, // both may be missing
		{`category < "z"`, ""},
		{`category in ["bug", "x"]`, ""},
		{`category in ["a", "x"]`, `9 this is always false: the value is never "a"; valid are bug, idea, question`},
		{`category in [1]`, "9 this is always false: a number is compared with a text"},
		{`score in tags`, "6 this is always false: a text is compared with a number"},
		{`score in "123"`, "6 in takes a text, and finds null or a number"},
		{`title in tags`, ""},
		{`score in anything`, ""},
		{`any in levels`, ""},
		{`4 in levels`, "2 this is always false: the value is never 4; valid are 1, 2, 3"},
		{`levels contains 3.0`, ""},
		{`title contains "a"`, ""},
		{`score contains 1`, "6 contains takes a text or a list or an object, and finds null or a number | 6 contains takes a text, and finds a number"},
		{`"name" in user`, ""},
		{`user.name == "a"`, ""},
		{`user["age"] > 1`, ""},
		{`user.nmae == "a"`, `4 the object has no member "nmae"; did you mean "name"? valid are age, name`},
		{`user.name.first == "a"`, `9 . takes an object, and finds null or a text`},
		{`user.age == "a"`, "9 this is always false: a number is compared with a text"},
		{`open.x == 1`, ""},
		{`open.n == "1"`, "7 this is always false: a number is compared with a text"},
		{`tags[0] == 1`, "8 this is always false: a text is compared with a number"},
		{`title[0] == "a"`, `5 [] takes a list or an object, and finds null or a text`},
		{`nothing == 1`, `0 nothing writes "nothing", so it is always null`},
		{`title matches "a"`, ""},
		{`score matches "1"`, "6 matches takes a text, and finds null or a number"},
		{"score + 1 > 2", ""},
		{"title + 1 > 2", ""},
		{"done + 1 > 2", "5 + takes a number or a text, and finds null or a boolean"},
		{"-title > 2", "0 - takes a number, and finds null or a text"},
		{"score", "0 the result is null or a number, and must be a boolean"},
		{"title + title", "0 the result is a number or a text, and must be a boolean"},
		{"done", ""},
		{"done ?? false", ""},
		{"!score", "0 ! takes a boolean, and finds null or a number"},
		{"done && title", "5 && takes a boolean, and finds null or a text"},
		{"score ? done : done", "6 ? takes a boolean, and finds null or a number"},
		{"done ? score : title", "0 the result is null or a number or a text, and must be a boolean"},
		{"done ? score : done", ""},
		{"len(tags) > 1", ""},
		{"len(score) > 1", "0 len takes a text or a list or an object, and finds null or a number"},
		{"count(tags) > 1", ""},
		{"count(title) > 1", "0 count takes a list, and finds null or a text"},
		{"now_is_past(title)", ""},
		{"len(title)", "0 the result is a number, and must be a boolean"},
		{"any", ""},
		{"any == 1 && any.x[3] < any", ""},
	} {
		t.Run(tt.source, func(t *testing.T) { check(t, types(t), tt.source, tt.want) })
	}
}

// TestCheckWithoutTypes finds what is wrong whatever the state is.
func TestCheckWithoutTypes(t *testing.T) {
	for source, want := range map[string]string{
		"a == 1":          "",
		"a":               "",
		"1 == '1'":        "2 this is always false: a number is compared with a text",
		"1":               "0 the result is a number, and must be a boolean",
		"lower(a) == 1":   "9 this is always false: a text is compared with a number",
		"[1, 2] == 3":     "7 this is always false: a list is compared with a number",
		"!a in [1]":       "3 this is always false: a number is compared with a boolean",
		"a in ['x', 'y']": "",
		"len(3) > a":      "0 len takes a text or a list or an object, and finds a number",
	} {
		t.Run(source, func(t *testing.T) { check(t, nil, source, want) })
	}
}

func check(t *testing.T, types expr.Types, source, want string) {
	t.Helper()
	var got []string
	for _, p := range parse(t, source).Check(types, expr.Bool) {
		got = append(got, strings.TrimSuffix(fmt.Sprintf("%d %s; %s", p.Offset, p.Msg, p.Hint), "; "))
	}
	if found := strings.Join(got, " | "); found != want {
		t.Errorf("%s:\n got %s\nwant %s", source, found, want)
	}
}

func TestTypeOfOpenSchema(t *testing.T) {
	for _, schema := range []string{`{}`, `true`, `{"type": []}`, `{"type": 7}`, `null`} {
		v, err := value.ParseJSON([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := expr.TypeOf(v); got.Kinds != 0 || got.Enum != nil || got.Members != nil || got.Closed || got.Items != nil {
			t.Errorf("%s describes %+v, want anything", schema, got)
		}
	}
}
