package runs_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"loki/internal/frontend/api"
)

// TestAgents shows agents and their graphs.
func TestAgents(t *testing.T) {
	s := start(t)
	var guide api.AgentDetail
	want(t, s.Get("/v1/agents/guide"), 200).JSON(t, &guide)
	if guide.Kind != "plain" || guide.Model != "builtin:echo" || len(guide.Variables) != 2 || guide.Variables[0].Default != nil || *guide.Variables[1].Default != "slow" ||
		!slices.Equal(guide.Starters, []string{"Where to?"}) {
		t.Errorf("it is %+v", guide)
	}
	for _, at := range []string{"/v1/agents/nope", "/v1/agents/nope/graph", "/v1/agents/..%2Fasker", "/v1/agents/" + "%2Fetc"} {
		refused(t, s.Get(at), 404, "agent_not_found")
	}
	refused(t, s.Get("/v1/agents/guide/graph"), 409, "conflict")
	refused(t, s.Get("/v1/agents/broken"), 500, "internal", "graph.yaml")
	refused(t, s.Get("/v1/agents/asker/graph?format=png"), 400, "invalid_request", "format")
	drawings(t, func(format string) (header http.Header, body string) {
		a := want(t, s.Get("/v1/agents/asker/graph"+format), 200)
		return a.Header, a.Body
	}, "", "")
}

// drawings looks at the forms of the graph of the agent asker. State and at are a state that one of its nodes has.
func drawings(t *testing.T, get func(format string) (http.Header, string), state, at string) {
	t.Helper()
	for _, tt := range []struct{ format, kind, says string }{
		{"", "application/json", `"start":"who"`},
		{"?format=json", "application/json", `"from":"review"`},
		{"?format=svg", "image/svg+xml", `data-node="review"`},
		{"?format=mermaid", "text/plain; charset=utf-8", "review"},
		{"?format=dot", "text/plain; charset=utf-8", "digraph"},
		{"?format=text", "text/plain; charset=utf-8", "review (approval)"},
	} {
		header, body := get(tt.format)
		if header.Get("Content-Type") != tt.kind || !strings.Contains(body, tt.says) {
			t.Errorf("%s: %s %s", tt.format, header.Get("Content-Type"), body)
		}
		switch tt.kind {
		case "application/json":
			var g api.Graph
			if err := json.Unmarshal([]byte(body), &g); err != nil || g.Name != "asker" || len(g.Nodes) != 4 || len(g.Edges) < 4 {
				t.Errorf("%+v, %v", g, err)
			}
			for _, n := range g.Nodes {
				if n.ID == at && n.State != state {
					t.Errorf("%s is %q", n.ID, n.State)
				}
			}
		case "image/svg+xml":
			for d := xml.NewDecoder(strings.NewReader(body)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestLook looks at a run.
func TestLook(t *testing.T) {
	s := start(t)
	r := begin(t, s, "asker", `{"prompt": "p", "wait": 60}`)
	path := "/v1/runs/" + r.ID
	drawings(t, func(format string) (http.Header, string) {
		a := want(t, s.Get(path+"/graph"+format), 200)
		return a.Header, a.Body
	}, "waiting", "who")
	answer(t, s, r.ID, "who", "Ada")
	answer(t, s, r.ID, "review", "yes")
	drawings(t, func(format string) (http.Header, string) {
		a := want(t, s.Get(path+"/graph"+format), 200)
		return a.Header, a.Body
	}, "done", "review")
	refused(t, s.Get(path+"/graph?format=png"), 400, "invalid_request", "format")

	// States.
	var st api.RunState
	want(t, s.Get(path+"/state?step=0"), 200).JSON(t, &st)
	if st.Step != 0 || !slices.Equal(st.Next, []string{"who"}) || string(st.State) != `{"n":1,"initial_prompt":"p"}` && string(st.State) != `{"initial_prompt":"p","n":1}` {
		t.Errorf("at the start: %+v %s", st, st.State)
	}
	want(t, s.Get(path+"/state"), 200).JSON(t, &st)
	if !strings.Contains(string(st.State), `"who":"Ada"`) || len(st.Next) != 0 {
		t.Errorf("at the end: %+v %s", st, st.State)
	}
	refused(t, s.Get(path+"/state?step=99"), 404, "step_not_found")
	refused(t, s.Get(path+"/state?step=-1"), 400, "invalid_request", "step")
	refused(t, s.Get(path+"/state?step=x"), 400, "invalid_request", "step")
	for _, wrong := range []string{"a=0", "a=x&b=0", "a=0&b=-1", "a=0&b="} {
		refused(t, s.Get(path+"/diff?"+wrong), 400, "invalid_request")
	}
	refused(t, s.Get(path+"/diff?a=0&b=99"), 404, "step_not_found")
	refused(t, s.Get(path+"/diff?a=0&b=zzzzzzzz@1"), 404, "run_not_found")

	// Steps: what reached outside of the run, here its answers.
	var steps api.List[api.Step]
	want(t, s.Get(path+"/steps"), 200).JSON(t, &steps)
	if len(steps.Data) != 2 || steps.Data[0].Node != "who" || !steps.Data[0].Done || steps.Data[0].Result != nil || steps.Data[1].Number <= steps.Data[0].Number {
		t.Fatalf("the steps are %+v", steps)
	}
	var first, second api.List[api.Step]
	want(t, s.Get(path+"/steps?limit=1"), 200).JSON(t, &first)
	want(t, s.Get(path+"/steps?limit=1&cursor="+first.NextCursor), 200).JSON(t, &second)
	if len(first.Data) != 1 || len(second.Data) != 1 || second.Data[0].Node != "review" || second.NextCursor != "" {
		t.Errorf("the pages are %+v and %+v", first, second)
	}
	for _, filter := range []string{"node=review", "step=2"} {
		if want(t, s.Get(path+"/steps?"+filter), 200).JSON(t, &first); len(first.Data) != 1 || first.Data[0].Node != "review" {
			t.Errorf("%s: %+v", filter, first)
		}
	}
	var one api.Step
	want(t, s.Get(path+"/steps/"+jsonOf(steps.Data[0].Number)), 200).JSON(t, &one)
	if one.Number != steps.Data[0].Number || string(one.Result) != `{"text":"Ada","via":"rest"}` {
		t.Errorf("the step is %+v", one)
	}
	refused(t, s.Get(path+"/steps/99"), 404, "step_not_found")
	refused(t, s.Get(path+"/steps/0"), 400, "invalid_request")
	refused(t, s.Get(path+"/steps?step=x"), 400, "invalid_request", "step")
	refused(t, s.Get(path+"/steps?cursor=x"), 400, "invalid_request", "cursor")

	// A beginning of the id means the run, unless it means several.
	if r := get(t, s, r.ID[:4]); r.Prompt != "p" {
		t.Errorf("it is %+v", r)
	}
	for _, id := range []string{"zzzzzzzz", "..%2F", "%20", strings.Repeat("a", 64)} {
		refused(t, s.Get("/v1/runs/"+id+"/state"), 404, "run_not_found")
	}
}

// TestQueued lists the runs that wait for their turn.
func TestQueued(t *testing.T) {
	s := start(t, "api:\n  limits: {max_concurrent_runs: 1}\n")
	works := begin(t, s, "gate", `{"prompt": "a"}`)
	begun(t, s, "a")
	waits := begin(t, s, "gate", `{"prompt": "b"}`)
	for query, want := range map[string]string{"queued": waits.ID, "running": waits.ID + " " + works.ID, "queued,done": waits.ID, "suspended": ""} {
		var list api.List[api.Run]
		s.Get("/v1/runs?status="+query).JSON(t, &list)
		var got []string
		for _, r := range list.Data {
			got = append(got, r.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	open(t, s, "a")
	open(t, s, "b")
	rest(t, s, waits.ID)
}

// TestAmbiguousID has a beginning mean several runs: those that the caller may see are named, and no others.
func TestAmbiguousID(t *testing.T) {
	lines, as := people("alice", "bob")
	s := start(t, "api:\n  limits: {per_subject_concurrency: 64}\n"+lines)
	byFirst := make(map[byte][]string) // alice's runs
	var of []string                    // those with the same beginning
	for len(of) < 2 {
		id := begin(t, s, "asker", `{}`, as["alice"]...).ID
		byFirst[id[0]] = append(byFirst[id[0]], id)
		of = byFirst[id[0]]
	}
	slices.Sort(of)
	first := of[0][:1]
	for begin(t, s, "asker", `{}`, as["bob"]...).ID[:1] != first {
	}
	for _, at := range []string{"", "/state", "/questions"} {
		refused(t, s.Get("/v1/runs/"+first+at, as["alice"]...), 400, "invalid_request", "several runs begin with", strings.Join(of, ", ")+`"`, "type more of the id")
		want(t, s.Get("/v1/runs/"+first+at, as["bob"]...), 200) // of his there is one
	}
	refused(t, s.Post("/v1/runs/"+first+"/cancel", "", as["alice"]...), 400, "invalid_request")
}

// TestLists has runs and questions in pages.
func TestLists(t *testing.T) {
	s := start(t)
	var ids []string
	for range 5 {
		ids = append(ids, begin(t, s, "asker", `{"wait": 60}`).ID)
	}
	slices.Reverse(ids) // newest first
	two := begin(t, s, "review", `{"wait": 60}`)
	done := begin(t, s, "toolsmith", `{"prompt": "x", "wait": 60}`)

	runs := func(query string) (found []string) {
		t.Helper()
		for cursor := ""; ; {
			var page api.List[api.Run]
			want(t, s.Get("/v1/runs?limit=2&cursor="+cursor+query), 200).JSON(t, &page)
			for _, r := range page.Data {
				found = append(found, r.ID)
			}
			if cursor = page.NextCursor; cursor == "" {
				return found
			}
		}
	}
	for query, expected := range map[string][]string{
		"":                            append([]string{done.ID, two.ID}, ids...),
		"&agent=asker":                ids,
		"&status=done":                {done.ID},
		"&status=suspended":           append([]string{two.ID}, ids...),
		"&status=done,failed":         {done.ID},
		"&status=done&agent=asker":    nil,
		"&since=2100-01-01T00:00:00Z": nil,
	} {
		if found := runs(query); !slices.Equal(found, expected) {
			t.Errorf("%s: %v, want %v", query, found, expected)
		}
	}
	refused(t, s.Get("/v1/runs?status=well"), 400, "invalid_request", "status")
	refused(t, s.Get("/v1/runs?since=now"), 400, "invalid_request", "since")
	gone := base64.RawURLEncoding.EncodeToString([]byte("zzzzzzzz"))
	refused(t, s.Get("/v1/runs?cursor="+gone), 400, "invalid_request", "cursor")
	refused(t, s.Get("/v1/questions?cursor="+gone), 400, "invalid_request", "cursor")

	var asked []string
	for cursor := ""; ; {
		var page api.List[api.Question]
		want(t, s.Get("/v1/questions?limit=2&cursor="+cursor), 200).JSON(t, &page)
		for _, q := range page.Data {
			asked = append(asked, q.Run)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if expected := append([]string{two.ID}, ids...); !slices.Equal(asked, expected) {
		t.Errorf("the questions are of %v, want %v", asked, expected)
	}
	var r api.List[api.Run]
	want(t, s.Get("/v1/runs?agent=review"), 200).JSON(t, &r)
	if len(r.Data) != 1 || r.Data[0].Waiting != 1 {
		t.Errorf("the run is %+v", r)
	}
}

// jsonOf returns v as JSON.
func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
