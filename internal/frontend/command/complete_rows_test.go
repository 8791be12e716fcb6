package command

import (
	"slices"
	"testing"
)

// TestRowsComplete: the rows of the table complete their arguments.
func TestRowsComplete(t *testing.T) {
	c, _ := talk(t, map[string]string{"roles/coder.md": coder, "agents/guide/config.yaml": guide}, nil, "",
		step{line: ".set save_session true"}, step{line: ".session trip"}, step{line: "hi", want: "hi"}, step{line: ".exit session"})
	complete := func(text, want string) {
		t.Helper()
		found := c.Complete(t.Context(), text)
		if !slices.ContainsFunc(found.Candidates, func(c Candidate) bool { return c.Value == want }) {
			t.Errorf("%q: %s is not among %s", text, want, values(found.Candidates))
		}
	}
	complete(".ro", ".role")
	complete(".role co", "coder")
	complete(".session t", "trip")
	complete(".agent gu", "guide")
	complete(".agent guide to", "town=")
	complete(".set dry", "dry_run")
	complete(".set dry_run ", "true")
	complete(".delete ", "agent-data")
	complete(".vault ", "list")
	complete(".install ", "remote")
	complete(".model extract", "builtin:extract")
	if err := c.Do(t.Context(), ".agent guide town=Graz"); err != nil {
		t.Fatal(err)
	}
	complete(".starter ", "2")
}
