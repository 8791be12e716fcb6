package config

import (
	"strings"

	"loki/internal/catalog"
	"loki/internal/value"
)

// HasSecretPlaceholder reports whether text refers to a secret: {{NAME}}, on one
// line, with at least one character between the braces.
func HasSecretPlaceholder(text string) bool {
	_, found := secretName(text)
	return found
}

// secretName returns the name of the first secret that text refers to.
func secretName(text string) (name string, found bool) {
	for {
		_, after, found := strings.Cut(text, "{{")
		if !found {
			return "", false
		}
		line, _, _ := strings.Cut(after, "\n")
		if len(line) > 1 { // a name has a first character, which may be a brace
			if end := strings.Index(line[1:], "}}"); end >= 0 {
				return strings.TrimSpace(line[:1+end]), true
			}
		}
		text = after
	}
}

// patchPlaceholder returns the first text in p that refers to a secret.
func patchPlaceholder(p *catalog.Patch) (text string, found bool) {
	if HasSecretPlaceholder(p.URL) {
		return p.URL, true
	}
	for _, h := range p.Headers {
		if h.Value != nil && HasSecretPlaceholder(*h.Value) {
			return *h.Value, true
		}
	}
	return valuePlaceholder(p.Body.Value())
}

func valuePlaceholder(v value.Value) (text string, found bool) {
	if s, ok := v.AsString(); ok {
		return s, HasSecretPlaceholder(s)
	}
	if list, ok := v.AsList(); ok {
		for _, item := range list.All() {
			if text, found := valuePlaceholder(item); found {
				return text, true
			}
		}
	}
	for _, member := range v.AsObject().All() {
		if text, found := valuePlaceholder(member); found {
			return text, true
		}
	}
	return "", false
}
