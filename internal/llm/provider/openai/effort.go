package openai

import (
	"slices"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// insteadOf says for each effort, in the order of [chat.Efforts], which one to send
// instead; empty means itself.
type insteadOf [7]provider.Effort

// effort returns the effort to send for e, empty for none, to a model that knows those of
// a list. Nil means that nothing is known.
func (d dialect) effort(e provider.Effort, list []provider.Effort) provider.Effort {
	if d.noEffort || !e.Valid() {
		return ""
	}
	if list != nil {
		e = e.Nearest(list)
	}
	all := chat.Efforts()
	for range all { // there may be a cycle: the replacement of an effort can be rejected later
		i := slices.Index(all, e)
		if d.instead[i] == "" {
			return e
		}
		e = d.instead[i]
	}
	return e
}

// withoutEffort returns d after a server has rejected an effort. Most models that take an
// effort at all lack only some and say which they have, so the nearest of these takes its
// place. The highest and the lowest efforts are the newest, so that a server that says
// nothing more may know those before them.
func (d dialect) withoutEffort(rejected provider.Effort, words string) dialect {
	all := chat.Efforts()
	i := slices.Index(all, rejected)
	if i < 0 || d.instead[i] != "" {
		d.noEffort = true
		return d
	}
	var named []provider.Effort
	for j, e := range all {
		if e != rejected && d.instead[j] == "" && quotes(words, string(e)) {
			named = append(named, e)
		}
	}
	next := rejected.Nearest(named)
	if rejected == provider.NoEffort || next != provider.NoEffort {
		d.instead[i] = next
	}
	if d.instead[i] == "" && !strings.Contains(words, "does not support thinking") && !refusesEffort(words) {
		switch rejected {
		case provider.XHighEffort, provider.MaxEffort:
			d.instead[i] = provider.HighEffort
		case provider.MinimalEffort:
			d.instead[i] = provider.LowEffort
		}
	}
	d.noEffort = d.instead[i] == ""
	return d
}

// refusesEffort reports whether a rejection is about the parameter and not about its
// value.
func refusesEffort(words string) bool {
	return strings.Contains(words, "unsupported parameter") || strings.Contains(words, "unrecognized request argument") ||
		strings.Contains(words, "unknown parameter") || strings.Contains(words, "extra inputs are not permitted")
}

// quotes reports whether words, which may be JSON, hold word in any quotation marks.
func quotes(words, word string) bool {
	return slices.ContainsFunc([]string{"'", "`", `"`, `\"`}, func(mark string) bool {
		return strings.Contains(words, mark+word+mark)
	})
}
