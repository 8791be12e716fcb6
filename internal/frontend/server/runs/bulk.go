package runs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/bulk"
)

const (
	mostBulkRuns = 10_000 // of one request
	mostBulkJobs = 100    // that are kept
	bulkAtOnce   = 8      // runs of a job
	mostFailures = 100    // that a job lists
)

// bulkJobs are the jobs that work on many runs. They end with the server.
type bulkJobs struct {
	mu   sync.Mutex
	jobs map[string]*bulkJob
	ids  []string // in their order
}

type bulkJob struct {
	api.BulkJob        // guarded by the mutex of the jobs
	subject     string // whose it is
}

// show returns a job as it is now.
func (b *bulkJobs) show(j *bulkJob) *api.BulkJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := j.BulkJob
	now.Errors = slices.Clone(now.Errors)
	return &now
}

// add keeps a job, and forgets the oldest ones that are over.
func (b *bulkJobs) add(j *bulkJob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs == nil {
		b.jobs = make(map[string]*bulkJob)
	}
	b.jobs[j.ID] = j
	b.ids = append(b.ids, j.ID)
	for len(b.ids) > mostBulkJobs && b.jobs[b.ids[0]].Status != "running" {
		delete(b.jobs, b.ids[0])
		b.ids = b.ids[1:]
	}
}

// beginBulk has many runs resumed, canceled or deleted, in the background.
func (e *endpoints) beginBulk(ctx context.Context, in *struct{ Body api.BulkRuns }) (*api.BulkJob, error) {
	filter, err := bulk.ParseFilter(in.Body.Where, time.Now())
	if err != nil {
		return nil, rest.Invalid("where", "where: %v", err).WithHint("%s", fault.HintOf(err))
	}
	who := rest.Subject(ctx)
	does := map[string]struct {
		fits func(run.Info) bool
		do   func(context.Context, run.Info) (string, error)
	}{
		"resume": {func(i run.Info) bool { return i.Status.Resumable() && !i.Active && !i.Queued && !i.Damaged }, e.resumeOne},
		"cancel": {func(i run.Info) bool { return !i.Status.Over() && !i.Damaged }, func(ctx context.Context, i run.Info) (string, error) { return "canceled", e.Manager.Cancel(ctx, i.ID) }},
		"delete": {func(i run.Info) bool { return i.Status.Over() && !i.Active }, e.deleteOne},
	}[in.Body.Action]
	q := run.Query{View: e.Access.View(who), Unfinished: in.Body.Action != "delete"}
	infos, err := filter.Select(ctx, e.store, q, 0, does.fits)
	if err != nil {
		return nil, err
	}
	slices.Reverse(infos) // the oldest first
	most := mostBulkRuns
	if in.Body.Limit > 0 {
		most = in.Body.Limit
	}
	infos = infos[:min(len(infos), most)]
	j := &bulkJob{subject: who.Subject, BulkJob: api.BulkJob{Action: in.Body.Action, Where: in.Body.Where, Status: "done", Matched: len(infos), Errors: []api.BulkFail{}}}
	if in.Body.DryRun || len(infos) == 0 {
		return &j.BulkJob, nil
	}
	j.ID, j.Status = run.NewID(), "running"
	e.bulk.add(j)
	if !e.api.Go(ctx, func(ctx context.Context) { e.work(ctx, j, infos, does.do) }) {
		return nil, &rest.Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: "the server is shutting down"}
	}
	return e.bulk.show(j), nil
}

// work does the job.
func (e *endpoints) work(ctx context.Context, j *bulkJob, infos []run.Info, do func(context.Context, run.Info) (string, error)) {
	_, err := bulk.Each(ctx, infos, bulkAtOnce, func(ctx context.Context, i run.Info) (string, error) {
		if i, err := e.change(ctx, i.ID); err != nil { // it is gone, or became another one's
			return "", err
		} else if i.Damaged {
			return "", errors.New("its record is damaged")
		}
		return do(ctx, i)
	}, func(r bulk.Result) error {
		e.bulk.mu.Lock()
		defer e.bulk.mu.Unlock()
		if j.Done++; r.Err == nil {
			return nil
		}
		if j.Failed++; len(j.Errors) < mostFailures {
			j.Errors = append(j.Errors, api.BulkFail{ID: r.ID, Error: e.App.Hide(r.Err.Error())})
		}
		return nil
	})
	e.bulk.mu.Lock()
	defer e.bulk.mu.Unlock()
	if j.Status = "done"; err != nil {
		j.Status = "stopped"
	}
}

// resumeOne resumes a run, and waits until it rests. What it asks suspends it.
func (e *endpoints) resumeOne(ctx context.Context, i run.Info) (string, error) {
	for {
		_, err := e.enter(ctx, func() (string, error) {
			return e.Manager.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: i.ID, Asker: ask.Unavailable{}}})
		})
		if full, ok := errors.AsType[*rest.Error](err); ok && full.Code == "limit_reached" { // others of the subject are at work
			if err := retry.Sleep(ctx, time.Second); err != nil {
				return "", err
			}
			continue
		}
		if err != nil {
			return "", err
		}
		info, err := e.Manager.Wait(ctx, i.ID)
		if err == nil && info.Status == run.Failed {
			err = errors.New(info.Error)
		}
		return string(info.Status), err
	}
}

func (e *endpoints) deleteOne(ctx context.Context, i run.Info) (string, error) {
	deleted, err := e.store.Delete(ctx, i.ID)
	if err == nil && len(deleted) == 0 {
		err = errors.New("it has not ended")
	}
	return "deleted", err
}

// showBulk shows a job to the one whose it is, and to those who see all runs.
func (e *endpoints) showBulk(ctx context.Context, in *one) (*api.BulkJob, error) {
	e.bulk.mu.Lock()
	j := e.bulk.jobs[in.ID]
	e.bulk.mu.Unlock()
	who := rest.Subject(ctx)
	if j == nil || j.subject != who.Subject && !e.Access.View(who).Includes(&auth.Owner{Subject: j.subject}) {
		return nil, rest.NotFound("job", in.ID).WithHint("a server keeps the newest %d jobs, until it ends", mostBulkJobs)
	}
	return e.bulk.show(j), nil
}
