package schema_test

import (
	"fmt"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
)

func ExampleSchema_Read() {
	form, err := value.ParseJSON([]byte(`{"type": "object", "properties": {"score": {"type": "integer", "minimum": 0}}, "required": ["score"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := schema.Compile(form)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, reply := range []string{"Sure! ```json\n{\"score\": 7}\n```", `{"score": -1}`, `{}`} {
		v, violations, err := s.Read(reply)
		fmt.Printf("%s, %d violations: %s, %v\n", v.AppendJSON(nil), len(violations), schema.List(violations, "; "), err)
	}
	// Output:
	// {"score":7}, 0 violations: , <nil>
	// {"score":-1}, 1 violations: /score: must be at least 0, got -1, <nil>
	// {}, 1 violations: /score: is required, but missing, <nil>
}
