package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// consent reports a default of auto_confirm.
func (v *validator) consent() {
	if i, name := Consents(v.g.Variables); i >= 0 {
		v.warn(RuleConsent, nil, fmt.Sprintf("variables[%d].default", i), ConsentHint, ConsentMessage, name)
	}
}

// What to say about a variable that [Consents] finds. The message has a place for its name.
const (
	ConsentMessage = "the default of variable %s does not consent to what tools ask: only the user can, with --agent-variable %[1]s 1 or --yes"
	ConsentHint    = "leave out the default, or leave it empty"
)

// Consents returns the index and the name of the variable auto_confirm if it has a default, -1
// if there is none. It is for the user to set.
func Consents(variables []Variable) (int, string) {
	for i, v := range variables {
		if d := v.Default; d != nil && *d != "" && strings.EqualFold(strings.ReplaceAll(v.Name, "-", "_"), "auto_confirm") {
			return i, v.Name
		}
	}
	return -1, ""
}

// defaultAnswer reports a default without placeholders that no route takes.
func (v *validator) defaultAnswer(n *Node, answer Template) {
	known := slices.Clone(n.Approval.Options)
	for _, r := range n.Approval.Routes {
		known = append(known, r.Answer)
	}
	if len(answer.Roots()) == 0 && !slices.Contains(known, answer.Source) {
		hint := didYouMean(answer.Source, known)
		if hint == "" && len(n.Approval.Options) > 0 {
			hint = "options: " + strings.Join(n.Approval.Options, ", ")
		}
		v.warn(RuleDefaultAnswer, n, "default", hint, "default %q is not among the options, so it leads to on_other, %q", answer.Source, n.Approval.OnOther)
	}
}

// retries reports a retry that does nothing or multiplies.
func (v *validator) retries(n *Node) {
	r := n.Retry
	if r == nil {
		return
	}
	if r.Attempts == 1 {
		v.warn(RuleRetry, n, "retry", "attempts counts all tries, the first one included", "retry with 1 attempt tries nothing again")
		return
	}
	if why := v.neverRetried(n); why != "" {
		v.warn(RuleRetry, n, "retry", "leave it out", "retry tries nothing again: %s", why)
	}
	if n.LLM != nil && n.LLM.MaxAttempts > 1 {
		v.warn(RuleRetry, n, "max_attempts", "keep one of the two",
			"each of the %d attempts of retry may call the model %d times because of max_attempts", r.Attempts, n.LLM.MaxAttempts)
	}
	if r.Backoff > r.MaxBackoff {
		v.warn(RuleRetry, n, "retry.backoff", "raise max_backoff, or lower backoff",
			"backoff is longer than max_backoff, so every wait is %s", seconds(r.MaxBackoff))
	}
}

// neverRetried returns why another try of n cannot happen, or comes to the same as the first; empty if it can help.
func (v *validator) neverRetried(n *Node) string {
	switch {
	case n.Wait != nil && n.Wait.For != nil:
		return "a wait for a span does not fail"
	case n.Wait != nil && n.Wait.Default != nil, n.Approval != nil && n.Approval.Default != nil:
		return "the default is taken when the time is over"
	case n.Wait != nil && !n.HasTimeout:
		return "without a timeout the node waits for as long as it takes"
	case n.asks() && n.Expires != nil && len(n.Expires.Roots()) == 0 && !isSpan(n.Expires.Source):
		return "the question expires at a time that is the same for all tries"
	case n.asks() && !n.HasTimeout && n.Expires == nil && (n.Input == nil || n.Input.Validation == ""):
		return "without a timeout the question waits for as long as it takes"
	case n.Input != nil && n.Input.Default != nil && n.Input.Validation == "":
		return "the default is taken when the time is over"
	case n.Map != nil && !n.HasTimeout && n.Map.MinSuccess == nil && (n.Map.OnError == ItemsSkip || n.Map.OnError == ItemsCollect):
		return "a failed item does not fail the map, see on_error"
	}
	return ""
}

// isSpan reports whether text, when a question expires, is a span since it was asked.
func isSpan(text string) bool {
	_, after, err := ParseExpiry(text)
	return err == nil && after > 0
}

// caches reports a cache that holds nothing.
func (v *validator) caches(n *Node) {
	if n.Cache != nil && n.Cache.TTL == 0 {
		v.warn(RuleCache, n, "cache.ttl", "give the seconds for which a result may be used again", "ttl is 0, so no result is ever used again")
	}
}

// uncertain reports on_uncertain where it cannot be followed.
func (v *validator) uncertain(n *Node) {
	switch {
	case n.OnUncertain == "":
	case v.g.Settings.Durability == DurabilityOff:
		v.warn(RuleUncertain, n, "on_uncertain", "", "on_uncertain means nothing with settings.durability: off, since such a run cannot be resumed")
	case n.OnUncertain == UncertainSkip && n.Type == ScriptNode && !n.HasNext && len(v.branchOf[n.ID]) == 0 && !v.isCompensation(n):
		v.warn(RuleUncertain, n, "on_uncertain", "add next:", "a script that is skipped names no _next, and the node has no next, so the run fails here")
	}
}

// seconds writes a time the way definitions do.
func seconds(d time.Duration) string {
	s := strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	if s == "1" {
		return "1 second"
	}
	return s + " seconds"
}
