package schema

import (
	_ "embed"
	"strings"
	"sync"

	"loki/internal/base/value"
)

// metaJSON is the schema of schemas, for both drafts.
//
//go:embed meta.json
var metaJSON []byte

var meta = sync.OnceValue(func() *Schema {
	v, err := value.ParseJSON(metaJSON)
	if err != nil {
		panic(err) // the file is part of the program
	}
	s, err := compile(v)
	if err != nil {
		panic(err)
	}
	return s
})

// Meta returns the schema of schemas, as JSON, for use within another schema. at is the reference to where it stands there,
// such as #/$defs/schema.
func Meta(at string) string {
	return strings.ReplaceAll(strings.ReplaceAll(string(metaJSON), `"$ref": "#/`, `"$ref": "`+at+`/`), `"$ref": "#"`, `"$ref": "`+at+`"`)
}

// Keywords returns the keywords of JSON Schema that have a meaning here.
func Keywords() []string {
	properties, _ := meta().source.AsObject().Get("properties")
	words := []string{"const"} // takes any value, so that the schema of schemas does not mention it
	for name := range properties.AsObject().All() {
		words = append(words, name)
	}
	return words
}
