package runs_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loki/internal/frontend/api"
)

// TestBegin begins runs, and goes on with them.
func TestBegin(t *testing.T) {
	s := start(t)
	// At once, or when it rests, or when the time is over.
	r := begin(t, s, "gate", `{"prompt": "a"}`)
	if r.Status != "running" || !r.Active || r.Kind != "graph" || r.Prompt != "a" {
		t.Errorf("it is %+v", r)
	}
	if late := begin(t, s, "gate", `{"prompt": "b", "wait": 0.05}`); late.Status != "running" {
		t.Errorf("after the time it is %+v", late)
	}
	open(t, s, "a")
	open(t, s, "b")
	open(t, s, "c")
	if done := begin(t, s, "gate", `{"prompt": "c", "wait": 60}`); done.Status != "done" || done.Output != "one two c" || done.Active {
		t.Errorf("it is %+v", done)
	}
	if done := rest(t, s, r.ID); done.Status != "done" || done.Output != "one two a" || len(done.Visits) != 3 {
		t.Errorf("it is %+v", done)
	}
	asks := begin(t, s, "asker", `{"wait": 60}`)
	if asks.Status != "suspended" || asks.Waiting != 1 {
		t.Errorf("it is %+v", asks)
	}
	// The turn of a plain agent is a run as well.
	plain := begin(t, s, "guide", `{"prompt": "go", "variables": {"place": "Graz"}, "wait": 60}`)
	if plain.Kind != "agent" || plain.Status != "done" || plain.Output != "go" {
		t.Errorf("it is %+v", plain)
	}
	// The same request again is not another run.
	var again [2]api.Run
	for i := range again {
		want(t, s.Post("/v1/agents/asker/runs", `{"wait": 60}`, "Idempotency-Key", "k"), http.StatusCreated).JSON(t, &again[i])
	}
	if again[0].ID != again[1].ID {
		t.Errorf("they are %s and %s", again[0].ID, again[1].ID)
	}
	// A budget of the request holds, and does not widen the agent's.
	spent := begin(t, s, "gate", `{"prompt": "a", "wait": 60, "budget": {"tokens": 1}}`)
	if spent.Status != "suspended" || spent.Code != "limit" || !strings.Contains(spent.Error, "the budget of 1 tokens") {
		t.Errorf("it is %s with %s, %s", spent.Status, spent.Code, spent.Error)
	}
}

// TestBudgetRaised goes on with a run that has reached the budget of its request.
func TestBudgetRaised(t *testing.T) {
	s := start(t)
	open(t, s, "a")
	spent := begin(t, s, "gate", `{"prompt": "a", "wait": 60, "budget": {"tokens": 1, "usd": 2}}`)
	path := "/v1/runs/" + spent.ID
	resumed := func(body string, tokens int) api.RunDetail {
		t.Helper()
		want(t, s.Post(path+"/resume", body), http.StatusOK)
		r := rest(t, s, spent.ID)
		if r.Budget == nil || *r.Budget != (api.RunBudget{Tokens: tokens, USD: 2}) {
			t.Errorf("its budget is %+v", r.Budget)
		}
		return r
	}
	for _, again := range []api.RunDetail{resumed(``, 1), resumed(`{"budget": {"tokens": 2}}`, 2)} {
		if again.Status != "suspended" || again.Code != "limit" {
			t.Errorf("it is %s with %s, %s", again.Status, again.Code, again.Error)
		}
	}
	if done := resumed(`{"budget": {"tokens": 5000}}`, 5000); done.Status != "done" || done.Output != "one two a" {
		t.Errorf("it is %s with %s, %s", done.Status, done.Code, done.Error)
	}
	refused(t, s.Post(path+"/resume", `{"budget": {"tokens": -1}}`), 400, "invalid_request", "tokens")
	// A fork has a budget of its own.
	for body, status := range map[string]string{`{"step": 0}`: "done", `{"step": 0, "budget": {"tokens": 1}}`: "suspended"} {
		var fork api.Run
		want(t, s.Post(path+"/fork", body), http.StatusCreated).JSON(t, &fork)
		if r := rest(t, s, fork.ID); r.Status != status {
			t.Errorf("%s: it is %s with %s, %s", body, r.Status, r.Code, r.Error)
		}
	}
}

// TestBeginRefused: what a request has wrong is said before there is a run.
func TestBeginRefused(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		agent, body string
		status      int
		code        string
		says        string
	}{
		{"nope", `{}`, 404, "agent_not_found", "GET /v1/agents"},
		{"..%2Fagents%2Fasker", `{}`, 404, "agent_not_found", ""},
		{".%2Fasker", `{}`, 404, "agent_not_found", ""},
		{"asker", `{"promt": "x"}`, 400, "invalid_request", "promt"},
		{"asker", `{"variables": {"x": "y"}}`, 400, "invalid_request", "variable"},
		{"guide", `{"prompt": "x", "variables": {"plaice": "y"}}`, 400, "invalid_request", "did you mean place?"},
		{"guide", `{"prompt": "x"}`, 400, "invalid_request", "place (where)"},
		{"guide", `{"prompt": "x"}`, 400, "invalid_request", "the member variables"},
		{"guide", `{"variables": {"place": "y"}}`, 400, "invalid_request", "prompt"},
		{"asker", `{"wait": -1}`, 400, "invalid_request", "wait"},
		{"asker", `{"budget": {"seconds": 1e18}}`, 400, "invalid_request", "seconds"},
		{"asker", `{"webhooks": [{"url": "ftp://example.com"}]}`, 400, "invalid_request", "webhooks[0].url"},
		{"asker", `{"webhooks": [{"url": "http://192.168.1.1/hook"}]}`, 400, "invalid_request", "192.168.1.1 is not an address of the public internet"},
		{"asker", `{"webhooks": [{"url": "http://localhost:1/hook"}]}`, 400, "invalid_request", "this server does not send to private addresses; its operator can allow the address"},
		{"asker", `{"wait": 3601}`, 400, "invalid_request", "wait"},
		{"toolsmith", `{"model": "builtin:nope"}`, 404, "model_not_found", ""},
		{"toolsmith", `{"model": "nobody:gpt"}`, 404, "model_not_found", ""},
		{"toolsmith", `{"model": "builtin:hash"}`, 404, "model_not_found", ""},
		{"toolsmith", `{"model": "builtin:script/rules.yaml"}`, 404, "model_not_found", ""},
		{"toolsmith", `{"model": "own:script//etc/passwd"}`, 404, "model_not_found", ""},
		{"broken", `{}`, 500, "internal", "graph.yaml"},
	} {
		a := s.Post("/v1/agents/"+tt.agent+"/runs", tt.body)
		refused(t, a, tt.status, tt.code, tt.says)
		if strings.Contains(a.Body, "--") || strings.Contains(a.Body, "loki ") || strings.Contains(a.Body, "LOKI_") {
			t.Errorf("%s names the command line or the environment: %s", tt.agent, a.Body)
		}
	}
	var list api.List[api.Run]
	if want(t, s.Get("/v1/runs"), 200).JSON(t, &list); len(list.Data) != 0 {
		t.Errorf("the runs are %+v", list.Data)
	}
	// The file that the configuration names is the server's choice.
	if r := begin(t, s, "toolsmith", `{"prompt": "x", "model": "own:script", "wait": 60}`); r.Output != "by rule" {
		t.Errorf("it says %q", r.Output)
	}
}

// TestStream has the events of a run as the answer of the request that begins it.
func TestStream(t *testing.T) {
	s := start(t)
	for prompt, headers := range map[string][]string{"x": nil, "y": {"Accept", "text/event-stream"}} {
		body := `{"prompt": "` + prompt + `", "stream": true}`
		if headers != nil {
			body = `{"prompt": "` + prompt + `"}`
		}
		w := answered(t, s.Request(http.MethodPost, "/v1/agents/gate/runs", body, headers...))
		a := w.res
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusCreated || a.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %v", a.StatusCode, a.Header)
		}
		list := w.until("started")
		open(t, s, prompt) // pieces come to those who watch the run by then
		list = append(list, w.until("end")...)
		id := strings.TrimPrefix(a.Header.Get("Location"), "/v1/runs/")
		last := list[len(list)-1]
		if list[0].name != "started" || last.name != "end" || !strings.Contains(last.data, `"status":"done"`) || !strings.Contains(last.data, `"output":"one two `+prompt+`"`) {
			t.Errorf("it is %+v", list)
		}
		if n := numbered(t, list, 1); n != get(t, s, id).Events {
			t.Errorf("%d events, and on record are %d", n, get(t, s, id).Events)
		}
		said := ""
		for _, f := range list {
			if f.name == "delta" {
				if f.id != 0 {
					t.Errorf("a piece has number %d", f.id)
				}
				said += f.data
			}
		}
		if !strings.Contains(said, "two") {
			t.Errorf("the pieces are %s", said)
		}
	}
	// It ends when the run waits for an answer.
	a := s.Post("/v1/agents/asker/runs", `{"stream": true}`)
	list := frames(t, a.Body)
	if last := list[len(list)-1]; last.name != "end" || !strings.Contains(last.data, `"status":"suspended"`) || !strings.Contains(a.Body, "event: question\n") {
		t.Errorf("it is %+v", list)
	}
}

// TestAnswers answers questions, twice and wrongly.
func TestAnswers(t *testing.T) {
	s := start(t)
	r := begin(t, s, "asker", `{"wait": 60}`)
	path := "/v1/runs/" + r.ID
	var questions api.List[api.Question]
	want(t, s.Get(path+"/questions"), 200).JSON(t, &questions)
	if len(questions.Data) != 1 || questions.Data[0].Text != "Who?" || questions.Data[0].Node != "who" || questions.Data[0].Run != r.ID {
		t.Fatalf("the questions are %+v", questions)
	}
	who := questions.Data[0].ID
	refused(t, s.Post(path+"/answers", `{}`), 400, "invalid_request", "questions")
	refused(t, s.Post(path+"/answers", `{"nope": "x"}`), 404, "question_not_found", "nope", "waiting: who")
	refused(t, s.Post(path+"/answers", fmt.Sprintf(`{%q: {}}`, who)), 400, "invalid_request", who)
	refused(t, s.Post(path+"/answers", fmt.Sprintf(`{%q: null}`, who)), 400, "invalid_request", who)
	refused(t, s.Post(path+"/answers", fmt.Sprintf(`{%q: ["Ada", 1]}`, who)), 400, "invalid_request", who)
	refused(t, s.Post(path+"/answers", fmt.Sprintf(`{%q: ["Ada"]}`, who)), 400, "invalid_request", "one answer is expected, and not a list")
	refused(t, s.Post(path+"/answers", fmt.Sprintf(`{%q: "Ada", "nope": "x"}`, who)), 404, "question_not_found", "nope")
	// Of several at once one is taken.
	var took, conflicts atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch a := s.Post(path+"/answers", fmt.Sprintf(`{%q: "Ada"}`, who)); {
			case a.Status == http.StatusOK:
				took.Add(1)
			case a.Status == http.StatusConflict && a.Code() == "conflict":
				conflicts.Add(1)
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	all.Wait()
	if took.Load() != 1 || conflicts.Load() != 7 {
		t.Errorf("%d are taken, %d are conflicts", took.Load(), conflicts.Load())
	}
	rest(t, s, r.ID)
	refused(t, s.Post(path+"/answers", fmt.Sprintf(`{%q: "Bob"}`, who)), 409, "conflict", who)
	want(t, s.Get(path+"/questions"), 200).JSON(t, &questions)
	if len(questions.Data) != 1 || questions.Data[0].Text != "Greet Ada?" || strings.Join(questions.Data[0].Options, " ") != "yes no" {
		t.Fatalf("the questions are %+v", questions)
	}
	review := questions.Data[0].ID
	answer(t, s, r.ID, "review", "yes")
	if done := get(t, s, r.ID); done.Status != "done" || done.Output != "Hello, Ada 1." || len(done.Pending) != 0 {
		t.Errorf("it is %+v", done)
	}
	for _, id := range []string{who, review} {
		a := s.Post(path+"/answers", fmt.Sprintf(`{%q: "no"}`, id))
		refused(t, a, 409, "conflict")
		if strings.Contains(a.Body, "loki --") {
			t.Errorf("the hint names the command line: %s", a.Body)
		}
	}
}

// TestAnswerCanceled: the questions of a run that was canceled are closed until it is resumed.
func TestAnswerCanceled(t *testing.T) {
	s := start(t)
	r := begin(t, s, "asker", `{"wait": 60}`)
	path := "/v1/runs/" + r.ID
	want(t, s.Post(path+"/cancel", ""), 200)
	var questions api.List[api.Question]
	if want(t, s.Get(path+"/questions"), 200).JSON(t, &questions); len(questions.Data) != 0 {
		t.Errorf("the questions are %+v", questions)
	}
	refused(t, s.Post(path+"/answers", `{"who": "Ada"}`), 409, "conflict", "was canceled", "POST "+path+"/resume")
	want(t, s.Post(path+"/resume", ""), 200)
	rest(t, s, r.ID)
	answer(t, s, r.ID, "who", "Ada")
}

// TestCancelUndoes: a run that is canceled at work or while it waits undoes what it did, unless its request says no. Its secrets are not shown.
func TestCancelUndoes(t *testing.T) {
	for name, test := range map[string]struct {
		body   string
		undone *api.Undone
	}{
		"waiting": {`{"prompt": "ask", "wait": 60}`, &api.Undone{Nodes: 1}},
		"working": {`{"prompt": "work"}`, &api.Undone{Nodes: 1}},
		"kept":    {`{"prompt": "ask", "wait": 60, "no_compensate": true}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			path := "/v1/runs/" + begin(t, s, "saga", test.body).ID
			if name == "working" {
				begun(t, s, "work")
			}
			var r api.Run
			if want(t, s.Post(path+"/cancel", ""), 200).JSON(t, &r); r.Status != "canceled" || r.Active || !reflect.DeepEqual(r.Undone, test.undone) {
				t.Errorf("canceled it is %+v, undone %+v", r, r.Undone)
			}
			refused(t, s.Post(path+"/cancel", ""), 409, "conflict")
			for _, of := range []string{"", "/state", "/steps"} {
				if a := want(t, s.Get(path+of), 200); strings.Contains(a.Body, "silver") {
					t.Errorf("%s shows the secret: %s", of, a.Body)
				}
			}
			a := s.Get(path + "/state")
			if undone := strings.Contains(a.Body, `canceled the ***token***`); undone != (test.undone != nil) {
				t.Errorf("the state is %s", a.Body)
			}
			if test.undone == nil {
				want(t, s.Post(path+"/resume", ""), 200)
				return
			}
			refused(t, s.Post(path+"/resume", ""), 409, "conflict", "was undone", "/fork")
		})
	}
}

// TestLife cancels, resumes, forks and deletes runs.
func TestLife(t *testing.T) {
	s := start(t)
	working := begin(t, s, "gate", `{"prompt": "x"}`)
	begun(t, s, "x")
	path := "/v1/runs/" + working.ID
	refused(t, s.Do("DELETE", path, ""), 409, "conflict", "cancel")
	refused(t, s.Post(path+"/resume", ""), 409, "conflict")
	var r api.Run
	if want(t, s.Post(path+"/cancel", ""), 200).JSON(t, &r); r.Status != "canceled" || r.Active {
		t.Errorf("canceled it is %+v", r)
	}
	refused(t, s.Post(path+"/cancel", ""), 409, "conflict")
	open(t, s, "x")
	refused(t, s.Post(path+"/resume", `{"model": "builtin:script/rules.yaml"}`), 404, "model_not_found")
	want(t, s.Post(path+"/resume", ""), 200)
	if done := rest(t, s, working.ID); done.Status != "done" || done.Output != "one two x" {
		t.Errorf("resumed it is %+v", done)
	}
	refused(t, s.Post(path+"/resume", ""), 409, "conflict")
	want(t, s.Do("DELETE", path, ""), http.StatusNoContent)
	for _, a := range []string{"", "/events", "/state", "/questions", "/steps", "/graph"} {
		refused(t, s.Get(path+a), 404, "run_not_found")
	}
	refused(t, s.Do("DELETE", path, ""), 404, "run_not_found")

	// One that waits is canceled before it is forgotten.
	asks := begin(t, s, "asker", `{"wait": 60}`)
	path = "/v1/runs/" + asks.ID
	refused(t, s.Do("DELETE", path, ""), 409, "conflict")
	answer(t, s, asks.ID, "who", "Ada")
	// A fork begins where the old run was, with another state.
	var forked api.Run
	a := want(t, s.Post(path+"/fork", `{"step": 1, "set": {"n": {"a": [1]}, "who": "Bob"}}`), http.StatusCreated)
	if a.JSON(t, &forked); a.Header.Get("Location") != "/v1/runs/"+forked.ID || forked.ID == asks.ID || forked.Parent != asks.ID+"@1" {
		t.Errorf("%v %+v", a.Header, forked)
	}
	rest(t, s, forked.ID)
	answer(t, s, forked.ID, "review", "yes")
	if done := get(t, s, forked.ID); done.Status != "done" || done.Output != `Hello, Bob {"a":[1]}.` {
		t.Errorf("it is %+v", done)
	}
	if old := get(t, s, asks.ID); old.Status != "suspended" || len(old.Pending) != 1 {
		t.Errorf("the old run is %+v", old)
	}
	var changes api.List[api.Change]
	want(t, s.Get(path+"/diff?a=1&b="+forked.ID+"@0"), 200).JSON(t, &changes)
	if len(changes.Data) != 2 || changes.Data[0].Key != "n" || string(changes.Data[0].After) != `{"a":[1]}` {
		t.Errorf("the changes are %+v", changes)
	}
	refused(t, s.Post(path+"/fork", `{"step": 9}`), 404, "step_not_found")
	refused(t, s.Post(path+"/fork", `{"set": {"": 1}}`), 400, "invalid_request", "set")
	refused(t, s.Post(path+"/fork", `{"step": -1}`), 400, "invalid_request", "step")
	refused(t, s.Post(path+"/fork", `{"step": 1, "model": "builtin:script/rules.yaml"}`), 404, "model_not_found")
	refused(t, s.Post("/v1/runs/"+forked.ID+"/fork", ""), 400, "invalid_request", "/fork")
	want(t, s.Post(path+"/cancel", ""), 200)
	want(t, s.Do("DELETE", path, ""), http.StatusNoContent)
	plain := begin(t, s, "guide", `{"prompt": "go", "variables": {"place": "Graz"}, "wait": 60}`)
	refused(t, s.Post("/v1/runs/"+plain.ID+"/fork", ""), 400, "invalid_request", "no super-steps")
	for _, of := range []string{"/state", "/graph"} {
		refused(t, s.Get("/v1/runs/"+plain.ID+of), 409, "conflict")
	}
	refused(t, s.Post("/v1/runs/"+plain.ID+"/resume", ""), 409, "conflict")
}
