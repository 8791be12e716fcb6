package trust

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/text"
)

// Status is what there is to say about the trust in an agent.
type Status struct {
	Own     bool // it is the user's: nothing is asked
	Trusted bool // as it is now; so is an agent of the user
	Tests   bool // likewise, with its test cases
	// Wants is what the agent wants beyond reading in the sandbox, a line each; without any of it, it is not
	// asked about.
	Wants   []string
	Content Content
	// Changes are what has changed since the directory was trusted, see [Record.Changes].
	Changes []string
	// Err says what keeps the directory from being trusted.
	Err error
	// Server is the MCP server that takes code from the directory, and Code the parts of its entry by which it does; empty
	// for an agent.
	Server string
	Code   []string
}

// Ask asks whether to trust what is called name as it is now. Otherwise is the other answer.
func (t Status) Ask(ctx context.Context, asker ask.Asker, name, otherwise string) (bool, error) {
	const yes = "trust it"
	answer, err := asker.Ask(ctx, ask.Question{
		Kind: ask.Select, Text: t.Question(name), Options: []string{otherwise, yes}, Consent: true, Affirms: yes, Lasts: true, Agent: name,
	})
	return answer == yes, err
}

// QuestionEnd ends each question about trust.
const QuestionEnd = "Do you trust it as it is now?"

// Question returns the question whether to trust the agent, with all that the answer needs.
func (t Status) Question(name string) string {
	var b strings.Builder
	what := "agent " + text.Visible(name) + " came with"
	before := "its programs only read the workspace, without network, and each other call needs your consent. What you trust runs like an agent of your own."
	if t.Server != "" {
		what = "MCP server " + text.Visible(t.Server) + " takes code from"
		before = "the server does not start. What you trust runs with your rights, unless the server has a sandbox. If a file changes, you are asked again."
	}
	fmt.Fprintf(&b, "The %s the directory\n\n    %s\n\n", what, text.Visible(t.Content.Dir))
	if len(t.Code) > 0 {
		fmt.Fprintf(&b, "by %s.\n\n", text.Visible(strings.Join(t.Code, ", ")))
	}
	if len(t.Changes) > 0 {
		fmt.Fprintf(&b, "You have trusted it before, and %s changed since:\n\n", text.Count(len(t.Changes), "file"))
		writeLines(&b, t.Changes)
	} else {
		fmt.Fprintf(&b, "It has %s with code or instructions.\n", text.Count(len(t.Content.Files), "file"))
	}
	if len(t.Wants) > 0 {
		b.WriteString("\nBeyond reading the workspace it wants to\n\n")
		writeLines(&b, t.Wants)
	}
	b.WriteString("\nUntil you trust it, " + before + "\n\n" + QuestionEnd)
	return b.String()
}

// maxLines is how many lines of a list a question shows.
const maxLines = 20

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines[:min(len(lines), maxLines)] {
		fmt.Fprintf(b, "    %s\n", text.Visible(line))
	}
	if more := len(lines) - maxLines; more > 0 {
		fmt.Fprintf(b, "    and %d more\n", more)
	}
}

// why says why there is no trust.
func (t Status) why() string {
	switch {
	case t.Err != nil:
		return fmt.Sprintf("cannot be trusted (%v)", t.Err)
	case len(t.Changes) > 0:
		return fmt.Sprintf("has changed since it was trusted (%s)", strings.Join(t.Changes[:min(len(t.Changes), 3)], ", "))
	}
	return "is not trusted"
}
