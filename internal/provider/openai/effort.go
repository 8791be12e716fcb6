package openai

import (
	"cmp"
	"slices"
	"strings"

	"loki/internal/provider"
)

// efforts returns the efforts in ascending order.
func efforts() []provider.Effort {
	return []provider.Effort{provider.NoEffort, provider.MinimalEffort, provider.LowEffort, provider.MediumEffort, provider.HighEffort}
}

// insteadOf says for each effort, in the order of [efforts], which one to send
// instead; empty means itself.
type insteadOf [5]provider.Effort

// or returns the efforts of d, and where it has none those of known.
func (d insteadOf) or(known insteadOf) insteadOf {
	for i, e := range known {
		d[i] = cmp.Or(d[i], e)
	}
	return d
}

// effort returns the effort to send for e, empty for none.
func (d dialect) effort(e provider.Effort) provider.Effort {
	i := slices.Index(efforts(), e)
	switch {
	case d.noEffort || i < 0:
		return ""
	case d.instead[i] != "":
		return d.instead[i]
	}
	return e
}

// withoutEffort returns d after a server has rejected an effort. Most models that
// take an effort at all lack only some and say which they have, so the next higher
// one of these takes its place.
func (d dialect) withoutEffort(rejected provider.Effort, words string) dialect {
	all := efforts()
	i := slices.Index(all, rejected)
	for _, e := range all[i+1:] {
		if quotes(words, string(e)) && d.instead[i] == "" {
			d.instead[i] = e
			return d
		}
	}
	d.noEffort = true
	return d
}

// quotes reports whether words, which may be JSON, hold word in any quotation marks.
func quotes(words, word string) bool {
	return slices.ContainsFunc([]string{"'", "`", `"`, `\"`}, func(mark string) bool {
		return strings.Contains(words, mark+word+mark)
	})
}
