package schema

import (
	"fmt"
	"strings"

	"loki/internal/base/value"
)

// MaxViolations is how many violations are reported at most: a longer list does not help
// to repair a value.
const MaxViolations = 10

// Schema is a JSON Schema ready for use. It is immutable.
type Schema struct {
	source value.Value
	index  *index
}

// InvalidError says that a value is not a JSON Schema.
type InvalidError struct {
	Violations []Violation // at least one, each with its place in the schema
}

func (e *InvalidError) Error() string { return "invalid JSON schema: " + List(e.Violations, "; ") }

// invalid returns the error for one place of a schema.
func invalid(path, format string, args ...any) error {
	return &InvalidError{[]Violation{{Path: path, Message: fmt.Sprintf(format, args...)}}}
}

// Compile checks that v is a JSON Schema and prepares it. The error is an
// [*InvalidError].
func Compile(v value.Value) (*Schema, error) {
	if found := meta().Validate(v); len(found) > 0 {
		return nil, &InvalidError{found}
	}
	return compile(v)
}

// compile is Compile for a value that is known to be well-formed.
func compile(v value.Value) (*Schema, error) {
	d, err := dialectOf(v)
	if err != nil {
		return nil, err
	}
	ix, err := newIndex(v, d)
	if err != nil {
		return nil, err
	}
	return &Schema{source: v, index: ix}, nil
}

// Value returns the schema as it was given to [Compile].
func (s *Schema) Value() value.Value { return s.source }

// Violation is one way in which a value differs from its schema.
type Violation struct {
	Path    string // JSON Pointer into the value, "" for the value itself
	Message string // what the schema demands there, and what was found
	Want    string // what the schema demands, without the value
}

// String returns "/items/2/priority: message".
func (v Violation) String() string {
	if v.Path == "" {
		return "(root): " + v.Message
	}
	return v.Path + ": " + v.Message
}

// List joins violations by separator.
func List(violations []Violation, separator string) string {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, separator)
}

// Validate compares v with the schema. It returns nil if v conforms, otherwise at
// most [MaxViolations] violations: of each object first the missing members, then
// the others in their order in v. Numbers are compared as
// the decimals they are written as: 19.99 is a multiple of 0.01. It may be called from
// several goroutines.
func (s *Schema) Validate(v value.Value) []Violation {
	c := checker{index: s.index}
	found := c.findings(s.source, v, "")
	if len(found) == 0 {
		return nil
	}
	violations := make([]Violation, len(found))
	for i, f := range found {
		violations[i] = f.violation()
	}
	return violations
}
