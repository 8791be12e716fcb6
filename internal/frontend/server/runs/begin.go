package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/base/web"
	"loki/internal/conversation/launch/background"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/catalog"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/webhook"
)

// beginRequest begins a run.
type beginRequest struct {
	Name string `path:"name" maxLength:"256" doc:"of the agent"`
	Body api.RunRequest
}

func (e *endpoints) begin(ctx context.Context, in *beginRequest) (*rest.Reply, error) {
	if err := mayConsent(ctx, in.Body.Yes); err != nil {
		return nil, err
	}
	job, err := e.job(ctx, in)
	if err != nil {
		return nil, err
	}
	hooks, err := hooks(in.Body.Webhooks, web.ParseAllowed(e.App.Env.Get("LOKI_FETCH_ALLOW")))
	if err != nil {
		return nil, err
	}
	id, err := e.enter(ctx, func() (string, error) { return e.Manager.Start(ctx, job) })
	if err != nil {
		return nil, err
	}
	if len(hooks) > 0 {
		if err := e.Desk.Add(id, hooks...); err != nil { // no subscriber would hear of the run
			return nil, errors.Join(err, e.Manager.Cancel(context.WithoutCancel(ctx), id))
		}
	}
	where := "/v1/runs/" + id
	rest.Commit(ctx, where)
	if in.Body.Stream || rest.WantsStream(ctx) {
		reply := rest.Stream(func(ctx context.Context, w *stream.Writer) error { return e.watch(ctx, w, id, 0, true) })
		return reply.With("Location", where), nil
	}
	if in.Body.Wait > 0 {
		if err := e.await(ctx, id, time.Duration(in.Body.Wait*float64(time.Second))); err != nil {
			return nil, err
		}
	}
	r, err := e.now(ctx, id)
	if err != nil {
		return nil, err
	}
	return rest.JSON(http.StatusCreated, r).With("Location", where), nil
}

// hooks returns the webhooks of a request. The server notifies them by the rules of its fetch tool.
func hooks(asked []api.Webhook, allowed web.Allowed) (list []webhook.Hook, err error) {
	for i, w := range asked {
		where := "webhooks[" + strconv.Itoa(i) + "].url"
		u, err := url.Parse(w.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, rest.Invalid(where, "%s: not an address that begins with https:// or http://", where)
		}
		if allowed.Never(u.Hostname()) {
			return nil, rest.Invalid(where, "%s: %s is not an address of the public internet, and would never be notified", where, u.Hostname()).
				WithHint("this server does not send to private addresses; its operator can allow the address")
		}
		list = append(list, webhook.Hook{URL: w.URL, Secret: w.Secret, Events: w.Events})
	}
	return list, nil
}

// mayConsent refuses consent beforehand of a caller who may not answer what tools ask.
func mayConsent(ctx context.Context, yes bool) error {
	if yes && !rest.Subject(ctx).Allows(auth.WriteRuns) {
		return rest.Forbidden("the key lacks the scope %s, which the member yes needs", auth.WriteRuns)
	}
	return nil
}

// job returns the job of an agent.
func (e *endpoints) job(ctx context.Context, in *beginRequest) (run.Job, error) {
	of, err := e.agent(ctx, in.Name)
	if err == nil {
		err = e.checkModel(in.Body.Model)
	}
	if err != nil {
		return run.Job{}, err
	}
	if of.Graph == nil && strings.TrimSpace(in.Body.Prompt) == "" {
		return run.Job{}, rest.Invalid("prompt", "prompt: the text is empty")
	}
	r := in.Body
	return e.App.Background.Job(ctx, background.Run{
		Agent: of, Prompt: r.Prompt, Variables: r.Variables, Model: r.Model, Events: e.Manager.Events(),
		Terms: run.Terms{Yes: r.Yes, NoStream: r.NoStream, NoCompensate: r.NoCompensate, Budget: bounds(r.Budget)},
		Start: background.Start{Rules: r.Rules, Owner: e.Access.Owner(rest.Subject(ctx))},
	})
}

// bounds returns a budget, which may be nil, as runs have it.
func bounds(b *api.RunBudget) graph.Budget {
	if b == nil {
		return graph.Budget{}
	}
	return graph.Budget{USD: b.USD, Tokens: b.Tokens, Duration: time.Duration(b.Seconds * float64(time.Second))}
}

// checkModel refuses a model that does not exist; "" names none.
func (e *endpoints) checkModel(id string) error {
	if id == "" {
		return nil
	}
	_, err := e.App.Models.ServedModel(id, catalog.Chat)
	return err
}

// enter begins or resumes a run, if the caller has not too many at work.
func (e *endpoints) enter(ctx context.Context, begin func() (string, error)) (string, error) {
	return e.enterAs(ctx, rest.Subject(ctx), begin)
}

func (e *endpoints) enterAs(ctx context.Context, who auth.Identity, begin func() (string, error)) (string, error) {
	if e.MaxPerSubject == 0 || who.Anonymous() {
		return begin()
	}
	e.beginning.Lock()
	defer e.beginning.Unlock()
	infos, err := e.store.Runs(ctx, run.Query{Unfinished: true, View: &auth.View{Subject: who.Subject}})
	if err != nil {
		return "", err
	}
	working := 0
	for _, info := range infos {
		if info.Active || info.Queued {
			working++
		}
	}
	if working >= e.MaxPerSubject {
		return "", &rest.Error{
			Status: http.StatusTooManyRequests, Code: "limit_reached", Message: who.Subject + " has " + strconv.Itoa(working) + " runs at work, and the limit is " + strconv.Itoa(e.MaxPerSubject),
			Hint: "wait until one has ended, or cancel one; the server's configuration sets the limit: api.limits.max_runs_per_subject", RetryAfter: 10 * time.Second,
		}
	}
	return begin()
}

// answerRequest answers questions. An answer is a text, a number or a boolean, which is its text, or a list of texts where the
// question takes any number of its options.
type answerRequest struct {
	one
	Force bool                       `query:"force" doc:"although the agent has changed, or the session has continued: the answer is put after what was said since"`
	Via   string                     `query:"via" doc:"page where a person answers on the page of the server; what answers is on record"`
	Body  map[string]json.RawMessage `doc:"answers by the ids of the questions: a text, or a list of texts where any number of options may be chosen; a number or a boolean counts as its text"`
}

func (e *endpoints) answer(ctx context.Context, in *answerRequest) (*rest.Reply, error) {
	info, theirs, err := e.toAnswer(ctx, in.ID, slices.Collect(maps.Keys(in.Body))...)
	if err != nil {
		return nil, err
	}
	if in.Force && theirs {
		return nil, rest.Forbidden("only a subject that may change run %s can resume it by force", info.ID)
	}
	if len(in.Body) == 0 {
		return nil, rest.Invalid("", "the body has no answer: {\"QUESTION_ID\": \"ANSWER\"} is expected").WithHint("GET /v1/runs/%s/questions lists the questions", info.ID)
	}
	given := make(map[string]ask.Given, len(in.Body))
	for id, doc := range in.Body {
		var ok bool
		if given[id], ok = answerOf(doc); !ok {
			return nil, rest.Invalid(id, "%s: an answer is a text, a number, true or false, or a list of texts", id)
		}
	}
	answers, lists := ask.Texts(given)
	if len(lists) > 0 {
		pending, err := e.store.Pending(ctx, info.ID)
		if err == nil {
			err = run.NotLists(pending, lists)
		}
		if err != nil {
			return nil, err
		}
	}
	from := run.Reply{Via: event.ViaREST}
	if in.Via == string(event.ViaPage) {
		from.Via = event.ViaPage
	}
	if s := rest.Subject(ctx).Subject; s != auth.Anonymous {
		from.By = s
	}
	status := http.StatusOK
	if later, err := e.Manager.Answer(ctx, info.ID, manager.Answers{
		Texts: answers, Who: e.answerer(ctx), Groups: rest.Subject(ctx).Groups, From: from, Force: in.Force,
	}); err != nil {
		return nil, err
	} else if later {
		status = http.StatusAccepted
	}
	rest.Commit(ctx, "/v1/runs/"+info.ID)
	r, err := e.now(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	if theirs {
		r = &api.Run{ID: r.ID, Kind: r.Kind, Agent: r.Agent, Status: r.Status, Active: r.Active, Started: r.Started, Updated: r.Updated}
	}
	return rest.JSON(status, r), nil
}

// answerOf returns the answer that a JSON value is. A number or a boolean is its text, as in a file of answers.
func answerOf(doc json.RawMessage) (answer ask.Given, ok bool) {
	switch doc = bytes.TrimSpace(doc); {
	case len(doc) == 0 || doc[0] == '{' || doc[0] == 'n': // an object, or null
		return answer, false
	case doc[0] == '"':
		return answer, json.Unmarshal(doc, &answer.Text) == nil
	case doc[0] != '[':
		return ask.Given{Text: string(doc)}, true
	}
	var texts []*string
	if json.Unmarshal(doc, &texts) != nil || slices.Contains(texts, nil) {
		return answer, false
	}
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = *text
	}
	return ask.Given{Text: ask.JoinAnswers(list), List: true}, true
}

// resumeRequest resumes a run.
type resumeRequest struct {
	one
	Body *api.Resumption
}

func (e *endpoints) resume(ctx context.Context, in *resumeRequest, info run.Info) (*api.Run, error) {
	c, err := e.continuation(ctx, info.ID, in.Body)
	if err != nil {
		return nil, err
	}
	_, err = e.enter(ctx, func() (string, error) { return e.Manager.Resume(ctx, run.Resumption{Continuation: c}) })
	if err != nil {
		return nil, err
	}
	rest.Commit(ctx, "/v1/runs/"+info.ID)
	return e.now(ctx, info.ID)
}

// continuation returns how to resume a run.
func (e *endpoints) continuation(ctx context.Context, id string, r *api.Resumption) (run.Continuation, error) {
	c := run.Continuation{ID: id, Asker: ask.Unavailable{}}
	if r == nil {
		return c, nil
	}
	c.Model, c.Force, c.Yes, c.NoStream, c.Keep = r.Model, r.Force, r.Yes, r.NoStream, r.NoCompensate
	c.Budget = bounds(r.Budget)
	var err error
	if c.Set, err = members(r.Set); err != nil {
		return c, err
	}
	if err := mayConsent(ctx, r.Yes); err != nil {
		return c, err
	}
	return c, e.checkModel(r.Model)
}

// forkRequest begins a run from a step of another one.
type forkRequest struct {
	one
	Body *api.Fork
}

func (e *endpoints) fork(ctx context.Context, in *forkRequest, info run.Info) (*rest.Reply, error) {
	body := in.Body
	if body == nil {
		body = new(api.Fork)
	}
	c, err := e.continuation(ctx, info.ID, &body.Resumption)
	if err != nil {
		return nil, err
	}
	f := run.Fork{Continuation: c, Step: -1, Owner: e.Access.Owner(rest.Subject(ctx))}
	if body.Step != nil {
		f.Step = *body.Step
	}
	id, err := e.enter(ctx, func() (string, error) { return e.Manager.Fork(ctx, f) })
	if err != nil {
		return nil, err
	}
	rest.Commit(ctx, "/v1/runs/"+id)
	r, err := e.now(ctx, id)
	if err != nil {
		return nil, err
	}
	return rest.JSON(http.StatusCreated, r).With("Location", "/v1/runs/"+id), nil
}

// members returns changes of the state, ascending by key.
func members(set map[string]json.RawMessage) ([]value.Member, error) {
	var list []value.Member
	for key, text := range set {
		v, err := value.ParseJSON(bytes.TrimSpace(text))
		if err != nil || key == "" {
			return nil, rest.Invalid("set", "set: the value of %q cannot be a value of the state", key)
		}
		list = append(list, value.Member{Name: key, Value: v})
	}
	slices.SortFunc(list, func(a, b value.Member) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return list, nil
}
