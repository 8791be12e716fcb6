package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/spending"
	"loki/internal/workflow/run/sqlite"
	"loki/internal/workflow/run/webhook"
)

// read returns the rules of a text, and its problems.
func read(t *testing.T, text string) ([]*alert.Rule, string) {
	t.Helper()
	doc, err := yamldoc.Parse("config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rules := alert.Read(doc.Root().Map().Get("alerts"))
	var problems []string
	for _, p := range doc.Errors() {
		problems = append(problems, p.Text())
	}
	return rules, strings.Join(problems, "\n")
}

// bench is a store with services whose clock a test sets.
type bench struct {
	t        *testing.T
	store    *sqlite.Store
	services []*alert.Service
	limited  []string
	spent    []spending.Spent

	mu     sync.Mutex
	now    time.Time       // guarded by mu
	posted map[string]bool // by id; guarded by mu
	texts  []string        // of alerts; guarded by mu
}

func newBench(t *testing.T, services int, rules string) *bench {
	t.Helper()
	list, problems := read(t, rules)
	if problems != "" {
		t.Fatal(problems)
	}
	b := &bench{t: t, now: time.Now(), posted: make(map[string]bool)}
	var err error
	if b.store, err = sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{Now: b.time}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	for range services {
		b.services = append(b.services, alert.New(alert.Options{
			Rules: list, Store: b.store, Now: b.time, Address: "https://loki.example.com", Log: slog.New(slog.DiscardHandler),
			Limited: func(context.Context) ([]string, error) { return b.limited, nil },
			Spent:   func(context.Context) ([]spending.Spent, error) { return b.spent, nil },
			Post: func(id string, n webhook.Notice, _ ...webhook.Hook) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				if !b.posted[id] {
					b.posted[id] = true
					b.texts = append(b.texts, n.Data.(alert.Alert).Text)
				}
				return nil
			},
		}))
	}
	return b
}

func (b *bench) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// begin begins a run.
func (b *bench) begin(info run.Info) run.Journal {
	b.t.Helper()
	info.Kind = run.AgentRun
	j, err := b.store.Create(b.t.Context(), info, run.Checkpoint{})
	if err != nil {
		b.t.Fatal(err)
	}
	return j
}

func (b *bench) end(j run.Journal, e run.Ending) {
	b.t.Helper()
	if err := errors.Join(j.End(b.t.Context(), e), j.Close()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) fail(agent string) {
	b.t.Helper()
	b.end(b.begin(run.Info{Agent: agent}), run.Ending{Status: run.Failed, Error: "the secret prompt", Code: fault.Tool})
}

// check lets time pass, has all services look at once, and compares the alerts since the last check.
func (b *bench) check(passed time.Duration, want ...string) {
	b.t.Helper()
	b.mu.Lock()
	b.now = b.now.Add(passed)
	b.texts = nil
	b.mu.Unlock()
	var work sync.WaitGroup
	for _, s := range b.services {
		work.Go(func() {
			if err := s.Check(b.t.Context()); err != nil {
				b.t.Error(err)
			}
		})
	}
	work.Wait()
	if len(b.texts) != len(want) {
		b.t.Fatalf("alerts %q, want %q", b.texts, want)
	}
	for i, text := range b.texts {
		if !strings.Contains(text, want[i]) {
			b.t.Errorf("alert %q, want %q", text, want[i])
		}
	}
}

func TestFailed(t *testing.T) {
	b := newBench(t, 3, "alerts: [{name: ops, on: [failed], where: agent != \"other\", every: 1h, to: [{slack: https://e.com}]}]")
	b.fail("review") // before the first look
	b.check(2 * time.Minute)
	b.fail("review")
	b.fail("other")
	b.check(time.Minute, "agent review: failed (tool) (run ")
	if strings.Contains(strings.Join(b.texts, ""), "secret") || !strings.Contains(b.texts[0], " https://loki.example.com/#/runs/") {
		t.Errorf("%q", b.texts)
	}
	b.check(time.Minute) // it is told once
	for range 3 {
		b.fail("review")
	}
	b.check(time.Minute) // within the hour
	b.fail("digest")
	b.check(time.Minute, "agent digest")
	b.check(time.Hour, "failed (tool)")
	if !strings.Contains(b.texts[0], ", 3 times") {
		t.Errorf("%q", b.texts)
	}
	b.check(2 * time.Hour)
	list, err := b.services[0].List(t.Context())
	if err != nil || len(list) != 3 || list[0].Count != 3 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestStates(t *testing.T) {
	b := newBench(t, 2, "alerts: [{name: ops, on: [{waiting: 2h}, {stuck: 15m}, {budget: 80}, {limited: 10m}, dead_letter, missed], every: 1m, template: \"{{kind}} {{reason}} {{thing}}\", to: [{command: x}]}]")
	b.check(0)
	j := b.begin(run.Info{Agent: "ask"})
	if err := j.Asked(t.Context(), run.Pending{ID: "q", Node: "n", Key: "k", Text: "?", Asked: b.time()}); err != nil {
		t.Fatal(err)
	}
	b.end(j, run.Ending{Status: run.Suspended})
	b.check(time.Hour)
	b.check(61*time.Minute, "waiting waits for an answer for 2h")
	b.check(time.Hour)

	working := b.begin(run.Info{Agent: "slow"})
	b.check(time.Minute)
	b.check(15*time.Minute, "stuck is at work without an event for 15m")
	b.end(working, run.Ending{Status: run.Done})
	b.check(time.Hour)

	b.limited = []string{"openai:big"}
	b.check(time.Minute)
	b.check(5 * time.Minute)
	b.check(5*time.Minute, "limited its provider refuses calls for 10m model openai:big")

	b.limited, b.spent = nil, []spending.Spent{{ID: "a", Thing: "subject ann", Subject: "ann", Span: "month", Percent: 81}, {ID: "b", Thing: "subject bob", Subject: "bob", Span: "day", Percent: 79}}
	b.check(time.Minute, "budget has used 81 % of the limit of a month subject ann")
	b.check(time.Minute)

	terms := &run.Terms{Budget: graph.Budget{Tokens: 100}}
	spent := b.begin(run.Info{Agent: "dear", Terms: terms, Served: true})
	c := run.Checkpoint{Step: 1}
	c.Usage.InputTokens = 85
	if err := spent.Commit(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	b.check(time.Minute, "budget has used 85 % of its budget")
	b.end(spent, run.Ending{Status: run.Done})
	if err := b.store.Put(t.Context(), run.Entry{Key: "dead/pr/1", Doc: fmt.Appendf(nil, `{"id": "1", "trigger": "pr", "at": %q}`, b.time().Format(time.RFC3339Nano))},
		run.Entry{Key: "schedule/morning", Doc: []byte("{}")}, run.Entry{Key: "start/schedule/morning/0001800000000", Doc: []byte(`{"reason": "missed"}`)},
		run.Entry{Key: "start/schedule/morning/0001800000060", Doc: []byte(`{"reason": "overlap"}`)}); err != nil {
		t.Fatal(err)
	}
	b.check(time.Minute, "dead_letter a delivery started no run, see dead letter 1 trigger pr", "missed did not run at 2027-01-15T08:00:00Z schedule morning")
}

// TestKilled has a service die between what it decided and what it posted.
func TestKilled(t *testing.T) {
	b := newBench(t, 2, "alerts: [{name: ops, on: [failed], to: [{slack: https://e.com}]}]")
	b.check(0)
	b.fail("review")
	rules, _ := read(t, "alerts: [{name: ops, on: [failed], to: [{slack: https://e.com}]}]")
	b.now = b.now.Add(time.Minute)
	killed := alert.New(alert.Options{Rules: rules, Store: b.store, Now: b.time, Log: slog.New(slog.DiscardHandler), Post: func(string, webhook.Notice, ...webhook.Hook) error { return errors.New("killed") }})
	if err := killed.Check(t.Context()); err == nil {
		t.Fatal("it posted")
	}
	b.check(time.Minute, "agent review: failed")
	b.check(time.Minute)
}

func TestForms(t *testing.T) {
	rules, _ := read(t, `alerts: [{name: "a<b", on: [failed], template: "<{{text}}> & @everyone", to: [{slack: https://e.com}]}]`)
	n := rules[0].TestNotice(time.Now())
	var mailed, commanded string
	s := alert.Sender{
		Mail: func(_ context.Context, to, subject, body string) error {
			mailed = to + " " + subject + " " + body
			return nil
		},
		Command: func(_ context.Context, command string, doc []byte, text string) error {
			commanded = command + " " + text
			return nil
		},
	}
	const text = `<test: the alert a<b reaches you> & @everyone`
	quoted, _ := json.Marshal(text)
	for form, want := range map[string]string{
		alert.Slack:   `{"text":"&lt;test: the alert a&lt;b reaches you&gt; &amp; @everyone"}`,
		alert.Discord: `{"allowed_mentions":{"parse":[]},"content":` + string(quoted) + `}`,
		alert.Teams:   `{"attachments":[{"content":{"body":[{"text":` + string(quoted) + `,"type":"TextBlock","wrap":true}],"type":"AdaptiveCard","version":"1.4"},"contentType":"application/vnd.microsoft.card.adaptive"}],"type":"message"}`,
		alert.Ntfy:    `{"message":` + string(quoted) + `,"priority":4,"tags":["warning"],"title":"loki: test","topic":"ops"}`,
	} {
		m, err := s.Form(t.Context(), webhook.Hook{Form: form, URL: "https://ntfy.example.com/ops"}, n)
		var got string
		if err == nil {
			var v any
			err = json.Unmarshal(m.Body, &v)
			b := new(strings.Builder)
			enc := json.NewEncoder(b)
			enc.SetEscapeHTML(false)
			err = errors.Join(err, enc.Encode(v))
			got = strings.TrimSpace(b.String())
		}
		var w any
		if json.Unmarshal([]byte(want), &w) != nil {
			t.Fatal(want)
		}
		b := new(strings.Builder)
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(w)
		if err != nil || got != strings.TrimSpace(b.String()) {
			t.Errorf("%s: %s, %v", form, got, err)
		}
		if wantURL := map[bool]string{true: "https://ntfy.example.com/", false: "https://ntfy.example.com/ops"}[form == alert.Ntfy]; m.URL != wantURL {
			t.Errorf("%s goes to %s", form, m.URL)
		}
	}
	for form, got := range map[string]*string{alert.Mail: &mailed, alert.Command: &commanded} {
		if m, err := s.Form(t.Context(), webhook.Hook{Form: form, URL: "to"}, n); err != nil || m.Body != nil || !strings.HasPrefix(*got, "to ") || !strings.HasSuffix(*got, text) {
			t.Errorf("%s: %q %v", form, *got, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for config, want := range map[string]string{
		"{}": "required",
		"{name: a, on: [faild], to: [{slack: 'https://e.com'}]}":                                   `config.yaml:1:25: alerts[0].on[0]: unknown condition "faild"`,
		"{name: a, on: [{waiting: 1s}], to: [{slack: 'https://e.com'}]}":                           "at least 1m",
		"{name: a, on: [{budget: 101}], to: [{slack: 'https://e.com'}]}":                           "100",
		"{name: a, on: [{budget: 1, stuck: 1m}], to: [{slack: 'https://e.com'}]}":                  "one key",
		"{name: a, on: [failed], to: [{slak: x}]}":                                                 `unknown key "slak"`,
		"{name: a, on: [failed], to: [{slack: 'ftp://x'}]}":                                        "https://",
		"{name: a, on: [failed], to: [{slack: 'https://x', ntfy: 'https://x/y'}]}":                 "one address",
		"{name: a, on: [failed], to: [{mail: nobody}]}":                                            "not a mail address",
		"{name: a, on: [failed], to: [{command: ' '}]}":                                            "empty",
		"{name: a, on: [failed], where: agnt == 1, to: [{slack: 'https://x'}]}":                    `there is no "agnt"`,
		"{name: a, on: [failed], where: 1, to: [{slack: 'https://x'}]}":                            "must be",
		"{name: a, on: [failed], every: 1s, to: [{slack: 'https://x'}]}":                           "at least 1m is expected",
		"{name: a, on: [failed], template: '{{output}}', to: [{slack: 'https://x'}]}":              "no {{output}}",
		"{name: a, on: [failed], to: [{command: x}]}, {name: a, on: [failed], to: [{command: x}]}": "another alert",
	} {
		if _, got := read(t, "alerts: ["+config+"]"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", config, got)
		}
	}
}

// FuzzRead reads configurations.
func FuzzRead(f *testing.F) {
	f.Add("alerts: [{name: a, on: [failed, {waiting: 2h}, {budget: 80}], where: agent == \"x\", to: [{slack: x}, {mail: a@b.c}]}]")
	f.Fuzz(func(_ *testing.T, text string) {
		if doc, err := yamldoc.Parse("x", []byte(text)); err == nil {
			alert.Read(doc.Root().Map().Get("alerts"))
		}
	})
}
