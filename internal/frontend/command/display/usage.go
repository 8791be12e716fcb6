package display

import (
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/ledger"
)

// Spent is a row of a table of what was used.
type Spent struct {
	Name  string
	Calls int // 0 for unknown
	Usage chat.Usage
}

// Usage returns what was used as a table and, below it, what each of the models used, if there are
// several.
func Usage(rows []Spent, models []ledger.ModelUsage) string {
	var b strings.Builder
	b.WriteString(spentTable("", rows))
	if len(models) > 1 {
		var each []Spent
		for _, m := range models {
			each = append(each, Spent{m.Model, m.Calls, m.Usage})
		}
		b.WriteString("\n" + spentTable("MODEL", each))
	}
	return b.String()
}

func spentTable(name string, rows []Spent) string {
	return List([]string{name, "CALLS", "INPUT", "CACHED", "OUTPUT", "REASONING", "COST"}, rows, func(r Spent) []string {
		calls := "-"
		if r.Calls > 0 {
			calls = strconv.Itoa(r.Calls)
		}
		u := r.Usage
		return []string{
			text.OneLine(r.Name, 60), calls, strconv.Itoa(u.InputTokens), strconv.Itoa(u.CachedInputTokens), strconv.Itoa(u.OutputTokens), strconv.Itoa(u.ReasoningTokens), Cost(u),
		}
	}, 1, 2, 3, 4, 5, 6)
}
