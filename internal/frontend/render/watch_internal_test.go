package render

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"loki/internal/base/value"
	"loki/internal/llm/event"
)

func TestWatch(t *testing.T) {
	long := strings.Repeat("word ", 100)
	change := func(step int, key string, v any) event.Event {
		return event.Event{Source: event.Source{Step: step}, Body: event.StateUpdated{Values: []value.Member{{Name: key, Value: of(v)}}}}
	}
	finished := func(step int, node string) event.Event {
		return event.Event{Source: event.Source{Step: step, Node: node}, Body: event.NodeFinished{}}
	}
	item := 2
	events := []event.Event{
		{Body: event.Started{Graph: "g", State: []value.Member{{Name: "score", Value: value.Of(1)}, {Name: "other", Value: value.Of(1)}}}},
		finished(1, "b"), finished(1, "a"),
		{Source: event.Source{Step: 1, Node: "m", Item: &item}, Body: event.NodeFinished{}},
		{Source: event.Source{Step: 7, Node: "x", AgentID: "child"}, Body: event.NodeFinished{}},
		change(1, "score", 2), change(1, "other", 2),
		{Source: event.Source{Step: 1, AgentID: "child"}, Body: event.StateUpdated{Values: []value.Member{{Name: "score", Value: value.Of(99)}}}},
		finished(2, "c"), change(2, "text", long+"old"),
		finished(3, "d"), change(3, "text", long+"new"),
		{Source: event.Source{Step: 3}, Body: event.StateUpdated{Set: true, Values: []value.Member{{Name: "score", Value: value.Of(5)}}}},
		change(4, "score", "\x1b[31mred"),
	}
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		n := NewNarrator(NewScreen(ScreenOptions{Out: &out}), NarratorOptions{Quiet: quiet, Watch: []string{"score", "text"}, Location: time.UTC})
		for _, ev := range events {
			if err := n.Emit(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "(super-step") || strings.Contains(line, "(set by you)") {
				got = append(got, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "▸ 00:00:00 "))
			}
		}
		want := []string{
			"score: 1 -> 2 (super-step 1, a, b)",
			`text: not set -> "` + strings.TrimSuffix(strings.Repeat("word ", 16), " ") + `… (super-step 2, c)`,
			`text: … word word word old" -> … word word word new" (super-step 3, d)`,
			"score: 2 -> 5 (set by you)",
			`score: 5 -> "\u001b[31mred" (super-step 4)`,
		}
		for i := range max(len(got), len(want)) {
			g, w := at(got, i), at(want, i)
			if g != w {
				t.Errorf("quiet %v, line %d:\n%q, want\n%q", quiet, i+1, g, w)
			}
		}
		if quiet && len(got) != strings.Count(out.String(), "\n") {
			t.Errorf("more is shown:\n%s", out.String())
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func of(v any) value.Value {
	if n, ok := v.(int); ok {
		return value.Of(n)
	}
	return value.Of(v.(string))
}

func TestDifference(t *testing.T) {
	x := strings.Repeat("x", 50)
	for _, tt := range []struct{ name, old, text, wantOld, wantText string }{
		{"short", "1", "2", "1", "2"},
		{"end", x + "a", x + "bc", "…" + x[:16] + "a", "…" + x[:16] + "bc"},
		{"beginning", "a" + x, "bc" + x, "a" + x[:16] + "…", "bc" + x[:16] + "…"},
		{"middle", x + "a" + x, x + x, "…" + x[:16] + "a" + x[:16] + "…", "…" + x[:32] + "…"},
		{"inside_a_character", strings.Repeat("é", 30) + "è" + x, strings.Repeat("é", 30) + "ê" + x, "…" + strings.Repeat("é", 8) + "è" + x[:16] + "…", "…" + strings.Repeat("é", 8) + "ê" + x[:16] + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, text := difference(tt.old, tt.text, 60)
			if old != tt.wantOld || text != tt.wantText {
				t.Errorf("%q and %q, want %q and %q", old, text, tt.wantOld, tt.wantText)
			}
		})
	}
}

func FuzzDifference(f *testing.F) {
	f.Add("ab\u00e9cd", "ab\u00e8cd")
	f.Add(strings.Repeat("\u00e9", 40), strings.Repeat("\u00e9", 39)+"\u4e2d")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			t.Skip()
		}
		x, y := difference(a, b, 8)
		if !utf8.ValidString(x) || !utf8.ValidString(y) || a != b && x == y {
			t.Errorf("%q and %q become %q and %q", a, b, x, y)
		}
	})
}
