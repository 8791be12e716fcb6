package runtest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// checkpoints commits random changes and reads back every state.
func (s *suite) checkpoints() { s.randomRun(1, 80, 0) }

// checkpointsOfResumedRun does so with an interruption now and then, after which the
// values are those read back.
func (s *suite) checkpointsOfResumedRun() { s.randomRun(2, 80, 7) }

// randomRun commits n checkpoints. After every few of them, 0 for never, the run is
// closed and opened again.
func (s *suite) randomRun(seed uint64, n, every int) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := run.Checkpoint{State: state("grown", []any{}, "text", "", "fixed", strings.Repeat("f", 5000)), Position: run.Position{Frontier: []string{"a"}}}
	j := s.beginWith(sample(), c)
	all := []run.Checkpoint{c}
	for len(all) <= n {
		c = next(c, mutate(rnd, c.State))
		c.Visits = map[string]int{"a": len(all), nodeName(len(all) % 5): rnd.IntN(9) + 1}
		for id, n := range all[len(all)-1].Visits {
			c.Visits[id] = max(c.Visits[id], n)
		}
		c.Failures = len(all) / 10
		if len(all)%4 > 0 {
			c.Arrived = map[string]int{nodeName(len(all) % 5): len(all)}
		}
		if len(all)%3 > 0 { // most steps take an edge with a bound
			c.Taken = map[string]int{nodeName(len(all)%5) + ".next[1]": len(all)}
			for edge, n := range all[len(all)-1].Taken {
				c.Taken[edge] = max(c.Taken[edge], n)
			}
		}
		switch n := len(all); {
		case n%11 == 0: // the last effect is undone
			c.Effects = c.Effects[:max(0, len(c.Effects)-1)]
			c.Undoing = &graph.Undoing{Failure: graph.Failure{Node: "a", Message: "why"}, Error: "at a: why", Total: n, Lost: []graph.Lost{{Node: "b", Visit: n}}}
		case n%2 == 0:
			effect := graph.Effect{Node: nodeName(n % 5), Step: n, Visit: 1, Writes: value.ObjectOf(value.Member{Name: "id", Value: value.Of(n)}).Value()}
			c.Effects, c.Undoing = append(slices.Clip(c.Effects), effect), nil
		}
		if len(c.Effects) == 0 {
			c.Effects = nil
		}
		s.ok(j.Commit(s.Context(), c, nil))
		all = append(all, c)
		if every > 0 && len(all)%every == 0 {
			s.ok(j.Close())
			s.reopen()
			var found run.Recovery
			j, found = s.resume(j.ID())
			s.same("recovered", found.Last, c)
			c = found.Last
		}
	}
	for _, i := range rnd.Perm(len(all)) {
		s.same(fmt.Sprintf("checkpoint %d", i), s.checkpoint(j.ID(), i), all[i])
	}
	s.ok(j.Close())
	s.reopen()
	for i := range all {
		s.same(fmt.Sprintf("checkpoint %d, after reopening", i), s.checkpoint(j.ID(), i), all[i])
	}
}

// setState replaces the state of checkpoints, now and then of one that was read back. The others stay as they are.
func (s *suite) setState() {
	rnd := rand.New(rand.NewPCG(3, 0))
	c := run.Checkpoint{State: state("grown", []any{1}, "text", "a"), Position: run.Position{Frontier: []string{"a"}, Visits: map[string]int{"a": 1}, Taken: map[string]int{"a.next[1]": 2}}}
	j := s.beginWith(sample(), c)
	var all []run.Checkpoint
	for len(all) < 40 {
		for range rnd.IntN(3) { // more than once, too
			c.State = mutate(rnd, c.State)
			s.ok(j.SetState(s.Context(), c.State))
		}
		s.same("set", s.checkpoint(j.ID(), -1), c)
		all = append(all, c)
		if len(all)%4 == 0 {
			s.ok(j.Close())
			s.reopen()
			var found run.Recovery
			j, found = s.resume(j.ID())
			s.same("recovered", found.Last, c)
			c.State = mutate(rnd, c.State)
			s.ok(j.SetState(s.Context(), c.State))
			all[len(all)-1] = c
		}
		c = next(c, mutate(rnd, c.State))
		c.Visits = map[string]int{"a": c.Step + 1}
		c.Taken = map[string]int{"a.next[1]": 2}
		s.ok(j.Commit(s.Context(), c, nil))
	}
	s.ok(j.Close())
	s.reopen()
	for i := range all {
		s.same(fmt.Sprintf("checkpoint %d", i), s.checkpoint(j.ID(), i), all[i])
	}
	if err := j.SetState(s.Context(), c.State); !errors.Is(err, run.ErrClosed) {
		s.Errorf("the state was set in a closed journal: %v", err)
	}
}

// mutate changes a few keys of st in the ways that runs do.
func mutate(rnd *rand.Rand, st graph.State) graph.State {
	var writes []value.Member
	for _, key := range []string{"grown", "text", "list", "odd", nodeName(rnd.IntN(20))} {
		old, _ := st.Get(key)
		var v value.Value
		switch rnd.IntN(6) {
		case 0:
			continue
		case 1:
			v = randomValue(rnd, 0)
		case 2:
			v = value.Of(strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(3000)))
		default:
			v = grow(rnd, old)
		}
		writes = append(writes, value.Member{Name: key, Value: v})
	}
	return st.With(writes...)
}

// grow returns old with something added at its end; now and then it is shortened or
// rebuilt from copies instead.
func grow(rnd *rand.Rand, old value.Value) value.Value {
	if text, ok := old.AsString(); ok {
		if rnd.IntN(8) == 0 {
			return value.Of(text[:len(text)/2])
		}
		return value.Of(text + strings.Repeat("+é", rnd.IntN(1200)))
	}
	list, _ := old.AsList()
	switch rnd.IntN(8) {
	case 0:
		return list.From(list.Len() / 2).Value()
	case 1:
		copied := value.List{}
		for _, v := range list.All() {
			again, err := value.ParseJSON(v.AppendJSON(nil))
			if err != nil {
				panic(err)
			}
			copied = copied.Append(again)
		}
		return copied.Append(randomValue(rnd, 0)).Value()
	}
	for range rnd.IntN(3) {
		list = list.Append(randomValue(rnd, 0))
	}
	return list.Value()
}

func randomValue(rnd *rand.Rand, depth int) value.Value {
	kinds := 10
	if depth > 3 {
		kinds = 8
	}
	switch rnd.IntN(kinds) {
	case 0:
		return value.Value{}
	case 1:
		return value.Of(rnd.IntN(2) == 0)
	case 2:
		return value.Of(rnd.Int64() >> rnd.IntN(64) * int64(1-2*rnd.IntN(2)))
	case 3:
		return value.Of(rnd.Uint64())
	case 4:
		return value.Of(rnd.NormFloat64() * math.Pow(10, float64(rnd.IntN(40)-20)))
	case 5:
		return value.Of(float64(rnd.IntN(100)))
	case 6:
		return value.Of(strings.Repeat("<\"\\\n&>", rnd.IntN(10)))
	case 7:
		return value.Of(strings.Repeat("long é\U0001F600 ", rnd.IntN(400)))
	case 8:
		var l value.List
		for range rnd.IntN(4) {
			l = l.Append(randomValue(rnd, depth+1))
		}
		return l.Value()
	}
	var members []value.Member
	for i := range rnd.IntN(4) {
		members = append(members, value.Member{Name: fmt.Sprint(rnd.IntN(10), i), Value: randomValue(rnd, depth+1)})
	}
	return value.ObjectOf(members...).Value()
}

// oddValues keeps what is easily taken for something else.
func (s *suite) oddValues() {
	long := strings.Repeat("0123456789abcdef", 100)
	deep := value.Of(long)
	for range 1500 {
		deep = value.ListOf(deep).Value()
	}
	all := state(
		"", "empty key",
		"null", value.Value{},
		"one", value.Of(1), "one point", value.Of(1.0), "minus zero", value.Of(math.Copysign(0, -1)),
		"largest", value.Of(uint64(math.MaxUint64)), "smallest", value.Of(int64(math.MinInt64)),
		"tiny", value.Of(5e-324), "huge", value.Of(math.MaxFloat64), "big", value.Of(1e16),
		"ref", map[string]any{"$ref": 1}, "blob", map[string]any{"blob": long[:16], "": long},
		"hash", long[:16], "hashes", []any{long[:16], long[:32], long},
		"order", value.ObjectOf(value.Member{Name: "b", Value: value.Of(1)}, value.Member{Name: "a", Value: value.Of(2)}).Value(),
		"long names", value.ObjectOf(value.Member{Name: long, Value: value.Of(long)}).Value(),
		"not utf-8", value.Of("\xff"+long+"\xff"),
		"zero", value.Of("\x00"), "deep", deep,
		long, "long key", "\xff\x00key", "odd key", "%_'\"", "another",
	)
	j := s.beginWith(sample(), run.Checkpoint{State: all})
	check := func(step int) {
		s.Helper()
		got := s.checkpoint(j.ID(), step).State
		for key, want := range all.All() {
			v, ok := got.Get(key)
			if !ok || !value.Equal(v, want) || v.String() != want.String() {
				s.Errorf("key %.20q is %.100q, want %.100q", key, v, want)
			}
		}
		if got.Len() != all.Len() {
			s.Errorf("%d keys, want %d", got.Len(), all.Len())
		}
	}
	check(0)
	s.ok(j.Commit(s.Context(), run.Checkpoint{Step: 1, State: state("one", 1.0)}, nil))
	s.same("a state with fewer keys", s.checkpoint(j.ID(), 1).State, state("one", 1.0))
	s.ok(j.Commit(s.Context(), run.Checkpoint{Step: 2, State: all}, nil))
	s.ok(j.Close())
	s.reopen()
	check(0)
	s.same("a state with fewer keys", s.checkpoint(j.ID(), 1).State, state("one", 1.0))
	check(2)
}

// reorderedValues lets a list grow whose elements come back with their members in
// another order, as from a script that reads and prints it: equal, but not the same.
func (s *suite) reorderedValues() {
	object := func(names ...string) value.Value {
		var members []value.Member
		for _, n := range names {
			members = append(members, value.Member{Name: n, Value: value.Of(1)})
		}
		return value.ObjectOf(members...).Value()
	}
	c := run.Checkpoint{State: state("list", value.ListOf(object("a", "b")).Value())}
	j := s.beginWith(sample(), c)
	all := []run.Checkpoint{c}
	for _, list := range []value.List{
		value.ListOf(object("b", "a"), object("c")),
		value.ListOf(object("b", "a"), object("c"), object("d", "e")),
		value.ListOf(object("b", "a"), object("c"), object("e", "d"), value.Of(math.Copysign(0, -1))),
		value.ListOf(object("b", "a"), object("c"), object("e", "d"), value.Of(0.0), value.Of(0)),
	} {
		c = next(c, state("list", list.Value()))
		s.ok(j.Commit(s.Context(), c, nil))
		all = append(all, c)
	}
	for i := range all {
		s.same(fmt.Sprintf("checkpoint %d", i), s.checkpoint(j.ID(), i), all[i])
	}
}

// fork begins a run in the middle of another one.
func (s *suite) fork() {
	start := run.Checkpoint{
		Step: 4, State: state("n", 4, "long", strings.Repeat("x", 3000)), Position: run.Position{Frontier: []string{"b"}, Visits: map[string]int{"a": 3, "b": 1}, Failures: 1},
	}
	j := s.beginWith(sample(), start)
	five := next(start, state("n", 5))
	five.Visits = map[string]int{"a": 3, "b": 2}
	if err := j.Commit(s.Context(), run.Checkpoint{Step: 1}, nil); err == nil {
		s.Error("super-step 1 was committed after 4")
	}
	s.ok(j.Commit(s.Context(), five, []run.Visit{visit(5, "b")}))
	s.ok(j.Close())
	s.reopen()
	s.same("start", s.checkpoint(j.ID(), 0), start)
	s.same("start by number", s.checkpoint(j.ID(), 4), start)
	s.same("last", s.checkpoint(j.ID(), -1), five)
	s.code("before the start", second(s.store.Checkpoint(s.Context(), j.ID(), 3)), "not_found")
	if got := s.info(j.ID()).Steps; got != 5 {
		s.Errorf("%d super-steps", got)
	}
}

// visitCounts commits super-steps with their visits, as runs do: with one map that changes
// from super-step to super-step, and loses a node that the graph has no longer.
func (s *suite) visitCounts() {
	c := run.Checkpoint{Position: run.Position{Visits: map[string]int{"a": 3, "old": 1}}}
	j := s.beginWith(sample(), c)
	var want []map[string]int
	counts := maps.Clone(c.Visits)
	commit := func(nodes ...string) {
		s.Helper()
		var visits []run.Visit
		for _, node := range nodes {
			counts[node]++
			visits = append(visits, run.Visit{Step: c.Step + 1, Node: node, Number: counts[node]})
		}
		c = next(c, c.State)
		c.Visits = counts
		s.ok(j.Commit(s.Context(), c, visits))
		want = append(want, maps.Clone(counts))
	}
	commit("a")
	commit("b", "c")
	s.ok(j.Close())
	s.reopen()
	j, _ = s.resume(j.ID())
	delete(counts, "old")
	commit("a", "d")
	commit("c")
	for i, visits := range want {
		s.same(fmt.Sprintf("visits after super-step %d", i+1), s.checkpoint(j.ID(), i+1).Visits, visits)
	}
}
