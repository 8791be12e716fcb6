package schema

import (
	"strings"

	"loki/internal/base/value"
)

// dialect is the draft a schema is written in, as far as validation differs.
type dialect int

const (
	draft2020 dialect = iota
	draft7
)

func (d dialect) uri() string {
	if d == draft7 {
		return "http://json-schema.org/draft-07/schema#"
	}
	return "https://json-schema.org/draft/2020-12/schema"
}

// dialectOf returns the dialect that $schema names, for other drafts the nearest one that
// is implemented. Without $schema the form of items decides: a list of schemas constrains
// elements in draft-07 only.
func dialectOf(v value.Value) (dialect, error) {
	named, ok := v.AsObject().Get("$schema")
	if !ok {
		if hasItemList(v) {
			return draft7, nil
		}
		return draft2020, nil
	}
	uri, _ := named.AsString()
	name := strings.TrimSuffix(uri, "#")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://")
	switch name {
	case "json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-04/schema":
		return draft7, nil
	case "json-schema.org/draft/2020-12/schema":
		return draft2020, nil
	case "json-schema.org/draft/2019-09/schema":
		if hasItemList(v) {
			return draft7, nil
		}
		return draft2020, nil
	}
	return 0, invalid("/$schema", "%q is not a known draft; use %q", uri, draft2020.uri())
}

func hasItemList(v value.Value) bool {
	for _, sub := range children(v) {
		if hasItemList(sub) {
			return true
		}
	}
	items, _ := v.AsObject().Get("items")
	return items.Kind() == value.ListKind
}
