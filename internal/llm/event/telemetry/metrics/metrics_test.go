package metrics_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/telemetry/metrics"
	"loki/internal/llm/event/telemetry/metrics/metricstest"
)

func TestText(t *testing.T) {
	var r metrics.Registry
	r.Counter("empty_total", "Has no series.", "a")
	r.Counter("plain_total", "Has one, from the beginning.")
	c := r.Counter("strange_total", "A \\ and\na line.", "a", "b")
	c.Add(1, "quote \" backslash \\ line\n", "")
	c.Add(2.5, "\xff", "ü")
	g := r.Gauge("gauge", "Goes down.", "a")
	g.Add(3, "x")
	g.Add(-4, "x")
	h := r.Histogram("seconds", "In buckets.", []float64{0.1, 1}, "a")
	for _, n := range []float64{0.05, 0.1, 0.5, 7} {
		h.Observe(n, "x")
	}
	const want = `# HELP plain_total Has one, from the beginning.
# TYPE plain_total counter
plain_total 0
# HELP strange_total A \\ and\na line.
# TYPE strange_total counter
strange_total{a="quote \" backslash \\ line\n",b=""} 1
strange_total{a="�",b="ü"} 2.5
# HELP gauge Goes down.
# TYPE gauge gauge
gauge{a="x"} -1
# HELP seconds In buckets.
# TYPE seconds histogram
seconds_bucket{a="x",le="0.1"} 2
seconds_bucket{a="x",le="1"} 3
seconds_bucket{a="x",le="+Inf"} 4
seconds_sum{a="x"} 7.65
seconds_count{a="x"} 4
`
	got := r.Text()
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	metricstest.Check(t, metricstest.Parse(t, got), map[string]float64{"strange_total a=quote \" backslash \\ line\n b=": 1, "gauge a=x": -1, "seconds a=x": 4})
}

func TestNamesAreBounded(t *testing.T) {
	var n metrics.Names
	values := make(map[string]bool)
	for i := range 10_000 {
		values[n.Value(fmt.Sprintf("agent-%d", i))] = true
	}
	if len(values) != 201 || !values[metrics.Other] || n.Value("agent-7") != "agent-7" || n.Value("agent-9999") != metrics.Other || n.Value("") != "" {
		t.Errorf("%d values", len(values))
	}
	if v := n.Value(strings.Repeat("x", 10_000)); len(v) > 128 {
		t.Errorf("a value has %d bytes", len(v))
	}
}

func TestEvents(t *testing.T) {
	var r metrics.Registry
	e := metrics.NewEvents(&r)
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	emit := func(after time.Duration, s event.Source, b event.Body) {
		t.Helper()
		if err := e.Emit(context.Background(), event.Event{Time: noon.Add(after), Source: s, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	top := event.Source{Run: "r1", Agent: "research"}
	one, two := 0, 1
	a, b := event.Source{Run: "r1", Agent: "research", Node: "each", Item: &one}, event.Source{Run: "r1", Agent: "research", Node: "each", Item: &two}
	child := top.Child("critic", "agent_critic_1")
	usage := chat.Usage{InputTokens: 10, CachedInputTokens: 4, OutputTokens: 3, ReasoningTokens: 1, Cost: 0.25}
	emit(0, top, event.Started{Graph: "research"})
	emit(0, a, event.ModelCall{Model: "up:m"})
	emit(0, b, event.ModelCall{Model: "up:m"})
	emit(time.Second, a, event.Delta{Text: "x"})
	emit(2*time.Second, a, event.Delta{Text: "y"})
	emit(2*time.Second, b, event.ModelCall{Model: "up:m"}) // again
	emit(3*time.Second, a, event.Reply{Model: "up:m", Usage: usage})
	emit(3*time.Second, b, event.Reply{Model: "up:m", Usage: usage})
	emit(3*time.Second, a, event.ToolResult{Name: "fs_cat"})
	emit(3*time.Second, a, event.ToolResult{Name: "fs_cat", Failed: true})
	emit(3*time.Second, child, event.ModelCall{Model: "up:n"}) // gets no answer
	emit(3*time.Second, child, event.Finished{Error: "late", Code: "limit"})
	emit(4*time.Second, a, event.NodeFinished{NodeType: "map", Error: "exit status 1"})
	emit(4*time.Second, a, event.NodeFinished{NodeType: "map", Waiting: true})
	emit(5*time.Second, top, event.Finished{Duration: 5 * time.Second})
	emit(5*time.Second, event.Source{Run: "r2"}, event.Finished{Code: "canceled", Error: "the run was canceled"})
	emit(5*time.Second, event.Source{Run: "r3"}, event.Finished{Code: "suspended", Error: "it waits"})
	emit(5*time.Second, event.Source{Run: "r4"}, event.Finished{Code: "provider", Error: "no"})
	got := metricstest.Parse(t, r.Text())
	metricstest.Check(t, got, map[string]float64{
		"runs_finished_total status=done": 1, "runs_finished_total status=canceled": 1, "runs_finished_total status=suspended": 1, "runs_finished_total status=failed": 1,
		"run_duration_seconds agent=research": 1, "run_duration_seconds agent=": 3, "node_failures_total type=map": 1,
		"model_calls_total model=up:m outcome=ok": 2, "model_calls_total model=up:m outcome=error": 1, "model_calls_total model=up:n outcome=error": 1,
		"model_tokens_total model=up:m kind=input": 20, "model_tokens_total model=up:m kind=cached": 8, "model_tokens_total model=up:m kind=output": 6,
		"model_tokens_total model=up:m kind=reasoning": 2, "model_cost_usd_total model=up:m": 0.5, "time_to_first_token_seconds model=up:m": 2,
		"tool_calls_total tool=fs_cat outcome=ok": 1, "tool_calls_total tool=fs_cat outcome=error": 1,
	})
	if text := string(r.Text()); !strings.Contains(text, `time_to_first_token_seconds_sum{model="up:m"} 2`+"\n") { // 1 s to the first piece, and 1 s to an answer in one piece
		t.Errorf("got\n%s", text)
	}
	for i := range 10_000 {
		s := event.Source{Run: fmt.Sprint("run", i), Agent: fmt.Sprint("agent", i)}
		emit(0, s, event.ModelCall{Model: fmt.Sprint("up:", i)})
		emit(0, s, event.Delta{})
		emit(0, s, event.Reply{Model: fmt.Sprint("up:", i), Usage: usage})
		emit(0, s, event.ToolResult{Name: fmt.Sprint("tool", i)})
		emit(0, s, event.Finished{})
	}
	if lines := bytes.Count(r.Text(), []byte("\n")); lines > 201*(5+17+14+2)+100 {
		t.Errorf("%d lines after 10,000 agents, models and tools", lines)
	}
}

func BenchmarkObserve(b *testing.B) {
	var r metrics.Registry
	h := r.Histogram("seconds", "In buckets.", metrics.Seconds(), "route", "method")
	for b.Loop() {
		h.Observe(0.02, "/v1/runs/{id}", "GET")
	}
}
