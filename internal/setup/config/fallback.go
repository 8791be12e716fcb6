package config

import (
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// checkFallbacks reads the fallback_models of all clients and their models again:
// each must name a client that is there, even one of a type that this version leaves
// out, and no model may name itself. The clients are known to be well-formed.
func checkFallbacks(clients []*yamldoc.Node) {
	known := []string{TypeBuiltin}
	for _, n := range clients {
		known = append(known, clientName(n.Map()))
	}
	for _, n := range clients {
		client := n.Map()
		checkFallbackList(client, known, "")
		for _, n := range client.List("models") {
			var name string
			model := n.Map()
			model.Text("name", &name)
			checkFallbackList(model, known, clientName(client)+":"+name)
		}
	}
}

// clientName returns the name that the client m has.
func clientName(m *yamldoc.Map) string {
	var name string
	if m.Str("name", &name) || m.Str("type", &name) {
		return name
	}
	return ""
}

// checkFallbackList checks the fallback_models of m, which belong to the model called
// self, or to a client if that is empty.
func checkFallbackList(m *yamldoc.Map, known []string, self string) {
	for _, n := range m.List("fallback_models") {
		id, _ := n.Str()
		client, _, _ := strings.Cut(id, ":")
		switch {
		case id == self:
			n.Errorf("a model cannot be its own fallback")
		case !slices.Contains(known, client):
			p := n.Errorf("no client is called %q", client)
			p.Hint = "a fallback is client:model; the clients are " + strings.Join(known, ", ")
			if near := yamldoc.Nearest(client, known); near != "" {
				p.Hint = "did you mean " + near + strings.TrimPrefix(id, client) + "?"
			}
		}
	}
}
