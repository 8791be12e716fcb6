package bulk_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/bulk"
)

func TestFilter(t *testing.T) {
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	info := run.Info{
		ID: "k3v9", Agent: "digest", Status: run.Failed, Code: fault.Provider, Updated: now.Add(-time.Hour), Failures: 2, Model: "openai:m",
		Usage: chat.Usage{InputTokens: 90, OutputTokens: 10, Cost: 0.5}, Owner: &auth.Owner{Subject: "ann", KeyID: "key1"},
	}
	info.Gates = []gate.Gate{{Key: "shop"}, {}}
	info.Origin = &run.Origin{Kind: run.OfSchedule, Name: "nightly"}
	for source, want := range map[string]bool{
		"":                                      true,
		`status == "failed"`:                    true,
		`status in ["done", "canceled"]`:        false,
		`agent matches "^di" && age >= 3600`:    true,
		`age > 3600`:                            false,
		`cost > 0.4 && tokens == 100`:           true,
		`failures > 2`:                          false,
		`kind == "graph" && id == "k3v9"`:       true,
		`subject == "ann" && api_key == "key1"`: true,
		`schedule == "nightly"`:                 true,
		`key == "shop" && priority == "low"`:    true,
		`trigger == "nightly"`:                  false,
		`code == "provider"`:                    true,
		`model contains "openai"`:               true,
	} {
		f, err := bulk.ParseFilter(source, now)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := f.Holds(info); got != want || err != nil {
			t.Errorf("%s: %v, %v", source, got, err)
		}
		if _, err := f.Holds(run.Info{}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	for source, want := range map[string]string{
		`cost`:                    "must be a boolean",
		`status == "finished"`:    "condition",
		`price > 3`:               "runs have no price",
		`status = "failed"`:       "at character",
		`agent > 3`:               "condition",
		strings.Repeat("(", 9999): "condition",
	} {
		if _, err := bulk.ParseFilter(source, now); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", source, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`status == "failed" && age > 3600 || agent matches "("`)
	f.Add("id ?? 7 in [1, null]")
	f.Fuzz(func(t *testing.T, source string) {
		filter, err := bulk.ParseFilter(source, time.Unix(0, 0))
		if err == nil {
			_, _ = filter.Holds(run.Info{})
		}
	})
}

// TestEach: so many runs are worked on at once, a failure does not stop the others, and the end of the context does.
func TestEach(t *testing.T) {
	infos := make([]run.Info, 100)
	var most, atWork atomic.Int32
	reported := 0
	failed, err := bulk.Each(t.Context(), infos, 4, func(context.Context, run.Info) (string, error) {
		for n := atWork.Add(1); n > most.Load(); {
			most.Store(n)
		}
		defer atWork.Add(-1)
		return "done", errors.New("no")
	}, func(bulk.Result) error { reported++; return nil })
	if failed != 100 || reported != 100 || err != nil || most.Load() > 4 {
		t.Errorf("%d failed of %d, %d at once, %v", failed, reported, most.Load(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reported = 0
	_, err = bulk.Each(ctx, infos, 2, func(context.Context, run.Info) (string, error) { cancel(); return "", nil }, func(bulk.Result) error { reported++; return nil })
	if !errors.Is(err, context.Canceled) || reported > 10 {
		t.Errorf("%d reported, %v", reported, err)
	}
	if failed, err := bulk.Each(t.Context(), nil, 4, nil, nil); failed != 0 || err != nil {
		t.Error(failed, err)
	}
}
