package anthropic

import (
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"loki/internal/provider"
)

// form is a way to ask a model for thinking. 0 asks for nothing.
type form uint8

const (
	adaptive form = 1 << iota // the model decides, guided by an effort
	budget                    // so many tokens and no more
	disabled                  // no thinking, of models that think unless told otherwise
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
	}
	return 0
}

// effortOf returns the effort in the words of adaptive thinking.
func effortOf(e provider.Effort) sdk.OutputConfigEffort {
	switch e {
	case provider.MediumEffort:
		return sdk.OutputConfigEffortMedium
	case provider.HighEffort:
		return sdk.OutputConfigEffortHigh
	}
	return sdk.OutputConfigEffortLow
}

// formFor returns how to ask a model for an effort, unless that has been rejected.
func formFor(model string, e provider.Effort, rejected form) form {
	forms := []form{budget, adaptive}
	switch adapts := thinksAdaptively(model); {
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
// a new one. What is no Claude takes what was there first.
func thinksAdaptively(model string) bool {
	_, name, ok := strings.Cut(strings.ToLower(model), "claude-")
	if !ok {
		return false
	}
	major, minor := -1, 0
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-.@:", r) }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil && major >= 0, len(word) > 2 && err == nil: // a date or another suffix
			return newer(major, minor)
		case err != nil: // the family
		case major < 0:
			major = n
		default:
			return newer(major, n)
		}
	}
	return newer(major, minor)
}

func newer(major, minor int) bool {
	return major < 0 || major > 4 || major == 4 && minor >= 6
}

// think sets what x asks for in the way of thinking and the length of the reply. cannot
// says that the conversation has no room for a budget, because its tool loop began
// without thinking.
func (x *exchange) think(req provider.Request, d dialect, cannot bool) {
	tokens, want := int64(req.MaxOutputTokens), budgetOf(req.Effort)
	x.form = formFor(x.model, req.Effort, d.rejected)
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
		p.Thinking.OfEnabled = &sdk.ThinkingConfigEnabledParam{BudgetTokens: want}
	case adaptive:
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		if !d.noDisplay { // new models leave the words out unless asked
			p.Thinking.OfAdaptive.Display = sdk.ThinkingConfigAdaptiveDisplaySummarized
		}
		if !d.noEffort {
			p.OutputConfig.Effort = effortOf(req.Effort)
		}
	case disabled:
		p.Thinking.OfDisabled = &sdk.ThinkingConfigDisabledParam{}
	}
}

// thinks reports whether x asks for thinking.
func (x *exchange) thinks() bool { return x.form == budget || x.form == adaptive }

// displays reports whether x asks for the words of the thinking.
func (x *exchange) displays() bool {
	a := x.params.Thinking.OfAdaptive
	return a != nil && a.Display != ""
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
func thinkingBlock(text, signature string) (block sdk.ContentBlockParamUnion, ok bool) {
	switch own, empty := strings.CutPrefix(signature, emptyThinking); {
	case signature == "":
		return block, false
	case empty:
		return sdk.NewThinkingBlock(own, text), true
	case text == "":
		return sdk.NewRedactedThinkingBlock(signature), true
	}
	return sdk.NewThinkingBlock(signature, text), true
}
