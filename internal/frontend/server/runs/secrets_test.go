package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/frontend/api"
)

// TestSecretsOfSubgraphs looks at a run whose subgraph has a secret key: no view has its value, also once the subgraph is over.
func TestSecretsOfSubgraphs(t *testing.T) {
	s := start(t)
	r := begin(t, s, "inner", `{"prompt": "x", "wait": 60}`)
	path := "/v1/runs/" + r.ID
	var steps api.List[api.Step]
	want(t, s.Get(path+"/steps"), 200).JSON(t, &steps)
	views := []string{"", "/state", "/state?step=1", "/steps", "/questions", "/diff?a=0&b=1"}
	for _, step := range steps.Data {
		views = append(views, fmt.Sprintf("/steps/%d", step.Number))
	}
	all := ""
	look := func(view string) {
		t.Helper()
		a := want(t, s.Get(path+view), 200)
		if strings.Contains(a.Body, "sk-inner-x") || strings.Contains(a.Body, "471147114711") {
			t.Errorf("%s shows the secret: %s", view, a.Body)
		}
		all += a.Body
	}
	for _, view := range views {
		look(view)
	}
	answer(t, s, r.ID, "ask", "got ***token***")
	rest(t, s, r.ID)
	look("/events") // to its end
	look("/state")
	look("")
	for _, shown := range []string{`"left":"got ***token***"`, `"text":"got ***token***"`, `"pin":"***"`, `"options":["yes","***token***","got ***token***"]`, `"default":"got ***token***"`, `"chosen":"got ***token***"`} {
		if !strings.Contains(strings.ReplaceAll(all, `": `, `":`), shown) {
			t.Errorf("no view has %s: %s", shown, all)
		}
	}
}
