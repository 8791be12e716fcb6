package runtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

func (s *suite) create() {
	start := run.Checkpoint{State: state("topic", "go", "n", 1), Position: run.Position{Frontier: []string{"a", "b"}}}
	j := s.beginWith(sample(), start)
	if id, err := run.ParseID(j.ID()); err != nil || id != j.ID() || len(id) != run.IDLength {
		s.Errorf("the id %q has not the form of ids", j.ID())
	}
	check := func(active bool) {
		s.Helper()
		got := s.info(j.ID())
		if got.Started.IsZero() || got.Updated.Before(got.Started) {
			s.Errorf("started %v, updated %v", got.Started, got.Updated)
		}
		want := sample()
		want.ID, want.Status, want.Active, want.Started, want.Updated = j.ID(), run.Running, active, got.Started, got.Updated
		if got.Active != (got.Held != nil) {
			s.Errorf("active: %v, held by %v", got.Active, got.Held)
		}
		want.Held = got.Held
		s.same("info", got, want.Head())
		s.same("start", s.checkpoint(j.ID(), 0), start)
		s.same("last", s.checkpoint(j.ID(), -1), start)
		h := s.history(j.ID())
		s.same("info in history", h.Info, want)
		if len(h.Visits)+len(h.Pending)+len(h.Events)+len(h.Steps) > 0 {
			s.Errorf("a new run has a history: %+v", h)
		}
	}
	check(true)
	s.ok(j.Close())
	s.reopen()
	check(false)
}

func (s *suite) ids() {
	// 33 ids cannot all begin differently.
	byFirst := make(map[string][]string)
	for range 33 {
		j := s.begin()
		byFirst[j.ID()[:1]] = append(byFirst[j.ID()[:1]], j.ID())
		s.ok(j.Close())
	}
	s.reopen()
	lookups := map[string]func(id string) error{
		"history":    func(id string) error { _, err := s.store.History(s.Context(), id); return err },
		"pending":    func(id string) error { _, err := s.store.Pending(s.Context(), id); return err },
		"answered":   func(id string) error { _, err := s.store.Answered(s.Context(), id); return err },
		"checkpoint": func(id string) error { _, err := s.store.Checkpoint(s.Context(), id, 0); return err },
		"answer": func(id string) error {
			err := s.store.Answer(s.Context(), id, "q", run.Reply{Text: "yes"})
			if fault.CodeOf(err) == fault.NotFound && strings.Contains(err.Error(), "question") {
				return nil // the run was found
			}
			return err
		},
		"open": func(id string) error {
			j, _, err := s.store.Open(s.Context(), id)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(j.ID(), strings.ToLower(id)) {
				s.Errorf("%q opened run %s", id, j.ID())
			}
			return j.Close()
		},
	}
	var all []string
	for _, ids := range byFirst {
		all = append(all, ids...)
	}
	missing := "00"
	for i := 0; slices.ContainsFunc(all, func(id string) bool { return strings.HasPrefix(id, missing) }); i++ {
		missing = fmt.Sprintf("%02d", i)
	}
	for name, lookup := range lookups {
		for first, ids := range byFirst {
			if len(ids) == 1 {
				s.ok(lookup(first))
				continue
			}
			err := lookup(first)
			s.code(name+" of an ambiguous id", err, fault.Usage)
			for _, id := range ids[:min(len(ids), 10)] {
				if err != nil && len(ids) <= 10 && !strings.Contains(err.Error(), id) {
					s.Errorf("%s: the error %q does not list %s", name, err, id)
				}
			}
			for _, id := range ids {
				s.ok(lookup(id))
				s.ok(lookup(strings.ToUpper(id)))
			}
		}
		s.code(name+" of an unknown id", lookup(missing), fault.NotFound)
		typed := strings.NewReplacer("0", "O", "1", "I").Replace(missing)
		if err := lookup(typed); err == nil || !strings.Contains(err.Error(), typed) {
			s.Errorf("%s: the error %v does not name %s as it was typed", name, err, typed)
		}
		s.code(name+" of an impossible id", lookup("not-an-id"), fault.NotFound)
		s.code(name+" of no id", lookup(""), fault.Usage)
	}
}

func (s *suite) runs() {
	if infos, err := s.store.Runs(s.Context(), run.Query{}); err != nil || len(infos) > 0 {
		s.Errorf("an empty store lists %v, %v", infos, err)
	}
	var ids []string // newest first
	for i := range 6 {
		info := sample()
		info.Dir = []string{"/x", "/y"}[i%2]
		info.Agent = []string{"one", "two", "three"}[i%3]
		j := s.beginWith(info, run.Checkpoint{State: state(), Position: run.Position{Frontier: []string{"a"}}})
		ids = append([]string{j.ID()}, ids...)
		if i == 4 {
			s.ok(j.End(s.Context(), run.Ending{Status: run.Done, Output: "fine"}))
		}
		s.ok(j.Close())
	}
	s.reopen()
	for _, tt := range []struct {
		name string
		q    run.Query
		want []int
	}{
		{"all", run.Query{}, []int{0, 1, 2, 3, 4, 5}},
		{"limit", run.Query{Limit: 2}, []int{0, 1}},
		{"dir", run.Query{Dir: "/x"}, []int{1, 3, 5}},
		{"dir_and_limit", run.Query{Dir: "/x", Limit: 1}, []int{1}},
		{"agent", run.Query{Agent: "one"}, []int{2, 5}},
		{"unfinished", run.Query{Unfinished: true}, []int{0, 2, 3, 4, 5}},
		{"everything", run.Query{Dir: "/x", Agent: "two", Unfinished: true, Limit: 3}, nil},
		{"unknown_agent", run.Query{Agent: "on"}, nil},
		{"before", run.Query{Before: ids[1]}, []int{2, 3, 4, 5}},
		{"page", run.Query{Before: ids[1], Agent: "one", Limit: 1}, []int{2}},
		{"before_the_first", run.Query{Before: ids[5]}, nil},
	} {
		s.Run(tt.name, func(t *testing.T) {
			infos, err := s.store.Runs(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, i := range tt.want {
				want = append(want, ids[i])
			}
			for _, i := range infos {
				got = append(got, i.ID)
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func (s *suite) endings() {
	for _, e := range []run.Ending{
		{Status: run.Suspended},
		{Status: run.Suspended, Error: "come back later", Code: fault.Suspended, Until: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)},
		{Status: run.Suspended, Error: "at a breakpoint", Code: fault.Suspended, Breakpoint: "before b"},
		{Status: run.Failed, Error: "it broke; undone: 2 nodes", Code: fault.Failure, Undone: &run.Undone{Nodes: 2, Lost: 1, Left: 3}},
		{Status: run.Canceled, Error: "interrupted", Code: fault.Canceled},
		{Status: run.Failed, Error: "no such model", Code: fault.NotFound},
		{Status: run.Done, Output: "the <book>\n" + strings.Repeat("long ", 1000)},
	} {
		s.Run(string(e.Status), func(t *testing.T) {
			s := &suite{T: t, store: s.store, reopenStore: s.reopenStore}
			j := s.begin()
			c := run.Checkpoint{Step: 1, State: state("n", 1), Position: run.Position{Usage: chat.Usage{InputTokens: 7, OutputTokens: 3, Estimated: true}, Failures: 2}}
			s.ok(j.Commit(s.Context(), c, nil))
			s.ok(j.End(s.Context(), e))
			if !s.info(j.ID()).Active {
				s.Error("the run is not active before its journal is closed")
			}
			s.ok(j.Close())
			got := s.info(j.ID())
			want := sample()
			want.ID, want.Started, want.Updated = j.ID(), got.Started, got.Updated
			want.Status, want.Output, want.Error, want.Code, want.Until, want.Breakpoint, want.Undone = e.Status, e.Output, e.Error, e.Code, e.Until, e.Breakpoint, e.Undone
			want.Steps, want.Usage, want.Failures = 1, c.Usage, 2
			s.same("info", got, want.Head())

			reopened, found, err := s.store.Open(s.Context(), j.ID())
			if e.Status == run.Done {
				ended, ok := errors.AsType[*run.EndedError](err)
				if !ok || ended.ID != j.ID() || ended.Status != run.Done {
					s.Fatalf("open of a run that is done: %v", err)
				}
				return
			}
			s.ok(err)
			s.same("info found", found.Info, want)
			got = s.info(j.ID())
			if got.Status != run.Running || got.Error != "" || got.Code != "" || !got.Until.IsZero() || got.Breakpoint != "" || got.Undone != nil {
				s.Errorf("an opened run is %s with error %q of code %q", got.Status, got.Error, got.Code)
			}
			s.ok(reopened.End(s.Context(), run.Ending{Status: run.Done}))
			s.ok(reopened.Close())
			if got = s.info(j.ID()); got.Status != run.Done || got.Error != "" {
				s.Errorf("after the second end the run is %s with error %q", got.Status, got.Error)
			}
		})
	}
}

func (s *suite) events() {
	j := s.begin()
	item := 3
	long := strings.Repeat("a <tool> said \"this\"\n", 500)
	all := []event.Event{
		{Time: at, Source: event.Source{Run: j.ID(), Agent: "writer"}, Body: event.Started{Graph: "main", Node: "a"}},
		{Time: at, Source: event.Source{Run: j.ID(), Step: 1, Node: "a", Item: &item}, Body: event.ToolResult{ID: "1", Name: "fs_cat", Text: long}},
		{Time: at, Body: event.StateUpdated{Values: []value.Member{{Name: "n", Value: value.Of(1.0)}}}},
		{Time: at, Body: event.Warning{Text: "\x00\u2028 \U0001F600"}},
		{Time: at, Body: event.Finished{Output: long}},
	}
	check := func(n int) {
		s.Helper()
		h := s.history(j.ID())
		if len(h.Events) != n {
			s.Fatalf("%d events are on record, want %d", len(h.Events), n)
		}
		for i, got := range h.Events {
			want, err := all[i].MarshalJSON()
			s.ok(err)
			if !json.Valid(got) || !sameJSON(got, want) {
				s.Errorf("event %d is %.200s, want %.200s", i, got, want)
			}
		}
	}
	j.Event(all[0])
	j.Event(all[1])
	s.record(j.Task(1, "a"), "model", text(long))
	check(2)
	j.Event(all[2])
	s.ok(j.Commit(s.Context(), run.Checkpoint{Step: 1, State: state("n", 1.0)}, nil))
	check(3)
	j.Event(all[3])
	s.ok(j.End(s.Context(), run.Ending{Status: run.Done}))
	check(4)
	j.Event(all[4]) // comes after the last record
	s.ok(j.Close())
	s.reopen()
	check(5)
}

// eventNumbers reads events by their numbers, in a run that went on after some of them were lost.
func (s *suite) eventNumbers() {
	j := s.begin()
	id := j.ID()
	emit := func(want int) {
		s.Helper()
		if got := j.Event(event.Event{Time: at, Body: event.Warning{Text: fmt.Sprint(want)}}); got != want {
			s.Errorf("event %d got number %d", want, got)
		}
	}
	for n := 1; n <= 9; n++ {
		emit(n)
		if n%3 == 0 {
			s.record(j.Task(1, "a"), fmt.Sprint(n), text("x"))
		}
	}
	emit(10)
	emit(11)
	s.noEvents(id, 9)
	lost := j
	j = s.takeOver(s.T, s.store, id)
	_ = lost.Close() // the last events are all that is lost
	s.record(j.Task(1, "a"), "more", text("x"))
	emit(10)
	emit(11)
	s.ok(j.Close())
	s.reopen()
	for after := range 12 {
		for _, limit := range []int{0, 1, 2, 3, 4, 100} {
			found, err := s.store.Events(s.Context(), id, after, limit)
			s.ok(err)
			want := 11 - after
			if limit > 0 {
				want = min(want, limit)
			}
			if len(found) != want {
				s.Fatalf("%d events after %d with limit %d, want %d", len(found), after, limit, want)
			}
			for i, ev := range found {
				var w struct{ Text string }
				s.ok(json.Unmarshal(ev.JSON, &w))
				if ev.Number != after+1+i || w.Text != fmt.Sprint(ev.Number) {
					s.Errorf("event %d after %d has number %d: %s", i, after, ev.Number, ev.JSON)
				}
			}
		}
	}
	s.noEvents(id, 11)
	s.noEvents(id, 100)
	if _, err := s.store.Events(s.Context(), "zzzzzzzz", 0, 0); fault.CodeOf(err) != fault.NotFound {
		s.Errorf("events of a run that is not there: %v", err)
	}
}

// noEvents fails unless there are no events after a number.
func (s *suite) noEvents(id string, after int) {
	s.Helper()
	if found, err := s.store.Events(s.Context(), id, after, 0); err != nil || len(found) > 0 {
		s.Errorf("%d events after %d; %v", len(found), after, err)
	}
}

// stateEvents writes the events that repeat what the checkpoints hold, before and
// after the commit.
func (s *suite) stateEvents() {
	j := s.begin()
	var log value.List
	var want []event.Event
	c := run.Checkpoint{State: state("n", 0)}
	for i := range 12 {
		log = log.Append(value.Of(strings.Repeat(nodeName(i), 400)))
		c = next(c, c.State.With(
			value.Member{Name: "log", Value: log.Value()},
			value.Member{Name: "n", Value: value.Of(i)},
			value.Member{Name: "odd", Value: value.ObjectOf(value.Member{Name: "$ref", Value: value.Of(i)}).Value()},
		))
		changed := c.State
		ev := event.Event{Time: at, Source: event.Source{Step: c.Step}, Body: event.StateUpdated{Values: graph.State{}.Changes(changed)}}
		want = append(want, ev)
		if i%2 == 0 {
			j.Event(ev)
			s.ok(j.Commit(s.Context(), c, nil))
			continue
		}
		s.ok(j.Commit(s.Context(), c, nil))
		j.Event(ev)
		s.ok(j.Task(c.Step+1, "a").Begin(s.Context(), "k", steps.Step{Kind: steps.Tool, Effect: true}))
	}
	// An event about values that no checkpoint has.
	ev := event.Event{Time: at, Body: event.StateUpdated{Values: []value.Member{{Name: "log", Value: log.Append(value.Of(1)).Value()}}}}
	want = append(want, ev)
	j.Event(ev)
	s.ok(j.Close())
	s.reopen()
	h := s.history(j.ID())
	if len(h.Events) != len(want) {
		s.Fatalf("%d events, want %d", len(h.Events), len(want))
	}
	for i, got := range h.Events {
		text, err := want[i].MarshalJSON()
		s.ok(err)
		if !sameJSON(got, text) {
			s.Errorf("event %d is %.300s, want %.300s", i, got, text)
		}
	}
}

func (s *suite) delete() {
	var ids []string
	for i := range 4 {
		j := s.begin()
		ids = append(ids, j.ID())
		s.record(j.Task(1, "a"), "tool", text(strings.Repeat("the same in all runs ", 200)))
		s.record(j.Task(1, "a"), "own", text(strings.Repeat(j.ID(), 400)))
		j.Event(event.Event{Time: at, Body: event.Warning{Text: "x"}})
		s.ok(j.Asked(s.Context(), run.Pending{ID: "q", Step: 1, Node: "a", Key: "question"}))
		s.ok(j.Commit(s.Context(), run.Checkpoint{Step: 1, State: state("long", strings.Repeat(j.ID(), 400))}, []run.Visit{{Step: 1, Node: "a", Number: 1}}))
		s.ok(j.End(s.Context(), run.Ending{Status: run.Done}))
		if i != 1 {
			s.ok(j.Close())
		}
	}
	s.deletes(nil)
	s.deletes(ids[:1], ids[0], ids[1], "00000000")
	s.code("history of a deleted run", second(s.store.History(s.Context(), ids[0])), fault.NotFound)
	s.code("checkpoint of a deleted run", second(s.store.Checkpoint(s.Context(), ids[0], 0)), fault.NotFound)
	_, _, err := s.store.Open(s.Context(), ids[0])
	s.code("open of a deleted run", err, fault.NotFound)
	infos, err := s.store.Runs(s.Context(), run.Query{})
	s.ok(err)
	if len(infos) != 3 {
		s.Errorf("%d runs are left, want 3: the one that is running was not to be deleted", len(infos))
	}
	// What runs have in common stays for the ones that are left.
	for _, id := range ids[2:] {
		s.same("state", s.checkpoint(id, 1).State, state("long", strings.Repeat(id, 400)))
		if h := s.history(id); len(h.Steps) != 2 || len(h.Events) != 1 || len(h.Visits) != 1 {
			s.Errorf("run %s has lost something: %+v", id, h)
		}
	}
	j := s.begin()
	s.record(j.Task(1, "a"), "tool", text(strings.Repeat("the same in all runs ", 200)))
	s.known(j.Task(1, "a"), "tool", done(text(strings.Repeat("the same in all runs ", 200))))
	s.ok(j.End(s.Context(), run.Ending{Status: run.Done}))
	s.ok(j.Close())
	s.deletes(append(ids[2:], j.ID()), append(ids[2:], j.ID())...)
	s.reopen()
	if infos, err = s.store.Runs(s.Context(), run.Query{}); err != nil || len(infos) != 1 || infos[0].ID != ids[1] {
		s.Errorf("left are %v, %v", infos, err)
	}
}

// deletes deletes runs and checks which are gone.
func (s *suite) deletes(want []string, ids ...string) {
	s.Helper()
	deleted, err := s.store.Delete(s.Context(), ids...)
	s.ok(err)
	slices.Sort(deleted)
	if got, want := strings.Join(deleted, " "), strings.Join(slices.Sorted(slices.Values(want)), " "); got != want {
		s.Errorf("deleted are [%s], want [%s]", got, want)
	}
}

// deleteLeavesWhatWaits checks that only what has ended is deleted.
func (s *suite) deleteLeavesWhatWaits() {
	var ids, over []string
	for _, status := range []run.Status{"", run.Suspended, run.Canceled, run.Failed, run.Done} {
		j := s.begin()
		ids = append(ids, j.ID())
		if status.Over() {
			over = append(over, j.ID())
		}
		if status != "" { // a run that does not end is interrupted
			s.ok(j.End(s.Context(), run.Ending{Status: status}))
		}
		s.ok(j.Close())
	}
	s.deletes(over, ids...)
	s.reopen()
	for _, id := range ids[:2] {
		j, _ := s.resume(id)
		s.ok(j.Close())
	}
}

// heads checks that a list has the heads of long texts only, and the history all of them.
func (s *suite) heads() {
	for _, long := range []string{
		strings.Repeat("p", run.HeadSize-1), strings.Repeat("p", run.HeadSize), strings.Repeat("prompt\n\"<é> ", 100_000),
		"x" + strings.Repeat("\U0001F600", 1000), strings.Repeat("é", 1000), "xx" + strings.Repeat("€", 1000),
	} {
		info := sample()
		info.Prompt, info.Definition, info.Variables = long, []byte(long), map[string]string{"v": long}
		j := s.beginWith(info, run.Checkpoint{State: state()})
		s.ok(j.End(s.Context(), run.Ending{Status: run.Done, Output: long, Error: long}))
		s.ok(j.Close())
		whole := s.history(j.ID()).Info
		if whole.Prompt != long || whole.Output != long || string(whole.Definition) != long {
			s.Error("the history does not have the whole texts")
		}
		infos, err := s.store.Runs(s.Context(), run.Query{Limit: 1})
		s.ok(err)
		s.same("list", infos[0], whole.Head())
		if short := infos[0]; len(short.Prompt) > run.HeadSize+2 || short.Definition != nil || len(short.Variables["v"]) > run.HeadSize+2 {
			s.Errorf("a list has a prompt of %d bytes and a definition of %d", len(short.Prompt), len(short.Definition))
		}
	}
}

func second[T any](_ T, err error) error { return err }
