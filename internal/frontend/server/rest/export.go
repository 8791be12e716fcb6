package rest

import (
	"loki/internal/frontend/command/export"
)

// Export is how a document of a conversation is asked for.
type Export struct {
	Format    string `query:"format" enum:"md,html" default:"md" doc:"of the document"`
	Reasoning bool   `query:"reasoning" doc:"with the reasoning of the model, as far as it is on record"`
}

// Reply returns the document as an answer that browsers save and do not show.
func (e Export) Reply(t export.Talk, hide func(string) string) (*Reply, error) {
	doc, err := export.Document(t, export.Options{Format: e.Format, Reasoning: e.Reasoning, Hide: hide})
	if err != nil {
		return nil, Conflict("%v", err)
	}
	return Bytes(0, export.ContentType(e.Format), doc).With("Content-Disposition", `attachment; filename="conversation.`+e.Format+`"`).
		With("Content-Security-Policy", "sandbox; "+export.Policy()), nil
}
