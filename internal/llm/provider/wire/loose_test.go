package wire_test

import (
	"encoding/json"
	"testing"

	"loki/internal/llm/provider/wire"
)

func TestLoose(t *testing.T) {
	type all struct {
		S wire.String
		T wire.Text
		N wire.Int
	}
	for _, tt := range []struct {
		name, doc string
		want      all
	}{
		{"as_promised", `{"s":"a\n","t":"b","n":3}`, all{"a\n", "b", 3}},
		{"swapped", `{"s":4.5,"t":{"x":1},"n":"12"}`, all{"4.5", `{"x":1}`, 12}},
		{"null", `{"s":null,"t":null,"n":null}`, all{}},
		{"other", `{"s":[1],"t":[1],"n":{}}`, all{"", "[1]", 0}},
		{"fraction", `{"n":2.9}`, all{N: 2}},
		{"does_not_fit", `{"n":1e99}`, all{}},
		{"boolean", `{"s":true,"t":false,"n":true}`, all{"", "false", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := all{"old", "old", 7}
			if tt.name == "fraction" || tt.name == "does_not_fit" {
				got = all{}
			}
			if err := json.Unmarshal([]byte(tt.doc), &got); err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestTolerate(t *testing.T) {
	var v struct {
		A string
		B int
	}
	if err := wire.Tolerate(json.Unmarshal([]byte(`{"a":5,"b":6}`), &v)); err != nil || v.B != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	if wire.Tolerate(json.Unmarshal([]byte(`{"a":`), &v)) == nil {
		t.Error("malformed JSON is tolerated")
	}
}

func FuzzLoose(f *testing.F) {
	for _, seed := range []string{`"a"`, `1e5`, `null`, `{"a":[]}`, `-`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s wire.String
		var x wire.Text
		var n wire.Int
		valid := json.Valid(data)
		for _, v := range []any{&s, &x, &n} {
			if err := json.Unmarshal(data, v); (err == nil) != valid {
				t.Errorf("%T of %q: %v", v, data, err)
			}
		}
	})
}
