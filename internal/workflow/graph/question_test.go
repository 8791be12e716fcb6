package graph_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/workflow/graph"
)

// TestQuestionsInParallel: questions may be started together, and be what a map runs.
func TestQuestionsInParallel(t *testing.T) {
	const approval = "{type: approval, question: 'A {{initial_prompt}}?', options: [yes], routes: {yes: z}, on_other: z, state_updates: {a: '{{choice}}'}}"
	for _, src := range []string{
		fan(approval, "{type: input, question: q, state_updates: {b: '{{input}}'}, next: z}"),
		fan(approval, "{type: llm, prompt: p, state_updates: {b: '{{output}}'}, next: z}"),
		mapOver("{type: approval, question: q, options: [yes, no], state_updates: {k: '{{choice}}'}}"),
		mapOver("{type: input, question: q}"),
	} {
		for _, f := range graph.Validate(parse(t, top+src), world) {
			if f.Rule != graph.RuleUndefinedRead && f.Rule != graph.RulePlaceholder {
				t.Errorf("%s%s", src, f)
			}
		}
	}
	// What one writes and another one reads is found all the same.
	src := fan(approval, "{type: input, question: 'After {{a}}?', next: z}")
	if findings := graph.Validate(parse(t, top+src), world); !slices.ContainsFunc(findings, func(f graph.Finding) bool { return f.Rule == graph.RuleParallelRead }) {
		t.Errorf("findings %v", findings)
	}
}

func TestWhoAnswersAndUntilWhen(t *testing.T) {
	g := parse(t, top+`nodes:
  a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: b, assignee: ada, expires: 36h}
  b: {type: input, question: q, assignees: [ada, editors], expires: 60, next: z}
  z: {type: end}
`)
	a, b := g.Node("a"), g.Node("b")
	if !slices.Equal(a.Assignees(), []string{"ada"}) || !slices.Equal(b.Assignees(), []string{"ada", "editors"}) {
		t.Errorf("assignees %v, %v", a.Assignees(), b.Assignees())
	}
	if a.Expires.Source != "36h" || b.Expires.Source != "60" {
		t.Errorf("expires %v, %v", a.Expires, b.Expires)
	}
	for fields, want := range map[string]string{
		"assignee: ada, assignees: [bob]": "assignee stands beside assignees",
		"expires: tomorrow":               `"tomorrow" is neither a time`,
		"expires: -5":                     `"-5" is neither a time`,
		"expires: [1]":                    "expected a text",
	} {
		_, _, err := graph.Parse("graph.yaml", []byte(top+"nodes:\n  a: {type: input, question: q, "+fields+", next: z}\n  z: {type: end}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// TestApprovalWithoutRoutes: only what a map runs needs none.
func TestApprovalWithoutRoutes(t *testing.T) {
	const approval = "  b: {type: approval, question: q, options: [x]}\n"
	if _, _, err := graph.Parse("graph.yaml", []byte(top+mapOver(strings.TrimPrefix(strings.TrimSpace(approval), "b: ")))); err != nil {
		t.Error(err)
	}
	_, _, err := graph.Parse("graph.yaml", []byte(top+"nodes:\n  a: {type: llm, prompt: p, next: b}\n"+approval+"  z: {type: end}\n"))
	for _, field := range []string{"routes", "on_other"} {
		if err == nil || !strings.Contains(err.Error(), `required field "`+field+`" is missing`) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestParseExpiry(t *testing.T) {
	at := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	for text, want := range map[string]struct {
		at    time.Time
		after time.Duration
	}{
		"2026-12-24T18:00:00Z":      {at: at},
		"2026-12-24T19:00:00+01:00": {at: at},
		" 3600 ":                    {after: time.Hour},
		"0.5":                       {after: 500 * time.Millisecond},
		"36h":                       {after: 36 * time.Hour},
		"1h30m":                     {after: 90 * time.Minute},
	} {
		got, after, err := graph.ParseExpiry(text)
		if err != nil || !got.Equal(want.at) || after != want.after {
			t.Errorf("%q: %v, %v, %v", text, got, after, err)
		}
	}
	for _, text := range []string{"", "0", "-1h", "2026-12-24", "18:00", "NaN", "Inf", "1e300", "1000000h", "soon"} {
		if at, after, err := graph.ParseExpiry(text); err == nil {
			t.Errorf("%q: %v, %v", text, at, after)
		}
	}
}
