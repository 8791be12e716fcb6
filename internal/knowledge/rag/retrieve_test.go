package rag_test

import (
	"context"
	"errors"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// counter is a searcher that counts.
type counter struct {
	searches int
	err      error
}

func (*counter) Name() string { return "counter" }

func (c *counter) Search(_ context.Context, q rag.Query) (rag.Found, error) {
	c.searches++
	return rag.Found{Base: "counter", Query: q.Text, Hits: []rag.Hit{{Path: "/a", Start: 1, End: 2, Score: 0.5}}, Usage: chat.Usage{InputTokens: 3}}, c.err
}

// purse adds up what is spent.
type purse struct{ chat.Usage }

func (*purse) Reserve(context.Context, chat.Usage, chat.Usage, bool) (func(chat.Usage), error) {
	return func(chat.Usage) {}, nil
}

func (p *purse) Spend(used chat.Usage) { p.Usage = p.Add(used) }

// TestRetrieve: a search on record is not made again, and its usage counts.
func TestRetrieve(t *testing.T) {
	var c counter
	var b purse
	events := new(eventtest.Collector)
	scope, record := event.NewScope(events, event.Source{}, nil), steps.New(new(stepstest.Recorder))
	c.err = errors.New("busy")
	if found, err := rag.Retrieve(t.Context(), record, scope, &c, rag.Query{Text: "bees", Budget: &b}); err == nil || found.Usage.InputTokens != 3 {
		t.Errorf("a search that fails: %+v, %v", found, err)
	}
	c.err = nil
	for range 2 {
		found, err := rag.Retrieve(t.Context(), record, scope, &c, rag.Query{Text: "bees", Budget: &b})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].Source() != "/a:1-2" {
			t.Fatalf("found %+v, %v", found, err)
		}
	}
	if c.searches != 2 || b.InputTokens != 3 {
		t.Errorf("%d searches, %d tokens of a search on record", c.searches, b.InputTokens)
	}
	bodies := eventtest.Bodies[event.Retrieved](events)
	if len(bodies) != 2 || bodies[0].Duration == 0 || bodies[1].Duration != 0 || bodies[1].Sources[0].Path != "/a" {
		t.Errorf("events %+v", bodies)
	}
}
