package value_test

import (
	"math"
	"testing"

	"loki/internal/base/value"
)

func TestMarshal(t *testing.T) {
	x := map[string]any{"a": "<b> & c", "n": []int{1}, "v": value.Of(1.0)}
	const compact = `{"a":"<b> & c","n":[1],"v":1.0}`
	if got, err := value.Marshal(x); err != nil || string(got) != compact {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := value.AppendJSON([]byte("x\n"), x); err != nil || string(got) != "x\n"+compact {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := value.MarshalLines(x["n"]); err != nil || string(got) != "[\n  1\n]\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := value.AppendJSON([]byte("x"), math.NaN()); err == nil || string(got) != "x" {
		t.Errorf("got %s, %v", got, err)
	}
}
