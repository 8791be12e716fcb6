package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/workflow/graph/gate"
)

func TestGate(t *testing.T) {
	fill := func(text string) (string, error) { return strings.ReplaceAll(text, "{{who}}", "ann"), nil }
	for _, tt := range []struct {
		rules gate.Rules
		want  gate.Gate
		ok    bool
	}{
		{rules: gate.Rules{}},
		{rules: gate.Rules{Priority: gate.Low, Overlap: gate.Skip}},
		{gate.Rules{Key: "for {{who}}"}, gate.Gate{Key: "for ann", Limit: 1, Overlap: gate.Queue}, true},
		{gate.Rules{Key: "a", Limit: 3, Overlap: gate.Cancel}, gate.Gate{Key: "a", Limit: 3, Overlap: gate.Cancel}, true},
		{gate.Rules{Key: "a", Overlap: gate.Allow}, gate.Gate{Key: "a", Overlap: gate.Allow}, true},
		{gate.Rules{Limit: 2}, gate.Gate{Limit: 2, Overlap: gate.Queue}, true},
		{gate.Rules{Throttle: "10/1m", Debounce: "30s"}, gate.Gate{Overlap: gate.Queue, Starts: 10, Per: time.Minute, Debounce: 30 * time.Second}, true},
	} {
		g, ok, err := tt.rules.Gate("", "agent/x", fill)
		g.Name = ""
		if g != tt.want || ok != tt.ok || err != nil {
			t.Errorf("%+v: %+v %v %v", tt.rules, g, ok, err)
		}
	}
	if _, ok, err := (gate.Rules{Key: "{{who}}"}).Gate("", "", func(string) (string, error) { return "", nil }); ok || err != nil {
		t.Errorf("an empty key: %v %v", ok, err)
	}
}

// TestLongKey: messages have the beginning of a key.
func TestLongKey(t *testing.T) {
	if got := (gate.Gate{Key: strings.Repeat("é", 81)}).String(); got != `with the key "`+strings.Repeat("é", 79)+`…"` {
		t.Error(got)
	}
	if got := (gate.Gate{Key: strings.Repeat("é", 80)}).String(); got != `with the key "`+strings.Repeat("é", 80)+`"` {
		t.Error(got)
	}
}

// TestNames: keys are shared by places, and not by users; what has no key is that of its place.
func TestNames(t *testing.T) {
	name := func(scope, place string, r gate.Rules) string {
		g, _, err := r.Gate(scope, place, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.Name
	}
	key, limit := gate.Rules{Key: "k"}, gate.Rules{Limit: 1}
	if name("", "agent/x", key) != name("", "trigger/y", key) || name("ann", "", key) == name("bob", "", key) || name("", "agent/x", key) == name("ann", "", key) {
		t.Error("keys")
	}
	if name("", "agent/x", limit) == name("", "agent/y", limit) || name("", "agent/x", limit) == name("", "x", gate.Rules{Key: "agent/x"}) {
		t.Error("places")
	}
}

func TestWrongRules(t *testing.T) {
	for key, list := range map[string][]gate.Rules{
		"priority":          {{Priority: "urgent"}},
		"concurrency_key":   {{Key: strings.Repeat("k", 1001)}},
		"concurrency_limit": {{Limit: -1}, {Limit: 101}},
		"overlap":           {{Overlap: "wait"}},
		"throttle":          {{Throttle: "10"}, {Throttle: "0/1m"}, {Throttle: "1/1ms"}, {Throttle: "x/1m"}, {Throttle: "1001/1h"}, {Throttle: "1/25h"}},
		"debounce":          {{Debounce: "soon"}, {Debounce: "-1s"}, {Debounce: "25h"}},
	} {
		for _, r := range list {
			if wrong := r.Check(); len(wrong) != 1 || wrong[0].Key != key {
				t.Errorf("%+v: %v", r, wrong)
			}
		}
	}
	all := gate.Rules{Priority: "urgent", Key: strings.Repeat("k", 1001), Limit: 101, Overlap: "wait", Throttle: "5/25h", Debounce: "25h"}.Check()
	for _, key := range gate.Keys() {
		if !slices.ContainsFunc(all, func(e *gate.Error) bool { return e.Key == key }) {
			t.Errorf("what is wrong with %s is missing: %v", key, all)
		}
	}
	if text := fmt.Sprint(all); len(all) != len(gate.Keys()) || !strings.Contains(text, "a time, from 1s to 24h,") {
		t.Error(text)
	}
	for _, r := range []gate.Rules{{Throttle: "1/1m"}, {Overlap: gate.Skip}, {Overlap: gate.Cancel}} {
		if _, _, err := r.Gate("", "", nil); err == nil || !strings.Contains(err.Error(), "a key is expected") {
			t.Errorf("the rules %+v of a request without a key: %v", r, err)
		}
	}
}

func TestIdle(t *testing.T) {
	for _, r := range []gate.Rules{{Overlap: gate.Skip}, {Overlap: gate.Cancel}, {Overlap: gate.Skip, Throttle: "1/1m"}} {
		if !r.Idle() {
			t.Errorf("%+v has an effect", r)
		}
	}
	for _, r := range []gate.Rules{{}, {Overlap: gate.Queue}, {Overlap: gate.Skip, Key: "k"}, {Overlap: gate.Cancel, Limit: 2}, {Overlap: gate.Cancel, Debounce: "3s"}} {
		if r.Idle() {
			t.Errorf("%+v has no effect", r)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("10/1m", "30s")
	f.Add("/", "1e9h")
	f.Fuzz(func(t *testing.T, throttle, debounce string) {
		g, ok, err := (gate.Rules{Throttle: throttle, Debounce: debounce}).Gate("", "agent/x", nil)
		if err == nil && ok && (g.Starts < 0 || g.Starts > 0 && g.Per < time.Second || g.Debounce < 0) {
			t.Errorf("%q %q: %+v", throttle, debounce, g)
		}
	})
}
