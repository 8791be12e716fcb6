package schema

import (
	_ "embed"
	"sync"

	"loki/internal/value"
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
