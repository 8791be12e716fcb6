package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// taskOf is a task of a node, or of item number i of a map over it.
func taskOf(mapNode, id string, visit, i int) *run.Task {
	t := &run.Task{Task: graph.Task{Node: &graph.Node{ID: id}, Step: 1, Visit: visit}, Steps: steps.New(nil)}
	t.Events = event.NewScope(event.Discard, event.Source{Run: "r", Node: id}, nil)
	if mapNode != "" {
		t.Events = t.Events.With(func(s *event.Source) { s.Node, s.Item = mapNode, &i })
		t.Steps = t.Steps.At(itemKey(i))
		t.Base = t.Steps.Key("")
	}
	return t
}

// questionID returns the id of the question of a task that is asked under key.
func questionID(t *testing.T, of *run.Task, key string) (id string) {
	t.Helper()
	q := New(Options{Asker: ask.Func(func(_ context.Context, asked ask.Question) (string, error) {
		id = asked.ID
		return "retry", nil
	})}).questions(of)
	var err error
	if key == "question" {
		_, err = q.Ask(t.Context(), ask.Question{})
	} else {
		_, err = q.AskOnce(t.Context(), strings.TrimSuffix(key, "/1"), ask.Question{})
	}
	if err != nil {
		t.Error(err)
	}
	return id
}

// TestNamesNeverMeet: ids of questions and idempotency keys are the same for no two
// places of a run, whatever its nodes are called.
func TestNamesNeverMeet(t *testing.T) {
	ids, keys := make(map[string]string), make(map[string]string)
	for _, tt := range []struct {
		mapNode, id string
		visit, item int
	}{
		{"", "ask", 1, 0},
		{"", "ask", 2, 0},
		{"", "ask@2", 1, 0},
		{"", "ask%402", 1, 0},
		{"", "ask@2", 2, 0},
		{"m", "b", 1, 0},
		{"m", "b", 1, 1},
		{"", "m/b", 1, 0},
		{"", "m/b[0]", 1, 0},
		{"", "m/b/0", 1, 0},
		{"m/b", "0", 1, 0},
		{"m", "b/0", 1, 0},
		{"", "m", 1, 0},
		{"", "b/1.1", 1, 0},
		{"", "b", 1, 0},
		{"", "b/again", 1, 0},
	} {
		at, where := taskOf(tt.mapNode, tt.id, tt.visit, tt.item), fmt.Sprintf("%+v", tt)
		for _, key := range []string{"question", "tool/1/1/consent/answer/1", "uncertain/1"} {
			id := questionID(t, at, key)
			if before, taken := ids[id]; taken {
				t.Errorf("question %q is that of %s and of %s", id, before, where)
			}
			ids[id] = where
		}
		if tt.visit > 1 {
			continue // in another super-step
		}
		key := New(Options{}).effectKey(at)
		if before, taken := keys[key]; taken {
			t.Errorf("key %q is that of %s and of %s", key, before, where)
		}
		keys[key] = where
	}
	if got := questionID(t, taskOf("each", "b", 1, 3), "tool/1/1/uncertain/answer/1"); got != "each/b[3]/1.1/again" {
		t.Errorf("a call in a map is %q", got)
	}
}

// TestNamesOfQuestionsOfItems: an item of a map over a question has a name that no node has.
func TestNamesOfQuestionsOfItems(t *testing.T) {
	names := make(map[string]bool)
	for _, tt := range []struct {
		mapNode, id string
		visit, item int
		want        string
	}{
		{"each", "visit", 1, 3, "each#3"},
		{"each", "visit", 2, 3, "each@2#3"},
		{"", "each#3", 1, 0, "each%233"},
		{"", "each%233", 1, 0, "each%25233"},
		{"each#3", "visit", 1, 1, "each%233#1"},
		{"", "each#b", 1, 0, "each#b"},
		{"", "visit", 1, 0, "visit"},
		{"", "each/visit", 1, 0, "each%2Fvisit"},
	} {
		at := taskOf(tt.mapNode, tt.id, tt.visit, tt.item)
		at.Node.Input = &graph.Input{}
		got := questionID(t, at, "question")
		if got != tt.want || names[got] {
			t.Errorf("%+v is %q", tt, got)
		}
		names[got] = true
	}
}

func TestDigest(t *testing.T) {
	seen := make(map[string][]string)
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a", "b"}, {"ab"}, {"a", "", "b"}, {"\xff"}, {"\xfe"}, {"\uFFFD"}, {`a","b`}} {
		d := digest(parts)
		if before, taken := seen[d]; taken {
			t.Errorf("%q and %q have the same digest", before, parts)
		}
		seen[d] = parts
	}
}
