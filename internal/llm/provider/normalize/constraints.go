package normalize

import (
	"slices"
	"strings"

	"loki/internal/llm/provider"
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

// Lacks are the constraints that an API does not have, or a model does not take.
type Lacks struct {
	Seed      bool
	Penalties bool
	Choice    bool // of a tool
}

// Notes adds notes to those about a request for the constraints that are not passed on.
func (l Lacks) Notes(notes []string, req provider.Request) []string {
	notes = slices.Clone(notes)
	if l.Seed && req.Seed != nil {
		notes = append(notes, "the provider knows no seed, so the request goes without it")
	}
	if l.Penalties && req.Penalizes() {
		notes = append(notes, "the provider does not take these penalties of repetition, so the request goes without them")
	}
	if l.Choice && req.Choice.Required {
		notes = append(notes, "the model cannot be made to call a tool, so it decides by itself")
	}
	return notes
}
