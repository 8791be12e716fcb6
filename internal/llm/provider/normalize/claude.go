package normalize

import (
	"strconv"
	"strings"

	"loki/internal/llm/provider"
)

// ClaudeVersion returns the version in the name of a Claude: 3-7-sonnet-20250219 and
// sonnet-4-20250514 are 3.7 and 4.0. major is negative for a name without one.
func ClaudeVersion(model string) (major, minor int, ok bool) {
	_, name, ok := strings.Cut(strings.ToLower(model), "claude-")
	if !ok {
		return -1, 0, false
	}
	major, minor = -1, 0
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-.@:", r) }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil && major >= 0, len(word) > 2 && err == nil: // a date or another suffix
			return major, minor, true
		case err != nil: // the family
		case major < 0:
			major = n
		default:
			return major, n, true
		}
	}
	return major, minor, true
}

// ClaudeEfforts returns the efforts that a Claude with adaptive thinking takes: those that the
// catalog lists, or if it lists none, those of its version. xhigh came with 4.7.
func ClaudeEfforts(listed []provider.Effort, xhigh bool) []provider.Effort {
	if listed != nil {
		return listed
	}
	efforts := []provider.Effort{provider.NoEffort, provider.LowEffort, provider.MediumEffort, provider.HighEffort, provider.MaxEffort}
	if xhigh {
		efforts = append(efforts, provider.XHighEffort)
	}
	return efforts
}
