package models

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"loki/internal/llm/catalog"
)

//go:embed known.jsonl
var known string

// BuiltinList returns the built-in list. The models of a provider are decoded when they
// are first asked for.
func BuiltinList() []catalog.Provider {
	var providers []catalog.Provider
	for line := range strings.Lines(known) {
		providers = append(providers, catalog.Provider{
			Name:   providerName(line),
			Models: sync.OnceValue(func() []catalog.Model { return decodeLine(line) }),
		})
	}
	return providers
}

// providerPrefix begins each line of the generated list.
const providerPrefix = `{"provider":"`

// providerName reads the name at the beginning of a line, without decoding the rest.
func providerName(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, providerPrefix), `"`)
	return name
}

func decodeLine(line string) []catalog.Model {
	var p provider
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		panic("models: the generated list is damaged: " + err.Error())
	}
	return p.models()
}
