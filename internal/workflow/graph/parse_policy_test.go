package graph_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/workflow/graph"
)

func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		name, retry string
		want        *retry.Policy
	}{
		{"absent", "", nil},
		{"null", ", retry: ~", nil},
		{"empty", ", retry: {}", &retry.Policy{Attempts: 1, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute, Jitter: 0.2}},
		{"nulls", ", retry: {attempts: ~, backoff: , factor: ~, max_backoff: ~, jitter: ~}", &retry.Policy{Attempts: 1, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute, Jitter: 0.2}},
		{
			"whole_numbers", ", retry: {attempts: 5, backoff: 3, factor: 1, max_backoff: 20, jitter: 0}",
			&retry.Policy{Attempts: 5, Backoff: 3 * time.Second, Factor: 1, MaxBackoff: 20 * time.Second},
		},
		{
			"fractions", ", retry: {attempts: 2, backoff: 0.25, factor: 1.5, max_backoff: 1e1, jitter: 1.0}",
			&retry.Policy{Attempts: 2, Backoff: 250 * time.Millisecond, Factor: 1.5, MaxBackoff: 10 * time.Second, Jitter: 1},
		},
		{"no_wait", ", retry: {attempts: 2, backoff: 0, max_backoff: 0}", &retry.Policy{Attempts: 2, Factor: 2, Jitter: 0.2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, kind := range []string{"type: llm, prompt: p", "type: script, script: s.sh", "type: agent, agent: c, prompt: p", "type: rag, documents: [d]"} {
				if got := with(t, kind+tt.retry).Retry; !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got %+v, want %+v", kind, got, tt.want)
				}
			}
		})
	}
}

func TestOnUncertain(t *testing.T) {
	for text, want := range map[string]graph.Uncertain{
		"": "", ", on_uncertain: ~": "", ", on_uncertain: retry": graph.UncertainRetry, ", on_uncertain: skip": graph.UncertainSkip, `, on_uncertain: "ask"`: graph.UncertainAsk,
	} {
		for _, kind := range []string{"type: llm, prompt: p", "type: script, script: s.sh", "type: agent, agent: c, prompt: p"} {
			if got := with(t, kind+text).OnUncertain; got != want {
				t.Errorf("%s%s: got %q, want %q", kind, text, got, want)
			}
		}
	}
}

func TestCache(t *testing.T) {
	key := graph.ParseTemplate("{{topic}}")
	for _, tt := range []struct {
		name, cache string
		want        *graph.Cache
	}{
		{"absent", "", nil},
		{"null", ", cache: ~", nil},
		{"ttl", ", cache: {ttl: 90}", &graph.Cache{TTL: 90 * time.Second}},
		{"zero", ", cache: {ttl: 0, key: ~}", &graph.Cache{}},
		{"key", ", cache: {ttl: 1, key: '{{topic}}'}", &graph.Cache{TTL: time.Second, Key: &key}},
		{"empty_key", ", cache: {ttl: 1, key: ''}", &graph.Cache{TTL: time.Second, Key: &graph.Template{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, kind := range []string{"type: llm, prompt: p", "type: script, script: s.sh", "type: rag, documents: [d]"} {
				if got := with(t, kind+tt.cache).Cache; !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got %+v, want %+v", kind, got, tt.want)
				}
			}
		})
	}
}

func TestApprovalDefault(t *testing.T) {
	const approval = "type: approval, question: q, options: [], routes: {}, on_other: b"
	if n := with(t, approval+", default: '{{x}}', timeout: 5"); n.Approval.Default.Source != "{{x}}" || n.Timeout != 5*time.Second || !n.HasTimeout {
		t.Errorf("%+v %+v", n, n.Approval)
	}
	for _, fields := range []string{"", ", default: ~"} {
		if n := with(t, approval+fields); n.Approval.Default != nil {
			t.Errorf("%s: %+v", fields, n.Approval)
		}
	}
}

func TestBudgetAndDurability(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		budget         graph.Budget
		durability     graph.Durability
	}{
		{"absent", "", graph.Budget{}, graph.DurabilityProcess},
		{"null", "budget: ~, durability: ~", graph.Budget{}, graph.DurabilityProcess},
		{"empty", "budget: {}, durability: process", graph.Budget{}, graph.DurabilityProcess},
		{"all", "budget: {usd: 0.5, tokens: 1000, seconds: 60}, durability: power", graph.Budget{USD: 0.5, Tokens: 1000, Duration: time.Minute}, graph.DurabilityPower},
		{"whole_dollars", "budget: {usd: 2}, durability: off", graph.Budget{USD: 2}, graph.DurabilityOff},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := parse(t, "name: x\nstart: b\nsettings: {"+tt.settings+"}\nnodes:\n  b: {type: end}\n").Settings
			if s.Budget != tt.budget || s.Durability != tt.durability {
				t.Errorf("got %+v %q", s.Budget, s.Durability)
			}
		})
	}
}

func TestPositionsOfPolicies(t *testing.T) {
	g := parse(t, `name: x
start: a
settings:
  budget:
    usd: 0.5
  durability: power
nodes:
  a:
    type: script
    script: a.sh
    retry:
      attempts: 3
    cache: {ttl: 60, key: k}
    on_uncertain: ask
    next: b
  b: {type: approval, question: q, options: [], routes: {}, on_other: c, default: d}
  c: {type: end}
`)
	for path, want := range map[string]graph.Pos{
		"settings.budget":        {Line: 4, Column: 3},
		"settings.budget.usd":    {Line: 5, Column: 10},
		"settings.budget.tokens": {Line: 4, Column: 3}, // the nearest there is
		"settings.durability":    {Line: 6, Column: 15},
		"nodes.a.retry":          {Line: 11, Column: 5},
		"nodes.a.retry.attempts": {Line: 12, Column: 17},
		"nodes.a.retry.jitter":   {Line: 11, Column: 5},
		"nodes.a.cache.ttl":      {Line: 13, Column: 18},
		"nodes.a.cache.key":      {Line: 13, Column: 27},
		"nodes.a.on_uncertain":   {Line: 14, Column: 19},
		"nodes.b.default":        {Line: 16, Column: 83},
	} {
		if got := g.Pos(path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

func TestUnknownPolicyKeysAreWarnings(t *testing.T) {
	_, warnings, err := graph.Parse("graph.yaml", []byte("name: x\nstart: a\nnodes:\n  a: {type: script, script: s.sh, retry: {atempts: 2}, on_uncertan: ask}\n  b: {type: end}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, line(w))
	}
	want := `4:43 warning unknown-key: [a] unknown key "atempts" is ignored | did you mean "attempts"?
4:56 warning unknown-key: [a] unknown key "on_uncertan" is ignored | did you mean "on_uncertain"?`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
