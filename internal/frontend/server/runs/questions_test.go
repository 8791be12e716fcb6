package runs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

const visitors = `
name: visit
start: top
initial_state: {cities: [rome, oslo]}
nodes:
  top: {type: llm, model: "builtin:echo", prompt: go, next: [each, name]}
  each: {type: map, over: "{{cities}}", as: city, branch: visit, collect_into: visits, next: done}
  visit: {type: approval, question: "Visit {{city}}?", options: [yes, no], assignee: editors}
  name: {type: input, question: "Name?", expires: 24h, default: none, state_updates: {name: "{{input}}"}, next: done}
  done: {type: end, output: "{{visits}} {{name}}"}
`

// TestQuestionsOfAGroup has the members of a group answer the questions of a map, one by one and beside the run's owner.
func TestQuestionsOfAGroup(t *testing.T) {
	lines, as := people("alice", "bob", "carol", "editors2")
	lines = strings.Replace(lines, "{subject: carol,", "{subject: carol, groups: [authors, editors],", 1)
	s := servertest.Start(t, servertest.Files{
		"config.yaml": "model: builtin:echo\nclients:\n  - {type: builtin}\napi:\n" + lines, "agents/visit/graph.yaml": visitors,
	})
	r := begin(t, s, "visit", `{"wait": 60}`, as["alice"]...)
	path := "/v1/runs/" + r.ID
	waiting := func(who string) (ids []string) {
		var list api.List[api.Question]
		want(t, s.Get(path+"/questions", as[who]...), 200).JSON(t, &list)
		for _, q := range list.Data {
			ids = append(ids, q.ID)
			if item := strings.TrimPrefix(q.ID, "each#"); (item != q.ID) != (q.Item != nil) || q.Item != nil && (q.Node != "each" || fmt.Sprint(*q.Item) != item) {
				t.Errorf("%s is item %v of %s", q.ID, q.Item, q.Node)
			}
			if (q.ID == "name") != (q.Deadline != nil) {
				t.Errorf("%s ends at %v", q.ID, q.Deadline)
			}
		}
		return ids
	}
	if got := waiting("alice"); !slices.Equal(got, []string{"each#0", "each#1", "name"}) {
		t.Errorf("alice sees %q", got)
	}
	if got := waiting("carol"); !slices.Equal(got, []string{"each#0", "each#1"}) {
		t.Errorf("carol sees %q", got)
	}
	refused(t, s.Post(path+"/answers", `{"each#0": "yes"}`, as["alice"]...), 403, "forbidden", "editors")
	for _, stranger := range []string{"bob", "editors2"} {
		refused(t, s.Post(path+"/answers", `{"each#0": "yes"}`, as[stranger]...), 404, "run_not_found")
	}
	refused(t, s.Post(path+"/answers", `{"name": "Ada"}`, as["bob"]...), 404, "run_not_found")
	// The second item comes first, and the run waits for the rest.
	want(t, s.Post(path+"/answers", `{"each#1": "no"}`, as["carol"]...), 200)
	if left := rest(t, s, r.ID, as["alice"]...); left.Status != "suspended" || left.Waiting != 2 {
		t.Errorf("it is %+v", left)
	}
	if got := waiting("carol"); !slices.Equal(got, []string{"each#0"}) {
		t.Errorf("carol sees %q", got)
	}
	refused(t, s.Post(path+"/answers", `{"each#1": "yes"}`, as["carol"]...), 409, "conflict")
	want(t, s.Post(path+"/answers", `{"name": "Ada"}`, as["alice"]...), 200)
	rest(t, s, r.ID, as["alice"]...)
	want(t, s.Post(path+"/answers", `{"each#0": "yes"}`, as["carol"]...), 200)
	if done := rest(t, s, r.ID, as["alice"]...); done.Output != `["yes","no"] Ada` {
		t.Errorf("it is %+v", done)
	}
}
