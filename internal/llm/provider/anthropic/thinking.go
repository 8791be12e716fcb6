package anthropic

import (
	"cmp"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// form is a way to ask a model for thinking. 0 asks for nothing.
type form uint8

const (
	adaptive form = 1 << iota // the model decides, guided by an effort
	budget                    // so many tokens and no more
	disabled                  // no thinking, of models that think by default
)

// minBudget is the smallest budget that the API takes, in tokens.
const minBudget = 1024

// budgetOf returns how many tokens an effort may take, 0 for none.
func budgetOf(e provider.Effort) int64 {
	switch e {
	case provider.MinimalEffort:
		return minBudget
	case provider.LowEffort:
		return 2048
	case provider.MediumEffort:
		return 8192
	case provider.HighEffort:
		return 24576
	case provider.XHighEffort:
		return 40960
	case provider.MaxEffort:
		return 55296
	}
	return 0
}

// formFor returns how to ask a model for an effort, unless that has been rejected. Without
// an effort a model that thinks by itself is asked for the words of its thoughts: the text
// between calls of tools is among them.
func formFor(model string, e provider.Effort, rejected form) form {
	forms := []form{budget, adaptive}
	switch adapts := thinksAdaptively(model); {
	case e == "" && thinksByItself(model):
		forms = []form{adaptive}
	case e == provider.NoEffort && adapts:
		forms = []form{disabled}
	case budgetOf(e) == 0:
		return 0
	case adapts:
		forms = []form{adaptive, budget}
	}
	for _, f := range forms {
		if rejected&f == 0 {
			return f
		}
	}
	return 0
}

// thinksAdaptively guesses from a model's name whether it takes adaptive thinking, as
// Claude does from 4.6 on; from 4.7 on it takes no budget. A Claude without a version is
// a new one. Other models take what was there first.
func thinksAdaptively(model string) bool {
	major, minor, ok := normalize.ClaudeVersion(model)
	return ok && (major < 0 || major > 4 || major == 4 && minor >= 6)
}

// thinksByItself guesses from a model's name whether it thinks adaptively unless a request says
// otherwise, as Claude does from 5 on.
func thinksByItself(model string) bool {
	major, _, ok := normalize.ClaudeVersion(model)
	return ok && major >= 5
}

// think sets what x asks for in the way of thinking and the length of the reply. list are
// the efforts of the model as far as they are known, and cannot says that the conversation
// has no room for a budget, because its tool loop began without thinking.
func (x *exchange) think(req provider.Request, list []provider.Effort, d dialect, cannot bool) {
	x.effort = req.Effort
	if x.effort != "" && thinksAdaptively(x.model) {
		major, minor, _ := normalize.ClaudeVersion(x.model)
		x.effort = x.effort.Nearest(normalize.ClaudeEfforts(list, major != 4 || minor != 6))
		if d.highest && (x.effort == provider.XHighEffort || x.effort == provider.MaxEffort) {
			x.effort = provider.HighEffort
		}
	}
	tokens, want := int64(cmp.Or(max(req.MaxOutputTokens, 0), max(req.OutputLimit, 0))), budgetOf(x.effort)
	x.form = formFor(x.model, x.effort, d.rejected)
	if x.form == adaptive && x.effort == "" {
		want = budgetOf(provider.HighEffort)
	}
	if x.form == budget && cannot {
		x.form = 0
	}
	if tokens <= 0 {
		tokens = DefaultMaxTokens
		if x.form == budget || x.form == adaptive {
			tokens += want
		}
	}
	if d.maxTokens > 0 {
		tokens = min(tokens, d.maxTokens)
	}
	want = min(want, tokens/4*3)
	if x.form == budget && want < minBudget {
		x.form = 0
	}
	p := &x.params
	p.MaxTokens = tokens
	switch x.form {
	case budget:
		p.Thinking = &thinking{Type: "enabled", BudgetTokens: want}
	case adaptive:
		p.Thinking = &thinking{Type: "adaptive"}
		if !d.noDisplay { // new models leave the words out unless asked
			p.Thinking.Display = "summarized"
		}
		if !d.noEffort && x.effort != "" {
			x.output().Effort = string(x.effort)
		}
	case disabled:
		p.Thinking = &thinking{Type: "disabled"}
	}
}

// notes returns what the model gets instead of the effort of req. A budget means its effort.
func (x *exchange) notes(req provider.Request) []string {
	switch {
	case req.Effort == "", x.form == budget, x.form == disabled:
		return nil
	case req.Effort == provider.NoEffort && !thinksAdaptively(x.model):
		return nil // it does not think without being asked
	case x.form == adaptive && x.asksEffort():
		if x.effort == req.Effort {
			return nil
		}
		return []string{req.Effort.ReplacedNote(x.effort)}
	}
	return []string{req.Effort.ReplacedNote("")}
}

// thinks reports whether x asks for thinking.
func (x *exchange) thinks() bool { return x.form == budget || x.form == adaptive }

// asksEffort reports whether x names an effort.
func (x *exchange) asksEffort() bool {
	return x.params.OutputConfig != nil && x.params.OutputConfig.Effort != ""
}

// displays reports whether x asks for the words of the thinking.
func (x *exchange) displays() bool {
	return x.params.Thinking != nil && x.params.Thinking.Display != ""
}

// emptyThinking begins the signature of a thinking block whose words the API keeps to
// itself. Without it the block would pass for a redacted one, which goes back in another
// form. The API's own signatures have no colon.
const emptyThinking = "thinking:"

// signatureOf returns the signature of a thinking block in the form in which it is kept.
func signatureOf(thinking bool, signature string) string {
	if thinking || signature == "" {
		return signature
	}
	return emptyThinking + signature
}

// thinkingBlock returns a part of reasoning as the block that it was; ok is false if it
// is not Claude's.
func thinkingBlock(text, signature string) (block content, ok bool) {
	switch own, empty := strings.CutPrefix(signature, emptyThinking); {
	case signature == "":
		return block, false
	case empty:
		return content{Type: thinkBlock, Thinking: &text, Signature: own}, true
	case text == "":
		return content{Type: redactedBlock, Data: signature}, true
	}
	return content{Type: thinkBlock, Thinking: &text, Signature: signature}, true
}
