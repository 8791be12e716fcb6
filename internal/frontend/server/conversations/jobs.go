package conversations

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/event"
	"loki/internal/service/auth"

	"github.com/jackc/pgx/v5"
)

// keptJobs is how many jobs that have ended are remembered.
const keptJobs = 100

// jobEvents are the server-sent events of a job.
var jobEvents = []string{"progress", "finished"}

// running is the status of a job that has not ended.
const running = "running"

// jobs are the work in the background and its results. The zero jobs are empty.
type jobs struct {
	board *board // of all servers that share a database; nil if there is one
	mu    sync.Mutex
	byID  map[string]*job
	old   []string // ids of ended jobs, in that order
}

// job is a rebuild at this server. It implements [event.Emitter].
type job struct {
	board *board // likewise

	mu      sync.Mutex
	state   api.Job
	owners  []*auth.Owner // who asked for it
	changed chan struct{} // closed and replaced when the state changes
	saved   time.Time     // when it was last written to the board
}

// begin returns the job that works on a target, and whether it is a new one, which is the job b.
func (j *jobs) begin(ctx context.Context, target string, owner *auth.Owner) (state api.Job, b *job, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.byID {
		if state, _ := one.look(); state.Target == target && state.Status == running && j.board == nil {
			one.own(owner)
			return state, nil, nil
		}
	}
	b = &job{board: j.board, owners: []*auth.Owner{owner}, changed: make(chan struct{}), saved: time.Now(), state: api.Job{
		ID: strings.ToLower(rand.Text()[:16]), Object: "job", Kind: "rag_rebuild", Target: target, Status: running, CreatedAt: time.Now().UTC(),
	}}
	if j.board != nil {
		other, err := j.board.post(ctx, b.state, owner)
		if err != nil {
			return state, nil, err
		}
		if other != nil {
			return *other, nil, nil
		}
	}
	if j.byID == nil {
		j.byID = make(map[string]*job)
	}
	j.byID[b.state.ID] = b
	return b.state, b, nil
}

// end notes that a job has ended, and forgets the oldest ones.
func (j *jobs) end(b *job) error {
	state, _ := b.look()
	var err error
	if j.board != nil {
		err = j.board.save(context.Background(), state)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.old = append(j.old, state.ID); len(j.old) > keptJobs; j.old = j.old[1:] {
		delete(j.byID, j.old[0])
	}
	return err
}

// find returns the state of a job that a view includes; changed is closed when that is another one, or when it is time to look
// again.
func (j *jobs) find(ctx context.Context, id string, view *auth.View) (state api.Job, changed <-chan struct{}, err error) {
	j.mu.Lock()
	b := j.byID[id]
	j.mu.Unlock()
	var owners []*auth.Owner
	if b != nil {
		state, changed = b.look()
		owners = b.whose()
	}
	if j.board != nil && (b == nil || !slices.ContainsFunc(owners, view.Includes)) { // another server may know more owners
		posted, all, err := j.board.find(ctx, id)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return state, nil, err
		case b == nil:
			state, owners = posted, all
		default:
			owners = all
		}
	}
	if !slices.ContainsFunc(owners, view.Includes) {
		return state, nil, rest.NotFound("job", id)
	}
	return state, changed, nil
}

// own makes the job that of an owner, too.
func (b *job) own(owner *auth.Owner) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owners = append(b.owners, owner)
}

// whose returns the owners of a job.
func (b *job) whose() []*auth.Owner {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.owners)
}

// look returns the state of a job; changed is closed when that is another one.
func (b *job) look() (state api.Job, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state = b.state
	state.Warnings = slices.Clone(state.Warnings)
	return state, b.changed
}

// set changes the state of a job.
func (b *job) set(change func(*api.Job)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.state)
	close(b.changed)
	b.changed = make(chan struct{})
	if b.board != nil && b.state.Status == running && time.Since(b.saved) >= saveEvery {
		b.saved = time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), saveEvery)
		defer cancel()
		_ = b.board.save(ctx, b.state) // or the next time
	}
}

// Emit implements [event.Emitter].
func (b *job) Emit(_ context.Context, ev event.Event) error {
	switch e := ev.Body.(type) {
	case event.IndexProgress:
		b.set(func(j *api.Job) {
			j.Progress = &api.JobProgress{Document: e.Document, Done: e.Done, Total: e.Total, Kept: e.Kept, Chunks: e.Chunks}
		})
	case event.IndexFinished:
		if e.Error == "" {
			b.set(func(j *api.Job) {
				j.Progress = &api.JobProgress{Done: e.Added + e.Kept, Total: e.Added + e.Kept, Kept: e.Kept, Chunks: e.Chunks}
			})
		}
	case event.Warning:
		b.set(func(j *api.Job) { j.Warnings = append(j.Warnings, e.Text) })
	}
	return nil
}

type rebuildInput struct {
	Name string `path:"name" doc:"of the knowledge base"`
}

// rebuild begins to read the documents of a knowledge base anew, or joins the job that does.
func (s *service) rebuild(ctx context.Context, in *rebuildInput) (*api.Job, error) {
	if err := s.checkRAG(in.Name); err != nil {
		return nil, err
	}
	state, b, err := s.jobs.begin(ctx, in.Name, s.owner(ctx))
	if err != nil || b == nil {
		return &state, err
	}
	work := func(ctx context.Context) {
		err := s.api.Protect(ctx, func() error {
			return s.App.Knowledge().Change(ctx, s.scope(b), knowledge.Edit{Name: in.Name, Rebuild: true})
		})
		b.set(func(j *api.Job) {
			j.FinishedAt = new(time.Now().UTC())
			switch {
			case err == nil:
				j.Status = "done"
			case fault.CodeOf(err) == fault.Canceled:
				j.Status = "canceled"
			default:
				j.Status = "failed"
				e := rest.FromError(ctx, err)
				j.Error = &api.ErrorBody{Code: e.Code, Message: s.App.Hide(e.Message), RequestID: rest.RequestID(ctx)}
			}
		})
		if err := s.jobs.end(b); err != nil {
			s.App.Log().WarnContext(ctx, "how a job ended could not be recorded", "job_id", state.ID, "error", err)
		}
	}
	if !s.api.Go(ctx, work) {
		b.set(func(j *api.Job) { j.Status = "canceled" })
		return nil, errors.Join(rest.ErrStopping(), s.jobs.end(b))
	}
	return &state, nil
}

type jobInput struct {
	ID string `path:"id" doc:"of the job"`
}

// job describes a job, or streams how far it has come until it ends.
func (s *service) job(ctx context.Context, in *jobInput) (*rest.Reply, error) {
	view := s.view(ctx)
	state, changed, err := s.jobs.find(ctx, in.ID, view)
	if err != nil {
		return nil, err
	}
	if !rest.WantsStream(ctx) {
		return rest.JSON(0, &state), nil
	}
	return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
		out := stream.NewEmitter(w)
		for {
			if state.Status != running {
				return out.Send(ctx, "finished", state)
			}
			if err := out.Send(ctx, "progress", state); err != nil {
				return err
			}
			var later <-chan time.Time
			if changed == nil { // it is another server's
				later = time.After(saveEvery)
			}
			select {
			case <-changed:
			case <-later:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if state, changed, err = s.jobs.find(ctx, in.ID, view); err != nil {
				return err
			}
		}
	}), nil
}

// drainGrace is how long connections to MCP servers that are in use stay after mcp.json was read again.
const drainGrace = 10 * time.Minute

// reload reads mcp.json again.
func (s *service) reload(ctx context.Context, _ *struct{}) (*api.MCPReloaded, error) {
	names, drain, err := s.App.MCP.Reload()
	if err != nil {
		return nil, conflictOf(err)
	}
	s.api.Go(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, drainGrace)
		defer cancel()
		_ = drain(ctx) // what it reports is that connections were cut
	})
	slices.Sort(names)
	return &api.MCPReloaded{Servers: append([]string{}, names...)}, nil
}
