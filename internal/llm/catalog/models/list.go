package models

import (
	"bytes"
	"fmt"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
)

// decodeList reads a list of providers. What is wrong with it is reported to the
// node's document.
func decodeList(n *yamldoc.Node) []provider {
	items, _ := n.List()
	var list []provider
	var twice []*yamldoc.Node // models that are in the list already
	seen := make(map[string]bool)
	for _, item := range items {
		p := decodeProvider(item, &twice)
		if seen[p.Name] {
			item.Warnf("provider %q is already in the list, and this one is never used", p.Name)
		}
		seen[p.Name] = true
		list = append(list, p)
	}
	if len(twice) > 0 {
		var name string
		twice[0].Map().Text("name", &name)
		others := " is"
		if n := len(twice) - 1; n > 0 {
			others = fmt.Sprintf(" and %d more are", n)
		}
		twice[0].Warnf("model %q%s in the list twice, and the second is never used", name, others)
	}
	return list
}

// decodeProvider reads one provider, and adds to twice its models that repeat another.
func decodeProvider(n *yamldoc.Node, twice *[]*yamldoc.Node) provider {
	m := n.Map()
	var p provider
	m.Require("provider", "models")
	m.Text("provider", &p.Name)
	type key struct {
		name string
		t    catalog.Type
	}
	seen := make(map[key]bool)
	for _, item := range m.List("models") {
		model := catalog.DecodeModel(item)
		k := key{model.Name, model.Type}
		if seen[k] {
			*twice = append(*twice, item)
		}
		seen[k] = true
		p.Models = append(p.Models, model)
	}
	m.Foreign("oauth")
	m.Done()
	return p
}

// count returns the number of models in list.
func count(list []provider) int {
	n := 0
	for _, p := range list {
		n += len(p.Models)
	}
	return n
}

// asProviders converts the list for a catalog.
func asProviders(list []provider) []catalog.Provider {
	var providers []catalog.Provider
	for _, p := range list {
		providers = append(providers, catalog.Provider{Name: p.Name, Models: p.models})
	}
	return providers
}

// encodeOverride returns the text of an override file: JSON, which is YAML too and is
// read many times faster, with one model a line for people.
func encodeOverride(version string, list []provider) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"version":`)
	if err := encode(&b, version); err != nil {
		return nil, err
	}
	b.WriteString(`,"list":[`)
	for i, p := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + `{"provider":`)
		if err := encode(&b, p.Name); err != nil {
			return nil, err
		}
		b.WriteString(`,"models":[`)
		for j, e := range p.Models {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			if err := encode(&b, e); err != nil {
				return nil, err
			}
		}
		b.WriteString("\n]}")
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

// encode appends v as JSON without a line break.
func encode(b *bytes.Buffer, v any) error {
	doc, err := value.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the list of models: %w", err)
	}
	b.Write(doc)
	return nil
}
