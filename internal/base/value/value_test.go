package value

import (
	"encoding/json"
	"math"
	"sync"
	"testing"
)

func TestText(t *testing.T) {
	for _, tt := range []struct{ name, json, want string }{
		{"string", `"a\nb"`, "a\nb"},
		{"int", `42`, "42"},
		{"largest_int64", `9223372036854775807`, "9223372036854775807"},
		{"uint64", `18446744073709551615`, "18446744073709551615"},
		{"beyond_uint64", `18446744073709551616`, "1.8446744073709552e19"},
		{"negative", `-7`, "-7"},
		{"whole_float", `1.0`, "1.0"},
		{"fraction", `0.85`, "0.85"},
		{"small_float", `0.00001`, "0.00001"},
		{"tiny_float", `0.00000015`, "1.5e-7"},
		{"large_float", `1e21`, "1e21"},
		{"float_below_1e16", `1e15`, "1000000000000000.0"},
		{"float_1e16", `1e16`, "1e16"},
		{"negative_exponent", `-2.5e-10`, "-2.5e-10"},
		{"true", `true`, "true"},
		{"null", `null`, "null"},
		{"array", `[ "a", 1, 2.0, null ]`, `["a",1,2.0,null]`},
		{"object_keeps_order", `{"z": 1, "a": {"k": []}}`, `{"z":1,"a":{"k":[]}}`},
		{"repeated_member", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"html_and_unicode", `["<&>", "\u2028é\u0001"]`, "[\"<&>\",\"\u2028é\\u0001\"]"},
		{"invalid_utf8", "[\"\xff\"]", "[\"\uFFFD\"]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ParseJSON([]byte(tt.json))
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Text(); got != tt.want {
				t.Errorf("Text() = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestParseJSONErrors(t *testing.T) {
	deep := make([]byte, 0, 4000)
	for range 2000 {
		deep = append(deep, '[')
	}
	for name, text := range map[string]string{
		"empty": "", "half": `{"a": [1,`, "two_values": `1 2`, "trailing": `{} x`,
		"bare_word": `yes`, "huge_number": `1e999`, "deep": string(deep),
	} {
		t.Run(name, func(t *testing.T) {
			if v, err := ParseJSON([]byte(text)); err == nil {
				t.Errorf("parsed as %s", v)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"int_and_float", `1`, `1.0`, false},
		{"float_spellings", `1.0`, `1e0`, true},
		{"null_and_false", `null`, `false`, false},
		{"lists", `[1,[2]]`, `[1,[2]]`, true},
		{"list_order", `[1,2]`, `[2,1]`, false},
		{"object_order", `{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{"object_size", `{"a":1}`, `{"a":1,"b":2}`, false},
		{"list_and_object", `[]`, `{}`, false},
		{"list_and_string", `[]`, `"[]"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := mustParse(t, tt.a), mustParse(t, tt.b)
			if Equal(a, b) != tt.want || Equal(b, a) != tt.want {
				t.Errorf("Equal(%s, %s) != %v", a, b, tt.want)
			}
		})
	}
}

func TestListAppendLeavesOtherVersionsAlone(t *testing.T) {
	base := ListOf(Of(1)).Append(Of(2))
	left := base.Append(Of("left"))
	right := base.Append(Of("right")) // must not overwrite left's element
	for want, l := range map[string]List{`[1,2]`: base, `[1,2,"left"]`: left, `[1,2,"right"]`: right} {
		if got := l.Value().String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := left.From(1).Append(Of(9)).Value().String(); got != `[2,"left",9]` || left.At(2).Text() != "left" {
		t.Errorf("From shares memory it must not: %s", got)
	}
}

func TestListAppendConcurrently(t *testing.T) {
	base := ListOf().Append(Of(0))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			l := base
			for j := range 100 {
				l = l.Append(Of(i*1000 + j))
			}
			for j := range 100 {
				if n, _ := l.At(j + 1).AsInt(); n != int64(i*1000+j) {
					t.Errorf("goroutine %d sees %d at %d", i, n, j)
				}
			}
		})
	}
	wg.Wait()
}

func TestObject(t *testing.T) {
	var members []Member
	for i := range 40 {
		members = append(members, Member{string(rune('a' + i%20)), Of(i)})
	}
	large := ObjectOf(members...)
	small := ObjectOf(members[:8]...)
	if large.Len() != 20 || small.Len() != 8 {
		t.Fatalf("lengths %d and %d", large.Len(), small.Len())
	}
	if v, ok := large.Get("b"); !ok || v.Text() != "21" {
		t.Errorf("large b = %s, %v", v, ok)
	}
	if _, ok := small.Get("z"); ok {
		t.Error("small has z")
	}
	merged := small.Merge(ObjectOf(Member{"z", Of(1)}, Member{"a", Of("new")}))
	if got := merged.Value().String(); got != `{"a":"new","b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7,"z":1}` {
		t.Errorf("merged %s", got)
	}
	if got := merged.Without("c").Value().String(); got != `{"a":"new","b":1,"d":3,"e":4,"f":5,"g":6,"h":7,"z":1}` {
		t.Errorf("without c %s", got)
	}
	var none *Object
	if none.Len() != 0 || none.Value().String() != "{}" || none.Merge(small).Len() != 8 {
		t.Error("a nil object is not empty")
	}
}

func TestOfNonFiniteIsNull(t *testing.T) {
	if !Of(math.NaN()).IsNull() || !Of(math.Inf(1)).IsNull() {
		t.Error("JSON has no such number")
	}
	if Of(uint64(5)).Kind() != Int || Of(uint64(math.MaxUint64)).Kind() != Uint {
		t.Error("wrong kinds of unsigned integers")
	}
}

func TestLines(t *testing.T) {
	v := mustParse(t, `{"b":[1,{"c":[]}],"a":{}}`)
	want := "{\n  \"b\": [\n    1,\n    {\n      \"c\": []\n    }\n  ],\n  \"a\": {}\n}"
	if got := v.Lines(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func mustParse(t testing.TB, text string) Value {
	t.Helper()
	v, err := ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// FuzzParseJSON holds the parser against encoding/json: both accept the same texts
// (but for the depth limit and numbers out of range), and what was parsed prints as
// JSON that parses to an equal value.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`null`, `[1,2.50,-0,1e3]`, `{"a":{"b":[true,"\ud83d\ude00"]},"a":1}`, `"\u2028<"`, `[`, `{"a"}`, `18446744073709551616`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseJSON([]byte(text))
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("accepted invalid JSON %q", text)
		}
		again, err := ParseJSON(v.AppendJSON(nil))
		if err != nil || !Equal(v, again) {
			t.Fatalf("%s reads back as %s, %v", v, again, err)
		}
		if lines, err := ParseJSON([]byte(v.Lines())); err != nil || !Equal(v, lines) {
			t.Fatalf("the indented form of %s reads back as %s, %v", v, lines, err)
		}
	})
}
