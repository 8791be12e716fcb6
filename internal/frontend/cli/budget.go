package cli

import (
	"strconv"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// limit returns the budget of --budget: dollars, or tokens with the unit behind them. The zero value is none.
func (o *options) limit() (graph.Budget, error) {
	if o.budget == "" {
		return graph.Budget{}, nil
	}
	return parseAmount("budget", o.budget)
}

// parseAmount returns the amount that a flag says.
func parseAmount(flag, amount string) (graph.Budget, error) {
	if text, ok := strings.CutSuffix(amount, "tokens"); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
			return graph.Budget{Tokens: n}, nil
		}
	} else if usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64); err == nil && usd > 0 && usd < 1e9 {
		return graph.Budget{USD: usd}, nil
	}
	return graph.Budget{}, fault.New(fault.Usage, "flag --%s: %q is not an amount", flag, amount).
		WithHint("write dollars, such as 0.50, or tokens, such as 200000tokens")
}

// budgetBound returns what keeps work with a knowledge base within --budget, nil without one.
func (o *options) budgetBound() engine.Budget {
	limit, _ := o.limit() // it was checked
	if b := run.NewBudget(limit, chat.Usage{}); b != nil {
		return b.SetIn("--budget")
	}
	return nil
}

// runBudget returns --budget as requests for a run at a server have it, nil without one.
func (o *options) runBudget() *api.RunBudget {
	limit, _ := o.limit() // it was checked
	if limit == (graph.Budget{}) {
		return nil
	}
	return &api.RunBudget{USD: limit.USD, Tokens: limit.Tokens}
}
