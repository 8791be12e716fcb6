package anthropic

import (
	"strconv"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// dialect is what a model does not take of that which others do. The zero value takes
// everything.
type dialect struct {
	rejected      form  // the ways to ask for thinking, as a set
	maxTokens     int64 // how long a reply may be, 0 if that is not known
	noTemperature bool
	noTopP        bool
	noEffort      bool
	highest       bool // high is the highest effort
	noDisplay     bool
	noCache       bool
	noFormat      bool // of replies

	// noBlocks leaves the thinking blocks of the conversation out. It concerns one
	// conversation.
	noBlocks bool
}

// withoutConversation returns d without what concerns one conversation.
func (d dialect) withoutConversation() dialect {
	d.noBlocks = false
	return d
}

// adapt returns the dialect that the model may take after it has rejected x with msg, in
// lower case; ok reports whether there is one. It always differs from d.
func (d dialect) adapt(msg string, x *exchange) (next dialect, ok bool) {
	old := d
	says := func(words ...string) bool { return normalize.Says(msg, words...) }
	p := x.params
	switch {
	case says("max_tokens: "):
		n := allowedTokens(msg)
		if n <= 0 || n >= p.MaxTokens {
			return d, false
		}
		d.maxTokens = n
	case says("thinking") && says("signature", "must start with", "expected `thinking`", "cannot be modified"):
		d.noBlocks = d.noBlocks || x.blocks || x.form == budget
	case x.format && !says("effort") && normalize.RefusesFormat(msg):
		d.noFormat = true
	case !says(refusals...): // a value that is wrong is for the user to correct
	case says("temperature", "top_p"):
		switch {
		case p.Temperature != nil && p.TopP != nil && says("both"):
			d.noTopP = true
		case p.Temperature != nil || p.TopP != nil:
			d.noTemperature, d.noTopP = true, true
		}
	case says("display") && x.displays():
		d.noDisplay = true
	case says("effort") && !says("thinking") && x.asksEffort():
		if x.effort == provider.XHighEffort || x.effort == provider.MaxEffort {
			d.highest = true
		} else {
			d.noEffort = true
		}
	case says("thinking", "adaptive", "budget_tokens", "output_config") && x.form != 0:
		d.rejected |= x.form
		if x.form == budget && !says("adaptive") {
			d.rejected |= adaptive // the model does not think at all
		}
	case says("cache_control"):
		d.noCache = true
	}
	return d, d != old
}

// refusals are the words by which the API says that it does not know something or
// does not take it from this model, in lower case.
var refusals = []string{
	"support", "deprecated", "only be set", "cannot", "not allowed", "not permitted", "unset", "input tag", "not available",
}

// allowedTokens returns the limit in messages like "max_tokens: 32768 > 4096, which is
// the maximum allowed number of output tokens for ...", 0 if there is none.
func allowedTokens(msg string) int64 {
	_, rest, ok := strings.Cut(msg, "max_tokens: ")
	if !ok {
		return 0
	}
	_, rest, ok = strings.Cut(rest, " > ")
	if !ok {
		return 0
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
