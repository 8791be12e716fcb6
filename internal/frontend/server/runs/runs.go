// Package runs serves the runs of agents: it begins them, shows them and what happens in them, and resumes
// them. The work itself is the manager's: a run belongs to the server, and not to the connection that
// began it.
package runs

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/agent/team/job"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/server/jobs"
	"loki/internal/frontend/server/messages"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/webhook"
)

// Service is what the endpoints work with.
type Service struct {
	App           *app.App
	Manager       *manager.Manager
	Desk          *webhook.Desk // of the webhooks of runs
	Jobs          *job.Registry
	Access        auth.Access
	MaxPerSubject int // runs of one subject that are at work or wait for their turn; 0 means no bound
}

// endpoints are those of a service.
type endpoints struct {
	Service
	store run.Store
	api   *rest.API
	bulk  bulkJobs

	beginning sync.Mutex // held from the count of a subject's runs to the record of a new one
}

const tag = "Runs"

// Register adds the endpoints. Enter begins a run of a subject in another way, if it has not too many at work.
func Register(a *rest.API, s Service) (enter func(ctx context.Context, who auth.Identity, begin func() (string, error)) (string, error)) {
	e := &endpoints{Service: s, store: s.Manager.Store(), api: a}
	read := func(path, summary string) rest.Operation {
		return rest.Operation{Method: http.MethodGet, Path: path, Summary: summary, Tag: tag, Scope: auth.ReadRuns}
	}
	write := func(path, action, summary string) rest.Operation {
		return rest.Operation{Method: http.MethodPost, Path: path, Summary: summary, Tag: tag, Scope: auth.WriteRuns, Idempotent: true, Large: true, Action: action}
	}
	e.agents(a)

	begin := write("/v1/agents/{name}/runs", audit.RunStart, "Begin a run of an agent")
	begin.Scope, begin.Status, begin.Answer, begin.Events = auth.RunAgents, http.StatusCreated, api.Run{}, eventNames()
	rest.Register(a, begin, e.begin)

	rest.Register(a, read("/v1/runs", "List runs, newest first"), e.list)
	rest.Register(a, read("/v1/runs/{id}", "A run with its path"), rest.About(e.find, e.show))
	rest.Register(a, read("/v1/runs/{id}/state", "The state after a super-step"), rest.About(e.find, e.state))
	rest.Register(a, read("/v1/runs/{id}/diff", "How two states differ"), rest.About(e.find, e.diff))
	rest.Register(a, read("/v1/runs/{id}/export", "What was said in a run, as a document"), rest.About(e.find, e.export))
	graph := read("/v1/runs/{id}/graph", "The graph, with where the run stands")
	graph.Answer = api.Graph{}
	rest.Register(a, graph, rest.About(e.find, e.graph))
	rest.Register(a, read("/v1/runs/{id}/steps", "What is on record of models, tools, scripts and answers"), rest.About(e.find, e.steps))
	rest.Register(a, read("/v1/runs/{id}/steps/{number}", "A step with its result"), rest.About(e.find, e.step))
	rest.Register(a, read("/v1/runs/{id}/questions", "The questions that wait"), e.questions)
	rest.Register(a, read("/v1/questions", "The questions of all runs that wait"), e.allQuestions)
	events := read("/v1/runs/{id}/events", "The events of a run, from the beginning until its end")
	events.Watch, events.Events = true, eventNames()
	rest.Register(a, events, rest.About(e.find, e.events))

	answer := write("/v1/runs/{id}/answers", audit.RunAnswer, "Answer questions, by their ids, and resume")
	answer.Answer = api.Run{}
	rest.Register(a, answer, e.answer)
	signal := write("/v1/runs/{id}/signals/{name}", audit.RunSignal, "Give a run a signal that one of its nodes waits for")
	signal.Keyed = true
	rest.Register(a, signal, rest.About(e.change, e.signal))
	rest.Register(a, write("/v1/runs/{id}/resume", audit.RunResume, "Resume a run that did not end"), rest.About(e.change, e.resume))
	rest.Register(a, write("/v1/runs/{id}/cancel", audit.RunCancel, "Cancel a run"), rest.About(e.change, e.cancel))
	many := write("/v1/runs/bulk", audit.RunBulk, "Resume, cancel or delete many runs")
	many.Status = http.StatusAccepted
	rest.Register(a, many, e.beginBulk)
	rest.Register(a, read("/v1/bulk/{id}", "How far the work on many runs has come"), e.showBulk)
	fork := write("/v1/runs/{id}/fork", audit.RunFork, "Begin a new run from a super-step of this one")
	fork.Status = http.StatusCreated
	rest.Register(a, fork, rest.About(e.find, e.fork))
	jobs.Register(a, jobs.Options{
		Jobs: s.Jobs, Path: "/v1/runs/{id}", Tag: tag, Read: auth.ReadRuns, Write: auth.WriteRuns, Action: audit.RunCancel,
		Find: func(ctx context.Context, id string, change bool) (string, string, error) {
			find := e.find
			if change {
				find = e.change
			}
			info, err := find(ctx, id)
			return info.ID, "", err
		},
	})
	messages.Register(a, messages.Options{
		Manager: s.Manager, Path: "/v1/runs/{id}", Tag: tag, Write: auth.WriteRuns, Action: audit.RunSignal,
		Find: func(ctx context.Context, id string) (string, error) {
			info, err := e.change(ctx, id)
			return info.ID, err
		},
	})
	remove := write("/v1/runs/{id}", audit.RunDelete, "Forget a run that has ended")
	remove.Method, remove.Idempotent = http.MethodDelete, false
	rest.Register(a, remove, rest.About(e.change, e.remove))
	return e.enterAs
}

// one is a request about one run.
type one struct {
	ID string `path:"id" maxLength:"64" doc:"id of the run, or a beginning that means one run"`
}

// Of returns the id.
func (o *one) Of() string { return o.ID }

// find returns the run that an id means, if the caller may see it.
func (e *endpoints) find(ctx context.Context, id string) (run.Info, error) {
	view := e.Access.View(rest.Subject(ctx))
	info, err := e.store.Info(ctx, id)
	if fault.CodeOf(err) == fault.Usage && id != "" { // of several, those of others do not count
		if id, err = e.among(ctx, view, id); err != nil {
			return run.Info{}, err
		}
		info, err = e.store.Info(ctx, id)
	}
	switch code := fault.CodeOf(err); {
	case err == nil && view.Includes(info.Owner):
		return info, nil
	case err == nil || code == fault.NotFound || code == fault.Usage:
		return run.Info{}, rest.NotFound("run", id)
	}
	return run.Info{}, err
}

// among returns the id of the only run in a view that a beginning means. The error names several, and no run that is not in the view.
func (e *endpoints) among(ctx context.Context, view *auth.View, typed string) (string, error) {
	prefix, err := run.ParseID(typed)
	if err != nil {
		return typed, err
	}
	infos, err := e.store.Runs(ctx, run.Query{View: view})
	var ids []string
	for _, info := range infos {
		if strings.HasPrefix(info.ID, prefix) {
			ids = append(ids, info.ID)
		}
	}
	switch {
	case err != nil:
		return typed, err
	case len(ids) == 0:
		return typed, rest.NotFound("run", typed)
	}
	return run.PickID(typed, ids)
}

// runGone returns the error of a cursor whose run was deleted.
func runGone() *rest.Error {
	return rest.Invalid("cursor", "cursor: the last run of the page before was deleted").WithHint("start again with the first page")
}

// runOf returns the id of the run that the page before ended with. The beginning of an id is refused, since it would
// reveal runs of other subjects.
func runOf(cursor string) (id string, err error) {
	if id, err = rest.Cursor(cursor); err != nil || id == "" {
		return "", err
	}
	if whole, err := run.ParseID(id); err != nil || whole != id || len(id) != run.IDLength {
		return "", rest.InvalidCursor()
	}
	return id, nil
}

// findAsked is find for a request about the questions of the run, which those who are to answer one may see,
// too. theirs says that they see no more of the run.
func (e *endpoints) findAsked(ctx context.Context, id string) (info run.Info, theirs bool, err error) {
	if info, err = e.find(ctx, id); err == nil {
		return info, false, nil
	}
	hidden, infoErr := e.store.Info(ctx, id)
	if infoErr != nil {
		return info, false, err
	}
	pending, pendingErr := e.store.Pending(ctx, hidden.ID)
	if pendingErr != nil || !slices.ContainsFunc(pending, isFor(rest.Subject(ctx))) {
		return info, false, err
	}
	return hidden, true, nil
}

// isFor returns a function that reports whether a question names who as one who is to answer it.
func isFor(who auth.Identity) func(run.Pending) bool {
	return func(p run.Pending) bool { return who.IsOneOf(p.Assignees) }
}

// toAnswer is findAsked for a request that answers questions, any if none is named: a run without an owner becomes the caller's. One of whose
// questions the caller was to answer is a [*run.RefusedError] once that has an answer.
func (e *endpoints) toAnswer(ctx context.Context, id string, questions ...string) (info run.Info, theirs bool, err error) {
	info, theirs, err = e.findAsked(ctx, id)
	switch {
	case err == nil && !theirs:
		info, err = e.change(ctx, id)
	case err != nil:
		err = cmp.Or(e.answeredError(ctx, id, questions), err)
	}
	return info, theirs, err
}

// answeredError returns the failure of a second answer by a subject who sees no more of a run than the questions that were for it. It is nil
// if no question was.
func (e *endpoints) answeredError(ctx context.Context, id string, questions []string) error {
	info, err := e.store.Info(ctx, id)
	if err != nil {
		return nil
	}
	answered, err := e.store.Answered(ctx, info.ID)
	its := isFor(rest.Subject(ctx))
	for _, p := range answered {
		if err == nil && its(p) && (len(questions) == 0 || slices.Contains(questions, p.ID)) {
			return run.AnsweredBefore(ctx, e.store, info.ID, p.ID)
		}
	}
	return nil
}

// answerer returns the subject that answers questions, "" for one who may answer those of all: an administrator,
// and everyone where no key is asked for.
func (e *endpoints) answerer(ctx context.Context) string {
	who := rest.Subject(ctx)
	if e.Access.View(who) == nil {
		return ""
	}
	return who.Subject
}

// ToAnswer returns the run that an id means to a caller who answers all questions for which it waits, by the rules of
// the endpoint for answers. Service.App is not needed.
func ToAnswer(ctx context.Context, s Service, id string) (run.Info, error) {
	if !rest.Subject(ctx).Allows(auth.WriteRuns) {
		return run.Info{}, rest.Forbidden("the key lacks the scope %s, which answers need", auth.WriteRuns)
	}
	e := &endpoints{Service: s, store: s.Manager.Store()}
	info, _, err := e.toAnswer(ctx, id)
	if err != nil {
		return info, err
	}
	return info, s.Manager.MayAnswer(ctx, info.ID, e.answerer(ctx), nil, rest.Subject(ctx).Groups...)
}

// change is find for a request that changes the run: one without an owner becomes the caller's.
func (e *endpoints) change(ctx context.Context, id string) (run.Info, error) {
	info, err := e.find(ctx, id)
	if err != nil || info.Owner != nil {
		return info, err
	}
	who := e.Access.Owner(rest.Subject(ctx))
	if who == nil {
		return info, nil
	}
	if info.Owner, err = e.store.Claim(ctx, info.ID, *who); err != nil {
		return info, err
	}
	if !e.Access.View(rest.Subject(ctx)).Includes(info.Owner) { // another one was faster
		return info, rest.NotFound("run", id)
	}
	return info, nil
}

// queuedRuns returns the runs that wait for their turn.
func (e *endpoints) queuedRuns() map[string]bool {
	queued := make(map[string]bool)
	for _, a := range e.Manager.Active() {
		if a.Queued {
			queued[a.ID] = true
		}
	}
	return queued
}

// listRequest asks for a list of runs.
type listRequest struct {
	rest.Page
	Agent  string    `query:"agent" maxLength:"256" doc:"of this agent only; of chats, of this role"`
	Status []string  `query:"status" doc:"with one of these only, separated by commas; queued: those running that wait for their turn" example:"suspended,interrupted"`
	Since  time.Time `query:"since" doc:"that began then or later"`
}

// statuses are the ones that a run may have in a list.
var statuses = []string{"running", "suspended", "canceled", "failed", "done", "interrupted", "unrecorded", "damaged", waiting}

// waiting chooses the running runs of a list that wait for their turn.
const waiting = "queued"

// readAtOnce is how many runs are read from the store at once while looking for those of a page.
const readAtOnce = 200

func (e *endpoints) list(ctx context.Context, in *listRequest) (*api.List[api.Run], error) {
	place, err := runOf(in.Cursor)
	if err != nil {
		return nil, err
	}
	for _, status := range in.Status {
		if !slices.Contains(statuses, status) {
			return nil, rest.Invalid("status", "status: %q is not one of %s", status, strings.Join(statuses, ", "))
		}
	}
	queued := e.queuedRuns()
	q := run.Query{Agent: in.Agent, View: e.Access.View(rest.Subject(ctx)), Before: place, Limit: readAtOnce}
	if len(in.Status) > 0 && !slices.Contains(in.Status, "done") {
		q.Unfinished = true
	}
	var page []api.Run
	for {
		infos, err := e.store.Runs(ctx, q)
		if fault.CodeOf(err) == fault.NotFound && q.Before == place {
			return nil, runGone()
		}
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			if info.Started.Before(in.Since) && !info.Damaged {
				return api.NewList(page, ""), nil // all others are older
			}
			now := summary.Status(info)
			wait := now == string(run.Running) && (info.Queued || queued[info.ID]) && slices.Contains(in.Status, waiting)
			if len(in.Status) > 0 && !slices.Contains(in.Status, now) && !wait {
				continue
			}
			if len(page) == in.Limit {
				return api.NewList(page, rest.NewCursor(page[len(page)-1].ID)), nil
			}
			r := summary.Of(info)
			r.Queued = r.Queued || queued[r.ID]
			if info.Status.Resumable() && !info.Damaged {
				waiting, err := e.store.Pending(ctx, r.ID)
				if err != nil && fault.CodeOf(err) != fault.NotFound { // forgotten meanwhile
					return nil, err
				}
				r.Waiting = len(waiting)
				if r.Waits, err = summary.Waits(ctx, e.store, info); err != nil {
					return nil, err
				}
			}
			page = append(page, r)
		}
		if len(infos) < readAtOnce {
			return api.NewList(page, ""), nil
		}
		q.Before = infos[len(infos)-1].ID
	}
}

func (e *endpoints) show(ctx context.Context, _ *one, info run.Info) (*api.RunDetail, error) {
	h, err := e.store.History(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	d, err := summary.Detail(ctx, e.store, h)
	if err != nil {
		return nil, err
	}
	d.Queued = d.Queued || e.queuedRuns()[d.ID]
	deliveries, err := e.Desk.Deliveries(d.ID)
	for _, n := range deliveries {
		notice := api.Notice{Event: n.Type, URL: n.Host, Tries: n.Attempts, At: n.At.UTC(), Status: n.Status, Error: n.Error}
		if !n.Again.IsZero() {
			notice.Again = new(n.Again.UTC())
		}
		d.Notices = append(d.Notices, notice)
	}
	return &d, err
}

func (e *endpoints) cancel(ctx context.Context, _ *one, info run.Info) (*api.Run, error) {
	if err := e.Manager.Cancel(ctx, info.ID); err != nil {
		return nil, err
	}
	return e.now(ctx, info.ID)
}

// now returns a run as it is now.
func (e *endpoints) now(ctx context.Context, id string) (*api.Run, error) {
	info, err := e.store.Info(ctx, id)
	if err != nil {
		return nil, err
	}
	waiting, err := e.store.Pending(ctx, id)
	if err != nil {
		return nil, err
	}
	r := summary.Of(info)
	r.Queued, r.Waiting = r.Queued || e.queuedRuns()[id], len(waiting)
	r.Waits, err = summary.Waits(ctx, e.store, info)
	return &r, err
}

func (e *endpoints) remove(ctx context.Context, _ *one, info run.Info) (*rest.None, error) {
	deleted, err := e.store.Delete(ctx, info.ID)
	if err == nil && len(deleted) == 0 {
		err = rest.Conflict("run %s is %s: only runs that have ended can be deleted", info.ID, summary.Status(info)).WithHint("cancel it first")
	}
	return &rest.None{}, err
}
