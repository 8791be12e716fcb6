package graph

import (
	"slices"

	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/gate"
)

// CheckRules returns a [*gate.Error] if rules for starts cannot be followed. The template of the key may read names, or if there are none
// what it may at an agent.
func CheckRules(r gate.Rules, names ...string) error {
	if len(names) == 0 {
		names = []string{"agent", "prompt", "variables"}
	}
	for _, root := range ParseTemplate(r.Key).Roots() {
		if !slices.Contains(names, root) {
			return &gate.Error{Key: "concurrency_key", Msg: "a key has no {{" + root + "}}; " + yamldoc.OneOf(root, names)}
		}
	}
	return r.Check()
}

// ReadRules reads the rules for starts in a mapping, as CheckRules has them. What is wrong is reported to its document.
func ReadRules(m *yamldoc.Map, names ...string) gate.Rules {
	r := gate.Read(m)
	if wrong, ok := CheckRules(r, names...).(*gate.Error); ok { //nolint:errorlint // it is not wrapped
		m.Get(wrong.Key).Errorf("%s", wrong.Msg)
	}
	return r
}
