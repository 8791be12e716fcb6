package script

import (
	"slices"
	"strings"
	"time"

	"loki/internal/base/value/yamldoc"
)

// strict reports the keys of m that were not asked for and those without a value, and
// returns whether there are none. It comes after all other readers of m.
func strict(m *yamldoc.Map) bool {
	ok := true
	for _, unknown := range m.Done() {
		msg := "unknown key"
		if unknown.Hint != "" {
			msg += "; " + unknown.Hint
		}
		m.Get(unknown.Key).KeyErrorf("%s", msg)
		ok = false
	}
	for e := range m.All() {
		if e.Node.Kind() == yamldoc.Null {
			e.Node.KeyErrorf("the value is missing")
			ok = false
		}
	}
	return ok
}

// filled reads a text that must not be empty.
func filled(m *yamldoc.Map, key string, dst *string) bool {
	if !m.Text(key, dst) {
		return false
	}
	if *dst == "" {
		m.Get(key).Errorf("the text is empty")
		return false
	}
	return true
}

// items reads a list that must not be empty.
func items(m *yamldoc.Map, key string) []*yamldoc.Node {
	nodes := m.List(key)
	if n := m.Get(key); n != nil && n.Kind() == yamldoc.List && len(nodes) == 0 {
		n.Errorf("the list is empty")
	}
	return nodes
}

// duration reads a span of time such as 250ms or 2s.
func duration(m *yamldoc.Map, key string, dst *time.Duration) {
	var s string
	if !m.Text(key, &s) {
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		m.Get(key).Errorf("expected a duration such as 250ms or 2s, found %q", s)
		return
	}
	*dst = d
}

// oneOf reads a text that is one of allowed.
func oneOf[T ~string](m *yamldoc.Map, key string, dst *T, allowed []T) {
	var s string
	if !m.Text(key, &s) {
		return
	}
	if !slices.Contains(allowed, T(s)) {
		m.Get(key).Errorf("expected one of %s, found %q", alternatives(allowed), s)
		return
	}
	*dst = T(s)
}

func alternatives[T ~string](allowed []T) string {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}
