package main

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// wide is a loop of six nodes, two of them side by side, over a state of fifteen keys
// whose lists grow by a factor of about three in each round, until there are more than
// limit messages. The first message is an object of outer objects of inner lists.
func wide(outer, inner, limit int) (bench, error) {
	p, err := plan(`reducers:
  trigger_events: extend
  categorizations: extend
  responses: extend
  slack_participants: merge
  notified_assignees: merge
`, "one -> two", "two -> three, four", "three -> five", "four -> five", "five -> six", "six -> end", "end")
	// A write that equals what is there counts as none, and in the first round the
	// responses do equal the messages. Hence the last node extends the list itself.
	again := []string{"one"}
	last := func(l value.List) value.Value { return l.At(l.Len() - 1) }
	letters := func(t *run.Task) value.Value { return value.Of(text(limit, list(t.Draft, "messages").Len())) }
	nodes := functions{
		"one": func(_ context.Context, t *run.Task) ([]string, error) {
			t.Draft.Set("trigger_events", list(t.Draft, "messages").Value())
			t.Draft.Set("primary_issue_medium", letters(t))
			return nil, nil
		},
		"two": func(_ context.Context, t *run.Task) ([]string, error) {
			event := last(list(t.Draft, "trigger_events"))
			t.Draft.Set("autoresponse", event)
			t.Draft.Set("issue", event)
			return nil, nil
		},
		"three": func(_ context.Context, t *run.Task) ([]string, error) {
			v, _ := t.Draft.Get("autoresponse")
			t.Draft.Set("relevant_rules", value.ListOf(v).Value())
			return nil, nil
		},
		"four": func(_ context.Context, t *run.Task) ([]string, error) {
			events := list(t.Draft, "trigger_events").Value()
			t.Draft.Set("categorizations", events)
			t.Draft.Set("responses", events)
			t.Draft.Set("memory_docs", events)
			return nil, nil
		},
		"five": func(_ context.Context, t *run.Task) ([]string, error) {
			category := last(list(t.Draft, "categorizations"))
			for _, key := range []string{"user_info", "crm_info", "slack_participants", "notified_assignees"} {
				t.Draft.Set(key, category)
			}
			t.Draft.Set("email_thread_id", letters(t))
			t.Draft.Set("bot_id", letters(t))
			return nil, nil
		},
		"six": func(_ context.Context, t *run.Task) ([]string, error) {
			messages := list(t.Draft, "messages").Extend(list(t.Draft, "responses"))
			t.Draft.Set("messages", messages.Value())
			if messages.Len() > limit {
				return nil, nil
			}
			return again, nil
		},
	}
	start := graph.NewState(value.ObjectOf(value.Member{Name: "messages", Value: value.ListOf(message(outer, inner)).Value()}))
	// Each round adds the messages to the events, those to the responses, and those to
	// the messages.
	messages, events, responses := 1, 0, 0
	for messages <= limit {
		events += messages
		responses += events
		messages += responses
	}
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, p, nodes, start)
		if err != nil {
			return err
		}
		if err := want("events", list(s, "trigger_events").Len(), events); err != nil {
			return err
		}
		if err := want("keys", s.Len(), 15); err != nil {
			return err
		}
		return want("messages", list(s, "messages").Len(), messages)
	}}, err
}

// text returns n letters that begin with the digits of k.
func text(n, k int) string {
	digits := fmt.Sprint(k)
	return digits + strings.Repeat("x", n-len(digits))
}

// message is an object of outer objects of inner lists of 25 small values.
func message(outer, inner int) value.Value {
	name := func(i int) string { return strings.Repeat(fmt.Sprint(i), 10) }
	var items []value.Value
	for range 5 {
		items = append(items, value.Of(strings.Repeat("hi?", 10)), value.Of(true), value.Of(1), value.Of(6327816386138), value.Value{})
	}
	members := make([]value.Member, outer)
	for i := range members {
		lists := make([]value.Member, inner)
		for j := range lists {
			lists[j] = value.Member{Name: name(j), Value: value.ListOf(items...).Value()}
		}
		members[i] = value.Member{Name: name(i), Value: value.ObjectOf(lists...).Value()}
	}
	return value.ObjectOf(members...).Value()
}
