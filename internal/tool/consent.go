package tool

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"loki/internal/ask"
)

// Confirm asks the user a question that is answered with yes or no. The key is that of
// the step which the question is about, unique within the task: another call asks
// under another key, even if it asks the same. The error wraps [ask.ErrUnavailable] if
// nobody can be asked; any other ends the request.
type Confirm func(ctx context.Context, key, question string) (bool, error)

// ConfirmWith returns a Confirm that puts its questions to a. What from says of where the
// question comes from goes with each of them. Only yes and y are a yes.
func ConfirmWith(a ask.Asker, from ask.Question) Confirm {
	return func(ctx context.Context, _, question string) (bool, error) {
		q := from
		q.Kind, q.Text, q.Options = ask.Choice, question, []string{"yes", "no"}
		answer, err := a.Ask(ctx, q)
		if err != nil {
			return false, err
		}
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "yes" || answer == "y", nil
	}
}

// AutoConfirm reports whether an environment, as from os.Environ, says that the user
// consents to every call: AUTO_CONFIRM, or the agent's variable auto_confirm as
// LLM_AGENT_VAR_AUTO_CONFIRM. Empty, 0, false, no and off do not say so.
func AutoConfirm(environ []string) bool {
	set := make(map[string]bool, 2)
	for _, entry := range environ {
		name, v, _ := strings.Cut(entry, "=")
		if name != "AUTO_CONFIRM" && name != "LLM_AGENT_VAR_AUTO_CONFIRM" {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "", "0", "false", "no", "off":
			set[name] = false // the last entry of a name counts
		default:
			set[name] = true
		}
	}
	return set["AUTO_CONFIRM"] || set["LLM_AGENT_VAR_AUTO_CONFIRM"]
}

// Visible returns text that a model wrote as it may be shown to a user who decides about
// it: whatever could hide or rearrange a part of it on a terminal is replaced by an escape
// such as \u001b. Line feeds and tabs stay.
func Visible(text string) string {
	hidden := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar)
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// question returns what the user has to be asked before call is made, empty for nothing.
func question(t Tool, h Hints, call Call) string {
	if g, ok := t.(Guard); ok {
		return g.Consent(call)
	}
	if !h.Destructive {
		return ""
	}
	return fmt.Sprintf("May the tool %s be run with these arguments?\n\n    %s", call.Name, Visible(string(call.Arguments)))
}
