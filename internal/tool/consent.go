package tool

import (
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/tool/permission"
)

// ConsentQuestion is a question whether a call may be made.
type ConsentQuestion struct {
	By     string // who asks for the call, see [Options]; empty is a model
	Text   string
	Reason string // why the user is asked; may be empty
	// Always lists the grants of one answer after which calls like this need no question, Wider those of
	// another one, after which no call at the level of this one does. Both may be empty.
	Always, Wider []permission.Grant
	// Agent is the agent to which grants can be made; empty without an agent.
	Agent string
	// ForRun says that an answer holds for the run at most, and not for the session or the agent.
	ForRun bool

	// Sandbox is what the program of the call may do after a yes. The level is empty for tools that do not start
	// one in a sandbox, and where there is none; Missing says why then.
	Sandbox sandbox.Declaration
	Missing string
	// Why is what the model says about why it needs the level; may be empty.
	Why string
	// Refused is what the sandbox stopped when the same text ran at a lower level.
	Refused []sandbox.Refusal
	// Edit offers to edit the arguments.
	Edit bool
	// Personal says that only the user's own answer counts, see [Outliving].
	Personal bool
}

// ConsentAnswer is the answer to a ConsentQuestion. The zero value is a no.
type ConsentAnswer struct {
	Yes    bool
	Scope  permission.Scope   // of the grants; empty if the answer is for this call only
	Grants []permission.Grant // what the user grants for more than this call
	Reason string             // what the user said instead of yes or no; the model reads it
	Edit   bool               // the user wants to edit the arguments, and is asked again then
}

// longReason is how many characters of a model's reason are shown.
const longReason = 400

// The options of a question.
const (
	optionYes     = "yes"
	optionNo      = "no"
	optionSession = "always for this session: "
	optionAgent   = "always for this agent: "
	optionRun     = "always for this run: "
	optionEdit    = "edit the arguments"
)

// Ask returns the question for a human, with the origin (agent, node, depth) that from
// names. What the model says comes first and as a quotation, what decides is next to the answers. The options that hold for more
// than one call show what they grant.
func (q ConsentQuestion) Ask(from ask.Question) ask.Question {
	from.Kind, from.Options, from.Consent = ask.Choice, []string{optionYes, optionNo}, true
	var parts []string
	who := "The model"
	if q.By != "" {
		who = text.Name(q.By)
		parts = append(parts, who+" of the graph makes this call. No model asked for it.")
	}
	if q.Why != "" {
		parts = append(parts, who+" says why it needs this:", "    "+text.CutRunes(text.Name(q.Why), longReason))
	}
	if len(q.Refused) > 0 {
		parts = append(parts, "The sandbox stopped the same before:", "    "+text.CutRunes(text.Name(sandbox.Refusals(q.Refused)), longReason))
	}
	parts = append(parts, q.Text)
	if held := q.sandboxText(); held != "" {
		parts = append(parts, held)
	}
	if q.Reason != "" {
		parts = append(parts, "You are asked because "+text.Visible(q.Reason)+".")
	}
	from.Text, from.Matter = strings.Join(parts, "\n\n"), q.Text
	for _, o := range q.options() {
		from.Options = append(from.Options, o.text)
	}
	if q.Edit {
		from.Options = append(from.Options, optionEdit)
	}
	return from
}

// sandboxText says what the program of the call may do after a yes.
func (q ConsentQuestion) sandboxText() string {
	hosts := "the hosts of your configuration only"
	if len(q.Sandbox.Hosts) > 0 {
		hosts = "`" + strings.Join(q.Sandbox.Hosts, "`, `") + "`" // their characters are checked
	}
	switch q.Sandbox.Level {
	case sandbox.Read:
		return "Level read: it can read the workspace, and change nothing."
	case sandbox.Write:
		return "Level write: it can change files of the workspace, and has no network."
	case sandbox.Network:
		return "Level network: it can change files of the workspace, and reach " + hosts + "."
	case sandbox.Full:
		return "Level full: it runs outside the sandbox, with all your rights."
	}
	if q.Missing != "" {
		return "There is no sandbox here (" + q.Missing + "): it can do all that you can."
	}
	return ""
}

// lasting is an answer that holds for more than one call.
type lasting struct {
	text   string
	scope  permission.Scope
	grants []permission.Grant
}

// options are the answers that hold for more than one call.
func (q ConsentQuestion) options() []lasting {
	var list []lasting
	for _, grants := range [...][]permission.Grant{q.Always, q.Wider} {
		if len(grants) == 0 {
			continue
		}
		granted := make([]string, len(grants))
		for i, g := range grants {
			granted[i] = strings.ReplaceAll(text.Visible(g.String()), "\n", `\n`)
		}
		what := strings.Join(granted, ", ")
		if q.ForRun {
			list = append(list, lasting{optionRun + what, permission.Run, grants})
			continue
		}
		list = append(list, lasting{optionSession + what, permission.Session, grants})
		if q.Agent != "" {
			list = append(list, lasting{optionAgent + what, permission.Agent, grants})
		}
	}
	return list
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
	case optionEdit, "e":
		if q.Edit {
			return ConsentAnswer{Edit: true}
		}
	}
	for _, o := range q.options() {
		if text == o.text {
			return ConsentAnswer{Yes: true, Scope: o.scope, Grants: o.grants}
		}
	}
	if !q.ForRun { // a server asked, and the run continues elsewhere: this call may be made
		q.ForRun = true
		return ConsentAnswer{Yes: q.Answer(text).Yes, Reason: q.Answer(text).Reason}
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
