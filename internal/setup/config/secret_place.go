package config

import (
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// place is where the file refers to secrets.
type place struct {
	path  string // of the value, below the node that was searched: "patch.chat_completions.a.url"
	pos   yamldoc.Pos
	names []string // of the secrets
}

// placesOf returns the places below n.
func placesOf(n *yamldoc.Node) []place {
	var places []place
	var visit func(*yamldoc.Node)
	visit = func(child *yamldoc.Node) {
		switch child.Kind() {
		case yamldoc.String:
			p := place{path: strings.TrimPrefix(strings.TrimPrefix(child.Path(), n.Path()), "."), pos: child.Pos()}
			text := child.Literal()
			for ref, ok := nextPlaceholder(text); ok; ref, ok = nextPlaceholder(text) {
				p.names = append(p.names, ref.name)
				text = text[ref.end:]
			}
			if p.names != nil {
				places = append(places, p)
			}
		case yamldoc.List:
			items, _ := child.List()
			for _, item := range items {
				visit(item)
			}
		case yamldoc.Mapping:
			for entry := range child.Map().All() {
				visit(entry.Node)
			}
		}
	}
	visit(n)
	return places
}

// placeOf returns where in file the value under key, or one below it, refers to the secret
// called name, "file:line:column"; "" if that is not known.
func placeOf(file string, places []place, key, name string) string {
	for _, p := range places {
		rest, below := strings.CutPrefix(p.path, key)
		if below && (rest == "" || rest[0] == '.' || rest[0] == '[') && slices.Contains(p.names, name) {
			return where(file, p.pos)
		}
	}
	return ""
}
