package app

import (
	"fmt"
	"path/filepath"
	"sync"

	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/engine/ledger"
	"loki/internal/service/postgres"
)

// asking is what calls of models share.
type asking struct {
	meterFailed sync.Once // see meter
	governor    governor.Governor
}

// Limits returns what is known of the limits of providers.
func (a *App) Limits() *governor.Governor { return &a.governor }

// limitRows returns the limits of providers that several servers share.
func (a *App) limitRows() (governor.Rows, error) {
	db, err := a.Database()
	if err != nil {
		return nil, err
	}
	return &postgres.Documents{DB: db, Name: "limits", Topic: "limits"}, nil
}

// Ledger returns the record of what model calls used.
func (a *App) Ledger() ledger.Ledger {
	return ledger.Ledger{Dir: filepath.Join(a.Paths.StateDir, "usage")}
}

// UsedDays is how many days [App.UsageSums] adds up, today included.
const UsedDays = 7

// UsageSums returns what the calls of all processes used today and in the last days. Note says why that may not be all,
// "" if it is.
func (a *App) UsageSums() (today, days ledger.Sum, note string, err error) {
	if !a.Config.UsageLog {
		note = "usage_log is false in the configuration, so calls are not recorded"
	}
	if today, err = a.Ledger().Sum(1); err != nil {
		return today, days, note, err
	}
	days, err = a.Ledger().Sum(UsedDays)
	return today, days, note, err
}

// meter returns a function that records what calls of a model used, with their price.
func (a *App) meter(m catalog.Model) func(chat.Usage) {
	if !a.Config.UsageLog {
		return func(chat.Usage) {}
	}
	book, cost := a.Ledger(), a.cost(m)
	return func(used chat.Usage) {
		if cost != nil {
			used = cost(used)
		}
		if err := book.Add(m.ID(), used); err != nil {
			a.meterFailed.Do(func() {
				a.later(fmt.Sprintf("what calls use is not recorded: %v (usage_log: false in the configuration turns the record off)", err))
			})
		}
	}
}
