package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/cloudwego/eino/compose"
)

// wideState has what the other engines have under fifteen state keys. eino has no
// reducers: nodes change the state themselves, one at a time.
type wideState struct {
	messages, triggerEvents, categorizations, responses, memoryDocs, relevantRules []any
	userInfo, crmInfo, autoresponse, issue                                         any
	slackParticipants, notifiedAssignees                                           map[string]any
	primaryIssueMedium, emailThreadID, botID                                       string
}

// token is what the nodes give each other: the state is elsewhere.
type token struct{ messages int }

// wide is a loop of six nodes, two of them side by side, whose lists grow by a factor of
// about three in each round, until there are more than limit messages. The first message
// is an object of outer objects of inner lists.
func wide(ctx context.Context, outer, inner, limit int) (bench, error) {
	compose.RegisterValuesMergeFunc(func(all []token) (token, error) { return all[0], nil })
	first := firstMessage(outer, inner)
	last := func(l []any) any { return l[len(l)-1] }
	letters := func(s *wideState) string { return text(limit, len(s.messages)) }
	b := newBuilder[token, token](compose.WithGenLocalState(func(context.Context) *wideState {
		return &wideState{messages: []any{first}, slackParticipants: map[string]any{}, notifiedAssignees: map[string]any{}}
	}))
	add := func(name string, f func(s *wideState)) {
		node(b, name, func(ctx context.Context, _ token) (t token, err error) {
			err = compose.ProcessState(ctx, func(_ context.Context, s *wideState) error {
				f(s)
				t.messages = len(s.messages)
				return nil
			})
			return t, err
		})
	}
	add("one", func(s *wideState) {
		s.triggerEvents = append(s.triggerEvents, s.messages...)
		s.primaryIssueMedium = letters(s)
	})
	add("two", func(s *wideState) { s.autoresponse, s.issue = last(s.triggerEvents), last(s.triggerEvents) })
	add("three", func(s *wideState) { s.relevantRules = []any{s.autoresponse} })
	add("four", func(s *wideState) {
		s.categorizations = append(s.categorizations, s.triggerEvents...)
		s.responses = append(s.responses, s.triggerEvents...)
		s.memoryDocs = s.triggerEvents
	})
	add("five", func(s *wideState) {
		category := last(s.categorizations)
		s.userInfo, s.crmInfo = category, category
		maps.Copy(s.slackParticipants, category.(map[string]any))
		maps.Copy(s.notifiedAssignees, category.(map[string]any))
		s.emailThreadID, s.botID = letters(s), letters(s)
	})
	add("six", func(s *wideState) { s.messages = append(s.messages, s.responses...) })
	b.edges(compose.START, "one", "two", "three", "five", "six")
	b.edges("two", "four", "five")
	branch(b, "six", func(_ context.Context, t token) (string, error) {
		if t.messages > limit {
			return compose.END, nil
		}
		return "one", nil
	}, "one", compose.END)
	g, err := b.compile(ctx, loops)
	messages, events, responses := 1, 0, 0
	for messages <= limit {
		events += messages
		responses += events
		messages += responses
	}
	return func(ctx context.Context) error {
		t, err := g.Invoke(ctx, token{})
		if err != nil {
			return err
		}
		return want("messages", t.messages, messages)
	}, err
}

// text returns n letters that begin with the digits of k.
func text(n, k int) string {
	digits := fmt.Sprint(k)
	return digits + strings.Repeat("x", n-len(digits))
}

// firstMessage is an object of outer objects of inner lists of 25 small values.
func firstMessage(outer, inner int) map[string]any {
	name := func(i int) string { return strings.Repeat(fmt.Sprint(i), 10) }
	var items []any
	for range 5 {
		items = append(items, strings.Repeat("hi?", 10), true, 1, 6327816386138, nil)
	}
	objects := make(map[string]any, outer)
	for i := range outer {
		lists := make(map[string]any, inner)
		for j := range inner {
			lists[name(j)] = items
		}
		objects[name(i)] = lists
	}
	return objects
}
