package normalize

import (
	"slices"
	"strings"

	"loki/internal/provider"
)

// Stops returns the texts at which a reply ends as an API takes them: none that is blank, and at most so
// many. The engine sees to all of them.
func Stops(req provider.Request, most int) []string {
	var texts []string
	for _, t := range req.Stop {
		if strings.TrimSpace(t) != "" && len(texts) < most {
			texts = append(texts, t)
		}
	}
	return texts
}

// Without adds notes to those about a request for what of its constraints is not passed on: a seed, or
// the choice of a tool.
func Without(notes []string, req provider.Request, seed, choice bool) []string {
	notes = slices.Clone(notes)
	if seed && req.Seed != nil {
		notes = append(notes, "the provider knows no seed, so the request goes without it")
	}
	if choice && req.Choice.Required {
		notes = append(notes, "the model cannot be made to call a tool, so it decides by itself")
	}
	return notes
}
