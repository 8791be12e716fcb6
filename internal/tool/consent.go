package tool

import (
	"fmt"
	"strings"

	"loki/internal/ask"
	"loki/internal/environ"
	"loki/internal/permission"
	"loki/internal/text"
)

// ConsentQuestion is a question whether a call may be made.
type ConsentQuestion struct {
	Text   string
	Reason string // why the user is asked; may be empty
	// Always lists what the user may grant in order not to be asked again; it may be
	// empty.
	Always []permission.Grant
	// Agent is the agent to which grants can be made; empty without an agent.
	Agent string
}

// ConsentAnswer is the answer to a ConsentQuestion. The zero value is a no.
type ConsentAnswer struct {
	Yes    bool
	Scope  permission.Scope // of the grants; empty if the answer is for this call only
	Reason string           // what the user said instead of yes or no; the model reads it
}

// longQuestion is how many lines of a question fit on a small terminal together with its reason and
// its answers.
const longQuestion = 12

// The options of a question.
const (
	optionYes     = "yes"
	optionNo      = "no"
	optionSession = "always for this session"
	optionAgent   = "always for this agent"
)

// Ask returns the question for a human, with the origin (agent, node, depth) that from
// names. The options that hold for more than one call show what they grant.
func (q ConsentQuestion) Ask(from ask.Question) ask.Question {
	from.Kind, from.Text, from.Options, from.Consent = ask.Choice, q.Text, []string{optionYes, optionNo}, true
	if lines := strings.Count(q.Text, "\n") + 1; lines > longQuestion {
		from.Text += fmt.Sprintf("\n\nThe question has %d lines: scroll up to read it from its start.", lines)
	}
	if q.Reason != "" {
		from.Text += "\n\nYou are asked because " + text.Visible(q.Reason) + "."
	}
	if len(q.Always) == 0 {
		return from
	}
	granted := make([]string, len(q.Always))
	for i, g := range q.Always {
		granted[i] = strings.ReplaceAll(text.Visible(g.String()), "\n", `\n`)
	}
	what := ": " + strings.Join(granted, ", ")
	from.Options = append(from.Options, optionSession+what)
	if q.Agent != "" {
		from.Options = append(from.Options, optionAgent+what)
	}
	return from
}

// Answer reads what a human answered to [ConsentQuestion.Ask]. Only yes and y are a yes,
// and only the exact texts of the options grant more; any other text is a no with a
// reason.
func (q ConsentQuestion) Answer(text string) ConsentAnswer {
	text = strings.TrimSpace(text)
	switch strings.ToLower(text) {
	case optionYes, "y":
		return ConsentAnswer{Yes: true}
	case optionNo, "n", "":
		return ConsentAnswer{}
	}
	for i, option := range q.Ask(ask.Question{}).Options {
		switch {
		case i < 2 || text != option:
		case strings.HasPrefix(option, optionSession):
			return ConsentAnswer{Yes: true, Scope: permission.Session}
		default:
			return ConsentAnswer{Yes: true, Scope: permission.Agent}
		}
	}
	return ConsentAnswer{Reason: text}
}

// AutoConfirm reports whether an environment, as from os.Environ, says that the user
// consents to every call: AUTO_CONFIRM, or the agent's variable auto_confirm as
// LLM_AGENT_VAR_AUTO_CONFIRM, see [Consents].
func AutoConfirm(env []string) bool {
	return Consents(environ.Get(env, "AUTO_CONFIRM")) || Consents(environ.Get(env, environ.AgentVariable("auto_confirm")))
}

// Consents reports whether a value of AUTO_CONFIRM or auto_confirm is a consent: any but
// the empty one and words that say no.
func Consents(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "0", "false", "f", "no", "n", "off", "none", "null", "never", "disable", "disabled":
		return false
	}
	return true
}
