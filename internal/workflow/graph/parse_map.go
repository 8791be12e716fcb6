package graph

import (
	"strconv"
	"strings"

	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph/expr"
)

func (p *parser) mapOver(n *Node, m *yamldoc.Map) {
	n.Map = &Map{OutputKey: DefaultOutputKey}
	templates(m)("over", &n.Map.Over)
	m.Str("as", &n.Map.As)
	m.Str("branch", &n.Map.Branch)
	m.Str("output_key", &n.Map.OutputKey)
	m.Str("collect_into", &n.Map.CollectInto)
	n.Map.HasMaxConcurrency = m.Uint("max_concurrency", &n.Map.MaxConcurrency)
	if width := 0; m.Uint("concurrency", &width) {
		if n.Map.HasMaxConcurrency {
			m.Get("concurrency").Errorf("concurrency and max_concurrency are two names of one field").Hint = "keep one of them"
		}
		n.Map.MaxConcurrency, n.Map.HasMaxConcurrency = width, true
	}
	positive(m, "batch", &n.Map.Batch, m.Uint)
	yamldoc.Choice(m, "on_error", &n.Map.OnError, ItemsFail, ItemsSkip, ItemsCollect)
	n.Map.MinSuccess = share(m, "min_success")
	n.Map.ItemIf = expression(m, "item_if")
	n.Map.Enough = expression(m, "enough")
}

// share reads a number of items, or a percentage.
func share(m *yamldoc.Map, key string) *Share {
	var text string
	if !m.Text(key, &text) {
		return nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		if percent, err := strconv.ParseFloat(number, 64); err == nil && percent > 0 && percent <= 100 {
			return &Share{Percent: percent}
		}
	} else if count, err := strconv.Atoi(text); err == nil && count > 0 {
		return &Share{Count: count}
	}
	m.Get(key).Errorf("%q is neither a number of items from 1 on nor a percentage", text).Hint = `write how many items have to succeed: 3 or "80%"`
	return nil
}

// expression reads a condition.
func expression(m *yamldoc.Map, key string) *expr.Expr {
	var source string
	if !m.Str(key, &source) {
		return nil
	}
	e := condition(m.Get(key), source)
	if e == nil {
		return nil
	}
	for _, problem := range e.Check(nil, expr.Bool) {
		m.Get(key).ErrorAt(problem.Offset, "%s", problem.Msg).Hint = problem.Hint
	}
	return e
}
