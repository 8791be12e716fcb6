package cassette

import (
	"fmt"

	"loki/internal/base/value"
	"loki/internal/workflow/run"
)

// OfRun returns the record of a run as a cassette. result returns the result of a step, in JSON, by its number. What the
// steps sent is not on record, so that they are compared by what they are only.
func OfRun(h run.History, result func(number int) ([]byte, error)) (*Cassette, error) {
	c := &Cassette{Agent: h.Info.Agent, Prompt: h.Info.Prompt, Variables: h.Info.Variables, Asked: h.Info.Model}
	for _, s := range h.Steps {
		if !s.Done {
			continue
		}
		data, err := result(s.Number)
		if err != nil {
			return nil, err
		}
		reply, err := value.ParseJSON(data)
		if err != nil {
			return nil, fmt.Errorf("step %d of run %s: %w", s.Number, h.Info.ID, err)
		}
		c.Entries = append(c.Entries, &Entry{Place: Place{Run: 1, Step: s.Step, Node: s.Node, Key: s.Key}, Kind: s.Kind, Name: s.Name, Reply: reply})
	}
	c.sort()
	return c, nil
}
