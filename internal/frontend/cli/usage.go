package cli

import (
	"context"
	"fmt"

	"loki/internal/frontend/command/display"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/ledger"
)

// usedInfo is what was used, in machine output.
type usedInfo struct {
	Calls int `json:"calls"`
	chat.Usage
	Models []modelUsed `json:"models"`
}

// modelUsed is what one model used, in machine output.
type modelUsed struct {
	Model string `json:"model"`
	Calls int    `json:"calls"`
	chat.Usage
}

func newUsedInfo(s ledger.Sum) usedInfo {
	info := usedInfo{Calls: s.Calls, Usage: s.Usage, Models: []modelUsed{}}
	for _, m := range s.Models {
		info.Models = append(info.Models, modelUsed{m.Model, m.Calls, m.Usage})
	}
	return info
}

// showUsage prints what the calls of all processes used today and in the last days.
func (c *command) showUsage(context.Context) error {
	today, days, note, err := c.app.Models.UsageSums()
	if err != nil {
		return err
	}
	if note != "" && !c.opts.quiet && c.opts.output == outputText {
		fmt.Fprintln(c.Err, note)
	}
	table := display.Usage([]display.Spent{{Name: "today", Calls: today.Calls, Usage: today.Usage}, {Name: "7 days", Calls: days.Calls, Usage: days.Usage}}, days.Models)
	return c.print(map[string]usedInfo{"today": newUsedInfo(today), "days_7": newUsedInfo(days)}, table)
}
