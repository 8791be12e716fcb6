package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/value"
)

func joins(n *Node, j Join) *Node           { n.Join = j; return n }
func deferred(n *Node) *Node                { n.Defer = true; return n }
func canceled(id string) Result             { return Result{Node: id, Canceled: true} }
func result(id string, to ...string) Result { return Result{Node: id, Targets: to} }

// race follows the plan with tasks that finish in the order of ranks: of a super-step, those that lose once others have finished
// are canceled.
func race(t *testing.T, p *Plan, order ...string) (trace string, pr Progress, err error) {
	t.Helper()
	var steps []string
	for pr = p.Begin(State{}); !pr.Done; {
		tasks, err := p.Next(pr)
		if err != nil {
			return strings.Join(steps, " | "), pr, err
		}
		slices.SortStableFunc(tasks, func(a, b Task) int { return slices.Index(order, a.Node.ID) - slices.Index(order, b.Node.ID) })
		var results []Result
		var names []string
		for _, task := range tasks {
			id := task.Node.ID
			switch {
			case slices.Contains(p.Losers(pr, results), id):
				results = append(results, canceled(id))
				id += " canceled"
			case task.Short != nil:
				return strings.Join(steps, " | "), pr, &NodeError{id, task.Short}
			default:
				r := result(id, task.Node.Next...)
				r.Ended, r.Writes = task.Node.Type == EndNode, []value.Member{{Name: id, Value: value.Of(task.Visit)}}
				results = append(results, r)
			}
			names = append(names, id)
		}
		slices.Sort(names)
		steps = append(steps, strings.Join(names, " "))
		if pr, err = p.Apply(pr, results); err != nil {
			return strings.Join(steps, " | "), pr, err
		}
		if len(steps) > 100 {
			t.Fatal("it does not end")
		}
	}
	return strings.Join(steps, " | "), pr, nil
}

func TestJoinOfTheFastest(t *testing.T) {
	fan := func(j Join) []*Node {
		return []*Node{step1("top", "a", "b", "c"), step1("a", "j"), step1("b", "j"), step1("c", "c2"), step1("c2", "j"), joins(step1("j", "e"), j), endNode("e")}
	}
	for _, tt := range []struct {
		name  string
		nodes []*Node
		order string
		want  string
	}{
		{"first_by_id", fan(JoinAny), "", "top | a b canceled c canceled | j | e"},
		{"last_by_id", fan(JoinAny), "top b c a", "top | a canceled b c canceled | j | e"},
		{"finished_before_keeps_its_writes_and_goes_nowhere", fan(JoinAny), "top c b a", "top | a canceled b c | j | e"},
		{"two", fan(2), "top c b a", "top | a b c | j | e"},
		{"two_cancel_the_third", fan(2), "top b a c", "top | a b c canceled | j | e"},
		{"three_wait", fan(3), "", "top | a b c | c2 | j | e"},
		{"a_waiting_join_loses", []*Node{
			step1("top", "a", "b", "z"), step1("a", "all"), step1("b", "b2"), step1("b2", "all"), joins(step1("all", "j"), JoinAll), step1("z", "z2"), step1("z2", "j"),
			joins(step1("j", "e"), JoinAny), endNode("e"),
		}, "top a b z z2 b2", "top | a b z | b2 canceled z2 | j | e"},
		{"others_go_on", []*Node{
			step1("top", "a", "b", "x"), step1("a", "j"), step1("b", "j"), step1("x", "x2"), step1("x2", "x3"), step1("x3", "all"),
			joins(step1("j", "all"), JoinAny), joins(step1("all", "e"), JoinAll), endNode("e"),
		}, "", "top | a b canceled x | j x2 | x3 | all | e"},
		{"races_one_after_the_other", []*Node{
			step1("top", "a", "b", "c", "d"), step1("a", "j1"), step1("b", "j1"), step1("c", "j2"), step1("d", "j2"),
			joins(step1("j1", "m"), JoinAny), joins(step1("j2", "m"), JoinAny), joins(step1("m", "e"), JoinAll), endNode("e"),
		}, "top b d a c", "top | a canceled b c canceled d | j1 j2 | m | e"},
		{"one_race_in_front_of_the_other", []*Node{
			step1("top", "a", "b", "c"), step1("a", "j1"), step1("b", "j1"), step1("c", "j2"),
			joins(step1("j1", "j2"), JoinAny), joins(step1("j2", "e"), JoinAny), endNode("e"),
		}, "top a c b", "top | a b canceled c | j2 | e"},
		{"a_join_counts_anew_in_a_loop", []*Node{
			step1("top", "a", "b"), step1("a", "j"), step1("b", "j"), joins(step1("j", "top", "x"), 2), step1("x", "e"), endNode("e"),
		}, "", "top | a b | j | top x | a b e"},
		{"a_join_at_the_start", []*Node{joins(step1("j", "e"), 3), endNode("e")}, "", "j | e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := race(t, NewPlan(build(nil, tt.nodes...)), strings.Fields(tt.order)...)
			if err != nil || got != tt.want {
				t.Errorf("super-steps are %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// TestCanceledVisits has canceled tasks count as visits, but write nothing and not count as arrivals.
func TestCanceledVisits(t *testing.T) {
	p := NewPlan(build(nil, step1("top", "a", "b"), step1("a", "j"), step1("b", "j"), joins(step1("j", "e"), JoinAny), endNode("e")))
	_, pr, err := race(t, p, "top", "b", "a")
	if _, wrote := pr.State.Get("a"); err != nil || wrote || p.Visits(pr, "a") != 1 || p.Visits(pr, "b") != 1 || p.Visits(pr, "j") != 1 {
		t.Errorf("state %s, visits %v, %v", pr.State.AppendJSON(nil), p.VisitCounts(pr), err)
	}
}

func TestTooFewArrivals(t *testing.T) {
	p := NewPlan(build(nil, step1("top", "a", "b", "c"), step1("a", "j"), step1("b", "j"), step1("c", "c2"), step1("c2", "x"), joins(step1("j", "e"), 3),
		joins(step1("x", "e"), JoinAll), endNode("e")))
	trace, pr, err := race(t, p)
	few, ok := errors.AsType[*ArrivalsError](err)
	if !ok || few.Arrived != 2 || trace != "top | a b c" || !strings.Contains(err.Error(), `at node "j": join: 3: there were only 2 arrivals`) {
		t.Errorf("%s: %v", trace, err)
	}
	// The progress that comes back from a record says the same.
	back := p.RestoreArrived(p.Restore(Progress{Step: pr.Step, State: pr.State, Frontier: pr.Frontier, Waiting: pr.Waiting}, p.VisitCounts(pr)), p.ArrivedCounts(pr))
	if again := p.Short(back, "j"); again == nil || again.Error() != few.Error() {
		t.Errorf("restored: %v", again)
	}
}

func TestDefer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes []*Node
		want  string
	}{
		{"after_all_else", []*Node{
			step1("top", "clean", "a", "b"), step1("a", "a2"), step1("a2", "e"), step1("b", "e"), deferred(step1("clean")), endNode("e"),
		}, "top | a b | a2 | clean | e"},
		{"several_at_once", []*Node{
			step1("top", "d2", "a"), step1("a", "d1", "b"), step1("b", "e"), deferred(step1("d1")), deferred(step1("d2")), endNode("e"),
		}, "top | a | b | d1 d2 | e"},
		{"an_end_that_was_held_back_stays_so", []*Node{
			step1("top", "d", "e"), deferred(step1("d", "x")), step1("x", "y"), step1("y", "e"), endNode("e"),
		}, "top | d | x | y | e"},
		{"deferred_after_deferred", []*Node{
			step1("top", "d1", "e"), deferred(step1("d1", "d2", "x")), step1("x", "e"), deferred(step1("d2")), endNode("e"),
		}, "top | d1 | x | d2 | e"},
		{"an_end", []*Node{step1("top", "e", "a"), step1("a", "b"), step1("b", "e"), deferred(endNode("e"))}, "top | a | b | e"},
		{"a_join_waits_for_it", []*Node{
			step1("top", "d", "a"), step1("a", "j"), deferred(step1("d", "j")), joins(step1("j", "e"), JoinAll), endNode("e"),
		}, "top | a | d | j | e"},
		{"a_join_beside_it", []*Node{
			step1("top", "d", "a", "b"), step1("a", "j"), step1("b", "b2"), step1("b2", "j"), deferred(step1("d")), joins(step1("j", "e"), JoinAll), endNode("e"),
		}, "top | a b | b2 | j | d | e"},
		{"it_loses_a_race", []*Node{
			step1("top", "d", "a"), step1("a", "a2"), step1("a2", "j"), deferred(step1("d", "j")), joins(step1("j", "e"), JoinAny), endNode("e"),
		}, "top | a | a2 | j | e"},
		{"alone", []*Node{step1("top", "d"), deferred(step1("d", "e")), endNode("e")}, "top | d | e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := race(t, NewPlan(build(nil, tt.nodes...)))
			if err != nil || got != tt.want {
				t.Errorf("super-steps are %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	if _, _, err := race(t, NewPlan(build(nil, deferred(step1("d")), endNode("e")))); !errors.Is(err, ErrNoEnd) {
		t.Errorf("no end waits: %v", err)
	}
}

func TestParseJoin(t *testing.T) {
	for source, want := range map[string]string{
		"all": "all", "any": "any", "1": "any", "2": "2", "null": "",
		"0": "nodes.a.join: must be from 1 to 1000000, found the number 0", "each": `unknown value "each"`, "[a]": "join", "1.5": "join", "-1": "must not be negative",
	} {
		g, _, err := Parse("", []byte("name: n\nstart: a\nnodes: {a: {type: end, join: "+source+"}}"))
		got := fmt.Sprint(err)
		if err == nil {
			got = g.Nodes[0].Join.String()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("join: %s is %q, want %q", source, got, want)
		}
	}
}
