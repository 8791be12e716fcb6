package graph_test

import (
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

// withMap is a graph with a map whose further fields are given, over the branch.
func withMap(fields, branch string) string {
	return "initial_state: {l: [1, 2, 3], o: {a: 1}}\nnodes:\n  a: {type: map, over: '{{l}}', as: i, branch: b, collect_into: r, next: z, " + fields + "}\n  b: " + branch + "\n" + tail
}

func TestMapFields(t *testing.T) {
	g := parse(t, top+withMap(`concurrency: 2, batch: 4, on_error: skip, min_success: "62.5%", item_if: "i > 1", enough: "len(results) > 2", fallback: z`, "{type: llm, prompt: p}"))
	n := g.Node("a")
	m := n.Map
	if m.MaxConcurrency != 2 || !m.HasMaxConcurrency || m.Batch != 4 || m.OnError != graph.ItemsSkip || m.MinSuccess.Of(8) != 5 || m.MinSuccess.Of(9) != 6 || n.Fallback != "z" {
		t.Errorf("%+v, %+v, fallback %q", m, m.MinSuccess, n.Fallback)
	}
	if m.ItemIf.Source != "i > 1" || m.Enough.Source != "len(results) > 2" {
		t.Errorf("%v, %v", m.ItemIf, m.Enough)
	}
	if m := parse(t, top+withMap("min_success: 2, on_error: collect", "{type: llm, prompt: p}")).Node("a").Map; m.MinSuccess.Of(8) != 2 || m.OnError != graph.ItemsCollect {
		t.Errorf("%+v", m)
	}
	for fields, want := range map[string]string{
		"batch: 0":                             "must be greater than 0",
		"min_success: 0":                       `"0" is neither a number of items from 1 on nor a percentage`,
		"min_success: 101%":                    `"101%" is neither`,
		"min_success: most":                    `"most" is neither`,
		"on_error: ignore":                     `"ignore"`,
		"concurrency: 1, max_concurrency: 2":   "two names of one field",
		"item_if: 'i >'":                       "not an expression",
		"enough: 'len(results)'":               "",
		"enough: '(((('":                       "not an expression",
		"item_if: \"i == 1 &&\\n  nothing +\"": "not an expression",
	} {
		_, _, err := graph.Parse("graph.yaml", []byte(top+withMap(fields, "{type: llm, prompt: p}")))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
	// The place of a mistake is that within the text.
	_, _, err := graph.Parse("graph.yaml", []byte(top+"nodes:\n  a:\n    type: map\n    over: l\n    as: i\n    branch: b\n    collect_into: r\n    item_if: i == 1 && )\n"))
	if err == nil || !strings.Contains(err.Error(), "graph.yaml:10:24: ") {
		t.Errorf("error %v", err)
	}
}

func TestMapFindings(t *testing.T) {
	const llm = "{type: llm, prompt: p}"
	for _, tt := range []struct{ name, src, want string }{
		{"good", withMap(`on_error: skip, min_success: 3, item_if: "i > 1", enough: "len(results) > 2"`, llm), ""},
		{"min_success_without_on_error", withMap("min_success: 1", llm), "min_success has no effect, since one failed item fails the map"},
		{"min_success_with_fail", withMap("on_error: fail, min_success: 50%", llm), "min_success has no effect, since one failed item fails the map"},
		{"on_error_and_fallback", withMap("on_error: collect", "{type: llm, prompt: p, fallback: z}"), `on_error has no effect, since a failure of branch "b" delivers its text as the result`},
		{"item_if_without_item", withMap(`item_if: "len(l) > 1"`, llm), "item_if does not look at the item, so it holds for all of them or for none"},
		{"enough_without_results", withMap(`enough: "i == 1"`, llm), "enough does not look at the results"},
		{"too_many", withMap("on_error: skip, min_success: 4", llm), "min_success is 4, but there are only 3 items, so the map always fails"},
		{"too_many_batches", withMap("on_error: skip, min_success: 3, batch: 2", llm), "min_success is 3, but there are only 2 items, so the map always fails"},
		{"too_many_members", strings.Replace(withMap("on_error: skip, min_success: 2", llm), "{{l}}", "{{o}}", 1), "min_success is 2, but there are only 1 items, so the map always fails"},
		{"list_that_changes", withMap("on_error: skip, min_success: 4", llm+"\n  c: {type: llm, prompt: p, state_updates: {l: x}, next: a}"), ""},
		{"script_may_change_it", withMap("on_error: skip, min_success: 4", "{type: script, script: ok.sh}"), ""},
		{"unknown_fallback", withMap("fallback: nowhere", llm), `map fallback leads to "nowhere", which is not a node`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range graph.Validate(parse(t, top+tt.src), world) {
				if f.Rule == graph.RuleItems || f.Rule == graph.RuleUnknownTarget {
					got = append(got, f.Message)
				}
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	// A sibling writes what the condition reads.
	src := "nodes:\n  s: {type: llm, prompt: p, next: [a, w]}\n  w: {type: llm, prompt: p, state_updates: {least: x}, next: z}\n" +
		"  a: {type: map, over: '{{l}}', as: i, branch: b, collect_into: r, next: z, item_if: i > least}\n  b: " + llm + "\n" + tail
	found := false
	for _, f := range graph.Validate(parse(t, top+src), world) {
		found = found || f.Rule == graph.RuleParallelRead && strings.Contains(f.Message, "least")
	}
	if !found {
		t.Error("the read of a condition is not found")
	}
}

// TestFingerprintOfItems: each field of a map changes what its runs do, and a default that is written out does not.
func TestFingerprintOfItems(t *testing.T) {
	const llm = "{type: llm, prompt: p}"
	plain := graph.Fingerprint(parse(t, top+withMap("timeout: 5", llm)))
	seen := map[string]string{plain: "nothing"}
	for _, field := range []string{"batch: 2", "on_error: skip", "on_error: collect", "min_success: 2", "min_success: 2%", "item_if: 'i > 1'", "enough: 'len(results) > 1'", "fallback: z"} {
		got := graph.Fingerprint(parse(t, top+withMap("timeout: 5, "+field, llm)))
		if before, taken := seen[got]; taken {
			t.Errorf("%s is as %s", field, before)
		}
		seen[got] = field
	}
	for _, field := range []string{"on_error: fail"} {
		if graph.Fingerprint(parse(t, top+withMap("timeout: 5, "+field, llm))) != plain {
			t.Errorf("%s is the default", field)
		}
	}
	one, other := parse(t, top+withMap("item_if: 'i>1'", llm)), parse(t, top+withMap("item_if: 'i > 1'", llm))
	if lines := graph.Diff(one, other); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}
