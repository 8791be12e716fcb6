package graph

import (
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph/gate"
)

// CheckRules returns what of rules for starts cannot be followed. The template of the key may read names and, of a name without a dot other
// than agent and prompt, all that is in it.
func CheckRules(r gate.Rules, names ...string) (wrong []*gate.Error) {
	for _, p := range ParseTemplate(r.Key).parts {
		known := func(name string) bool {
			open := !strings.Contains(name, ".") && name != "agent" && name != "prompt"
			return p.text == name || strings.HasPrefix(name, p.text+".") || open && (strings.HasPrefix(p.text, name+".") || strings.HasPrefix(p.text, name+"["))
		}
		if p.hole && !slices.ContainsFunc(names, known) {
			wrong = append(wrong, &gate.Error{Key: "concurrency_key", Msg: "a key has no {{" + p.text + "}}; " + yamldoc.OneOf(p.text, names)})
			r.Key = ""
			break
		}
	}
	return append(wrong, r.Check()...)
}

// ReadRules reads the rules for starts in a mapping, as CheckRules has them. What is wrong, or has no effect, is reported to its document.
func ReadRules(m *yamldoc.Map, names ...string) gate.Rules {
	r := gate.Read(m)
	for _, wrong := range CheckRules(r, names...) {
		m.Get(wrong.Key).Errorf("%s", wrong.Msg)
	}
	if r.Idle() {
		m.Get("overlap").Warnf("overlap: %s has no effect without concurrency_key or concurrency_limit", r.Overlap)
	}
	return r
}

// ReadOwnRules reads the rules of an agent that has variables.
func ReadOwnRules(m *yamldoc.Map, variables []Variable) gate.Rules {
	names := []string{"agent", "prompt"}
	for _, v := range variables {
		names = append(names, "variables."+v.Name)
	}
	return ReadRules(m, names...)
}
