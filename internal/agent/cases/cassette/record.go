package cassette

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/agent/harness"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/provider"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// Recorder collects the steps of runs. It may be used from several goroutines.
type Recorder struct {
	marks Marks
	now   func() time.Time

	mu   sync.Mutex
	runs int
	c    Cassette
	dir  string // of the agent, if the user named that

	secrets []*run.Secrets // of the states of runs
}

// NewRecorder returns a recorder without steps. A nil now means time.Now.
func NewRecorder(marks Marks, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	return &Recorder{marks: marks, now: now}
}

// Store returns a store like next whose new runs are recorded.
func (r *Recorder) Store(next run.Store) run.Store { return &recordedStore{next, r} }

// UseModels notes the model that the user asked for, "" for none, and that of requests that name none.
func (r *Recorder) UseModels(asked, otherwise string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Asked, r.c.Model = asked, otherwise
}

// OfferServerTools notes tools of MCP servers that were offered.
func (r *Recorder) OfferServerTools(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Servers = append(r.c.Servers, names...)
	slices.Sort(r.c.Servers)
	r.c.Servers = slices.Compact(r.c.Servers)
}

// Format returns what was recorded so far as the text of file, nil if no run began.
func (r *Recorder) Format(file string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == 0 {
		return nil
	}
	r.c.sort()
	c := r.c
	for _, s := range r.secrets { // only now all of them are known
		c.Prompt, c.Entries = s.Text(c.Prompt), slices.Clone(c.Entries)
		for i, e := range c.Entries {
			shown := *e
			shown.Request, shown.Reply = s.Value(e.Request), s.Value(e.Reply)
			if e.Failure != nil {
				f := *e.Failure
				f.Message, f.Hint = s.Text(f.Message), s.Text(f.Hint)
				shown.Failure = &f
			}
			c.Entries[i] = &shown
		}
	}
	if r.dir != "" {
		c.Agent = AgentAt(file, r.dir)
	}
	return c.Format()
}

// recordedStore is a store whose new runs are recorded.
type recordedStore struct {
	run.Store
	r *Recorder
}

// Create begins a run.
func (s *recordedStore) Create(ctx context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	j, err := s.Store.Create(ctx, info, start)
	if err != nil {
		return nil, err
	}
	secrets := info.Secrets(start.State)
	return &recordedJournal{j, s.r, s.r.marks.with(info), s.r.begin(info, secrets), secrets}, nil
}

// begin notes the beginning of a run and returns its number.
func (r *Recorder) begin(info run.Info, secrets *run.Secrets) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
	if secrets != nil {
		r.secrets = append(r.secrets, secrets)
	}
	if r.runs == 1 {
		r.c.Agent, r.c.Prompt = info.Agent, r.marks.hideText(info.Prompt)
		if !info.ByName {
			r.dir = info.AgentDir
		}
		r.c.Variables = make(map[string]string, len(info.Variables))
		for name, text := range info.Variables {
			r.c.Variables[name] = r.marks.hideText(text)
		}
	}
	return r.runs
}

// add records a step. An existing one is replaced: the step was repeated.
func (r *Recorder) add(e *Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Entries = slices.DeleteFunc(r.c.Entries, func(o *Entry) bool { return o.Place == e.Place })
	r.c.Entries = append(r.c.Entries, e)
}

type recordedJournal struct {
	run.Journal
	r     *Recorder
	marks Marks
	run   int

	secrets *run.Secrets // nil for none
}

// Commit keeps a checkpoint.
func (j *recordedJournal) Commit(ctx context.Context, c run.Checkpoint, visits []run.Visit) error {
	if j.secrets != nil {
		j.secrets.Learn(c.State)
	}
	return j.Journal.Commit(ctx, c, visits)
}

// Task returns the record of a task's steps.
func (j *recordedJournal) Task(step int, node string) steps.Recorder {
	return &recordedTask{
		Recorder: j.Journal.Task(step, node), r: j.r, marks: j.marks, place: Place{Run: j.run, Step: step, Node: node}, requests: make(map[string]value.Value), secrets: j.secrets,
	}
}

type recordedTask struct {
	steps.Recorder
	r     *Recorder
	marks Marks
	place Place

	mu       sync.Mutex
	requests map[string]value.Value // of steps that are being made; guarded by mu

	secrets *run.Secrets // nil for none
}

// Lookup returns what is known of a step.
func (t *recordedTask) Lookup(ctx context.Context, key string, s steps.Step) (steps.Record, error) {
	if kept(key, s) && s.Request != nil {
		request, err := asValue(s.Request())
		if err != nil {
			return steps.Record{}, err
		}
		t.mu.Lock()
		t.requests[key] = withoutNow(t.marks.hide(request), t.r.now())
		t.mu.Unlock()
	}
	return t.Recorder.Lookup(ctx, key, s)
}

// Record keeps the result of a step.
func (t *recordedTask) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	if t.secrets != nil && run.HoldsSecrets(key, s.Kind) {
		if err := t.secrets.LearnNote(result); err != nil {
			return err
		}
	}
	if kept(key, s) {
		reply, err := value.ParseJSON(result)
		if err != nil {
			return err
		}
		e := t.entry(key, s)
		e.Reply = t.marks.hide(reply)
		text, ok := reply.AsString()
		if isConsent(key) && text != "" || !isConsent(key) && (!ok || text != "" || s.Kind != steps.Note) {
			t.r.add(e)
		}
	}
	return t.Recorder.Record(ctx, key, s, result)
}

// Fail implements [steps.FailureRecorder].
func (t *recordedTask) Fail(_ context.Context, key string, s steps.Step, failure error) {
	if !kept(key, s) || !made(s.Kind) || fault.CodeOf(failure) == fault.Suspended || fault.CodeOf(failure) == fault.Canceled {
		return
	}
	e := t.entry(key, s)
	e.Failure = &Failure{Code: string(fault.CodeOf(failure)), Message: t.marks.hideText(failure.Error()), Hint: t.marks.hideText(fault.HintOf(failure)), Kind: string(provider.KindOf(failure))}
	t.r.add(e)
}

func (t *recordedTask) entry(key string, s steps.Step) *Entry {
	p := t.place
	p.Key = key
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Entry{Place: p, Kind: s.Kind, Name: t.marks.hideText(s.Name), Request: t.requests[key]}
}

// kept reports whether a step belongs into a cassette. Times are taken anew, and so is what a cache has. That a
// node of a nested graph is done follows from its steps, and so do its secrets. The turn of a program of others is one step.
func kept(key string, s steps.Step) bool {
	return !strings.Contains("/"+key, "/"+harness.Within) && s.Kind != steps.Time && s.Kind != steps.Cache && !(s.Kind == steps.Note && (key == "done" || strings.HasSuffix(key, "/done") || strings.HasSuffix(key, "/"+tool.TaskNote))) && !run.HoldsSecrets(key, s.Kind)
}

// isConsent reports whether a step is the decision about a call of a tool. Its result is why the call is refused, as a text; one
// that is not in a cassette was not.
func isConsent(key string) bool { return key == "consent" || strings.HasSuffix(key, "/consent") }

// made reports whether steps of a kind reach the outside world: without a record they cannot be played.
func made(k steps.Kind) bool {
	return k == steps.Model || k == steps.Tool || k == steps.Script || k == steps.Question || k == steps.Retrieval
}

// asValue returns what x is in JSON.
func asValue(x any) (value.Value, error) {
	if v, ok := x.(value.Value); ok {
		return v, nil
	}
	data, err := json.Marshal(x)
	if err != nil {
		return value.Value{}, err
	}
	return value.ParseJSON(data)
}
