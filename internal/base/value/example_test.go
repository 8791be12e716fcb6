package value_test

import (
	"fmt"

	"loki/internal/base/value"
)

func ExampleParseJSON() {
	v, err := value.ParseJSON([]byte(`{"b": 1, "a": [1.0, "<é>", 18446744073709551615]}`))
	fmt.Println(string(v.AppendJSON(nil)), err)
	other, err := value.ParseJSON([]byte(`{"a": [1.0, "<é>", 18446744073709551615], "b": 1}`))
	fmt.Println(value.Equal(v, other), err)
	// Output:
	// {"b":1,"a":[1.0,"<é>",18446744073709551615]} <nil>
	// true <nil>
}
