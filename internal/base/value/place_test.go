package value_test

import (
	"fmt"
	"testing"

	"loki/internal/base/value"
)

func TestJSONPlace(t *testing.T) {
	t.Parallel()
	const text = "{\n\t\"ä\": 1, \"a/b\": [\n\t\t{\"x\": true},\n    {\"x~\": {\"deep\": null}}\n  ]\n}"
	for _, tt := range []struct{ pointer, want string }{
		{"", "1:1"},
		{"/ä", "2:7"},
		{"/a~1b", "2:17"},
		{"/a~1b/0/x", "3:9"},
		{"/a~1b/1", "4:5"},
		{"/a~1b/1/x~0/deep", "4:21"},
		{"/a~1b/1/gone/deep", "4:5"}, // the nearest thing around it
		{"/a~1b/7", "2:17"},
		{"/gone", "1:1"},
	} {
		line, column := value.JSONPlace([]byte(text), tt.pointer)
		if got := fmt.Sprintf("%d:%d", line, column); got != tt.want {
			t.Errorf("%q at %s, want %s", tt.pointer, got, tt.want)
		}
	}
	if line, column, err := value.JSONErrorPlace([]byte("{\n  \"a\": tru}")); err == nil || line != 2 || column != 11 {
		t.Errorf("%v at %d:%d", err, line, column)
	}
	if _, _, err := value.JSONErrorPlace([]byte("{}")); err != nil {
		t.Error(err)
	}
}

func FuzzJSONPlace(f *testing.F) {
	f.Add(`{"a": [1, {"b": 2}]}`, "/a/1/b")
	f.Add("", "/")
	f.Add("[[", "/0/0")
	f.Fuzz(func(t *testing.T, text, pointer string) {
		if line, column := value.JSONPlace([]byte(text), pointer); line < 1 || column < 1 {
			t.Errorf("%d:%d", line, column)
		}
	})
}
