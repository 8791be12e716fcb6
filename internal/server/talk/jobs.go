package talk

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/api"
	"loki/internal/app"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/server/rest"
	"loki/internal/server/stream"
)

// keptJobs is how many jobs that have ended are remembered.
const keptJobs = 100

// jobEvents are the server-sent events of a job.
var jobEvents = []string{"progress", "finished"}

// jobs are the work in the background, and what came of it. The zero jobs are empty.
type jobs struct {
	mu   sync.Mutex
	byID map[string]*job
	old  []string // ids of those that have ended, in that order
}

// job is a rebuild. It implements [event.Emitter].
type job struct {
	mu      sync.Mutex
	state   api.Job
	changed chan struct{} // closed and replaced when the state changes
}

// begin returns the job that works on a target, and whether it is a new one.
func (j *jobs) begin(target string) (*job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.byID {
		if state, _ := one.look(); state.Target == target && state.Status == "running" {
			return one, false
		}
	}
	one := &job{changed: make(chan struct{}), state: api.Job{
		ID: strings.ToLower(rand.Text()[:16]), Object: "job", Kind: "rag_rebuild", Target: target, Status: "running", CreatedAt: time.Now().UTC(),
	}}
	if j.byID == nil {
		j.byID = make(map[string]*job)
	}
	j.byID[one.state.ID] = one
	return one, true
}

// end notes that a job has ended, and forgets the oldest ones.
func (j *jobs) end(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.old = append(j.old, id); len(j.old) > keptJobs; j.old = j.old[1:] {
		delete(j.byID, j.old[0])
	}
}

// find returns a job, nil if there is none of that id.
func (j *jobs) find(id string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.byID[id]
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
	b, begun := s.jobs.begin(in.Name)
	state, _ := b.look()
	if !begun {
		return &state, nil
	}
	work := func(ctx context.Context) {
		err := s.api.Protect(ctx, func() error {
			return s.App.ChangeBase(ctx, s.scope(b), app.BaseChange{Name: in.Name, Rebuild: true})
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
		s.jobs.end(state.ID)
	}
	if !s.api.Go(ctx, work) {
		b.set(func(j *api.Job) { j.Status = "canceled" })
		s.jobs.end(state.ID)
		return nil, rest.ErrStopping()
	}
	return &state, nil
}

type jobInput struct {
	ID string `path:"id" doc:"of the job"`
}

// job describes a job, or streams how far it has come until it ends.
func (s *service) job(ctx context.Context, in *jobInput) (*rest.Reply, error) {
	b := s.jobs.find(in.ID)
	if b == nil {
		return nil, rest.NotFound("job", in.ID)
	}
	if !rest.WantsStream(ctx) {
		state, _ := b.look()
		return rest.JSON(0, &state), nil
	}
	return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
		out := stream.NewEmitter(w)
		for {
			state, changed := b.look()
			if state.Status != "running" {
				return out.Send(ctx, "finished", state)
			}
			if err := out.Send(ctx, "progress", state); err != nil {
				return err
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}), nil
}

// drainGrace is how long connections to MCP servers that are in use stay after mcp.json was read again.
const drainGrace = 10 * time.Minute

// reload reads mcp.json again.
func (s *service) reload(ctx context.Context, _ *struct{}) (*api.MCPReloaded, error) {
	names, drain, err := s.App.ReloadServers()
	if err != nil {
		return nil, refused(err)
	}
	s.api.Go(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, drainGrace)
		defer cancel()
		_ = drain(ctx) // what it reports is that connections were cut
	})
	slices.Sort(names)
	return &api.MCPReloaded{Servers: append([]string{}, names...)}, nil
}
