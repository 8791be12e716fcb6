package app

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"

	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/ledger"
	"loki/internal/llm/provider"
)

// Ledger returns the record of what model calls used.
func (a *App) Ledger() ledger.Ledger {
	return ledger.Ledger{Dir: filepath.Join(a.Paths.StateDir, "usage")}
}

// UsedDays is how many days [App.Used] adds up, today included.
const UsedDays = 7

// Used returns what the calls of all processes used today and in the last days. Note says why that may not be all,
// "" if it is.
func (a *App) Used() (today, days ledger.Sum, note string, err error) {
	if !a.Config.UsageLog {
		note = "usage_log is false in the configuration, so calls are not recorded"
	}
	if today, err = a.Ledger().Sum(1); err != nil {
		return today, days, note, err
	}
	days, err = a.Ledger().Sum(UsedDays)
	return today, days, note, err
}

// meter returns a function that records what calls of the model called id used.
func (a *App) meter(id string) func(chat.Usage) {
	if !a.Config.UsageLog {
		return func(chat.Usage) {}
	}
	book := a.Ledger()
	return func(used chat.Usage) {
		if err := book.Add(id, used); err != nil {
			a.meterFailed.Do(func() {
				a.later(fmt.Sprintf("what calls use is not recorded: %v (usage_log: false in the configuration turns the record off)", err))
			})
		}
	}
}

// meterFor is meter for a model of knowledge bases. The program's own, which work on this machine, are
// not recorded.
func (a *App) meterFor(m catalog.Model) func(chat.Usage) {
	if m.ClientType == catalog.Builtin {
		return func(chat.Usage) {}
	}
	add, cost := a.meter(m.ID()), a.cost(m)
	return func(used chat.Usage) {
		if used != (chat.Usage{}) && cost != nil {
			used = cost(used)
		}
		add(used)
	}
}

// metered is a provider whose usage is recorded.
type metered struct {
	chat  provider.Chat
	price func(chat.Usage) (usd float64, known bool) // nil: it costs nothing
	add   func(chat.Usage)
}

// Chat implements [provider.Chat].
func (m metered) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		for chunk, err := range m.chat.Chat(ctx, req) {
			if err == nil && chunk.Kind == provider.End {
				m.record(chunk.Usage)
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

func (m metered) record(used chat.Usage) {
	if m.price != nil {
		usd, known := m.price(used)
		used.CostUnknown = !known
		if known {
			used.Cost = usd
		}
	}
	m.add(used)
}
