package schedule_test

import (
	"errors"
	"strings"
	"testing"

	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/schedule"
)

// TestRead reads schedules, and reports each mistake where it is.
func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, yaml, wrong string }{
		{"least", "a: {agent: x, every: 1h}", ""},
		{"all", `a: {agent: x, cron: "0 7 * * MON-FRI", timezone: Europe/Berlin, start: 2026-01-01, end: "2027-01-01 00:00", jitter: 10m, grace: 90, blackout: [{days: [sat, SUN]}, {dates: [2026-12-24], from: "12:00", to: "24:00"}],
  missed: all, overlap: queue, budget_month: {usd: 5, tokens: 1000}, max_parked: 0, paused: true, prompt: p, variables: {n: 1}, model: m, budget: {usd: 0.5, seconds: 60}, yes: true}`, ""},
		{"no_agent", "a: {every: 1h}", "1:4: a: agent: the name"},
		{"no_time", "a: {agent: x}", "1:4: a: cron: one of cron, every and at"},
		{"two_times", "a: {agent: x, every: 1h, cron: '@daily'}", "a.every: one of cron, every and at is expected, not both cron and every"},
		{"cron", "a: {agent: x, cron: '0 0 7 * * *'}", "1:21: a.cron: 6 fields where five are expected"},
		{"never", "a: {agent: x, cron: '0 0 31 2 *'}", "1:21: a.cron: it is never due in 10 years"},
		{"zone", "a: {agent: x, every: 1h, timezone: Mars}", "1:36: a.timezone: \"Mars\" is not a time zone"},
		{"jitter", "a: {agent: x, every: 1h, jitter: 2h}", "a.jitter: at most 1h"},
		{"every", "a: {agent: x, every: 367d}", "a.every: an interval from 1s to 366d"},
		{"span", "a: {agent: x, every: soon}", "a.every: \"soon\" is not a span"},
		{"at", "a: {agent: x, at: tomorrow}", "at: \"tomorrow\" is not a time"},
		{"missed", "a: {agent: x, every: 1h, missed: never}", "missed: \"never\" is none of once, skip, all"},
		{"missed_two", "a: {agent: x, every: 1h, missed: once skip}", "missed: \"once skip\" is none of"},
		{"overlap", "a: {agent: x, every: 1h, overlap: wait}", "overlap: unknown value \"wait\""},
		{"rules", "a: {agent: x, throttle: 5/25h, debounce: 25h}", `a.throttle: "5/25h" is not a number of starts, from 1 to 1000, and a time, from 1s to 24h`},
		{"rules_all", "a: {agent: x, throttle: 5/25h, debounce: 25h}", "a.debounce: \"25h0m0s\" is not a span"},
		{"rules_and_time", "a: {agent: x, throttle: 5/25h, debounce: 25h}", "a: cron: one of cron, every and at"},
		{"key", "a: {agent: x, every: 1h, concurrency_key: '{{variables.any}} {{schedule.day}}'}", `a.concurrency_key: a key has no {{schedule.day}}; valid are schedule.name, schedule.time,`},
		{"blackout_day", "a: {agent: x, every: 1h, blackout: [{days: [Samstag]}]}", "\"Samstag\" is not a day"},
		{"blackout_half", "a: {agent: x, every: 1h, blackout: [{from: '10:00'}]}", "from and to are expected together"},
		{"blackout_empty", "a: {agent: x, every: 1h, blackout: [{}]}", "days, dates, or from and to"},
		{"blackout_hour", "a: {agent: x, every: 1h, blackout: [{from: '25:00', to: '26:00'}]}", "\"25:00\" is not a time of day"},
		{"type", "a: {agent: x, every: 1h, paused: maybe}", "1:34"},
		{"name", "a b: {agent: x, every: 1h}", "\"a b\" is not a name"},
		{"no_map", "a: 5", "1:4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f.yaml", []byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			all := schedule.Read(doc.Root().Map(), "")
			err = doc.Err()
			if tt.wrong == "" && (err != nil || len(all) != 1 || len(doc.Warnings()) > 0) {
				t.Errorf("%v, %v, %d schedules", err, doc.Warnings(), len(all))
			}
			if tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Errorf("%v, want %q", err, tt.wrong)
			}
		})
	}
	doc, _ := yamldoc.Parse("f.yaml", []byte("a: {every: 1h, yes: true, agent: other}"))
	all := schedule.Read(doc.Root().Map(), "mine")
	if len(all) != 1 || all[0].Agent != "mine" || all[0].Yes || len(doc.Warnings()) != 2 {
		t.Errorf("of an agent: %+v, warnings %v", all, doc.Warnings())
	}
}

func TestCheck(t *testing.T) {
	_, err := schedule.Check("a", schedule.Doc{Agent: "x", Every: "1h", Budget: &schedule.Amount{USD: -1}})
	if wrong, ok := errors.AsType[*schedule.FieldError](err); !ok || wrong.Field != "budget" {
		t.Errorf("%v", err)
	}
	for name, ok := range map[string]bool{"a": true, "nightly-2.x_y": true, "": false, "a/b": false, "-a": false, "ä": false, strings.Repeat("a", 65): false} {
		if err := schedule.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
