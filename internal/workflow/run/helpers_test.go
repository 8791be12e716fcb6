package run_test

import (
	"context"

	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// executor is a function that is a run.Executor.
type executor func(ctx context.Context, t *run.Task) graph.Result

func (e executor) Execute(ctx context.Context, t *run.Task) graph.Result { return e(ctx, t) }

func usage(tokens int) chat.Usage { return chat.Usage{InputTokens: tokens} }
func cost(usd float64) chat.Usage { return chat.Usage{Cost: usd} }
