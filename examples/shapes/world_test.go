package shapes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/conversation/launch"
	"loki/internal/llm/event"
	"loki/internal/setup/clients"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// world is where a run takes place. Its clock is that of a test with fake time: it moves when all wait.
type world struct {
	shape
	how       scheduling
	t         *testing.T
	dir       string // with the agent
	began     time.Time
	processes int
	store     *memstore.Store
	id        string         // of the run
	calls     map[string]int // of models, by node and item

	mu     sync.Mutex
	left   int             // writes of the journal until the process ends; 0 for never
	writes int             // that there were
	done   map[string]bool // steps on record
	begun  map[string]int  // how often effects were begun
}

// play calls do in a world for a shape.
func play(t *testing.T, s shape, how scheduling, do func(w *world)) {
	t.Helper()
	dir := stage(t, s, how)
	synctest.Test(t, func(t *testing.T) {
		do(&world{
			shape: s, how: how, t: t, dir: dir, began: time.Now(), store: memstore.New(nil), calls: make(map[string]int), done: make(map[string]bool), begun: make(map[string]int),
		})
	})
}

// stage copies a shape to a directory of its own, with the settings of a scheduling.
func stage(t *testing.T, s shape, how scheduling) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), s.name)
	if err := os.CopyFS(dir, os.DirFS(s.name)); err != nil {
		t.Fatal(err)
	}
	if how.settings == "" {
		return dir
	}
	file := filepath.Join(dir, graph.FileName)
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(src), "\nsettings: {")
	if found {
		after = ", " + after
	} else {
		before, after, _ = strings.Cut(string(src), "\nstart:")
		after = "}\nstart:" + after
	}
	if err := os.WriteFile(file, []byte(before+"\nsettings: {"+how.settings+after), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// app returns the program as a new process has it.
func (w *world) app() *app.App {
	a, err := app.New(app.Options{Environ: w.environ(w.dir)})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// environ is the environment of a process that runs a shape in a directory.
func (s shape) environ(dir string) []string {
	home := filepath.Dir(dir)
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "LOKI_CONFIG_DIR=" + filepath.Join(home, "config"),
		"LOKI_STATE_DIR=" + filepath.Join(home, "state"), "LOKI_CACHE_DIR=" + filepath.Join(home, "cache"), "LOKI_TRUSTED_DIRS=" + home,
	}
	if s.Rules != "" {
		environ = append(environ, clients.TestModel+"=builtin:script/"+filepath.Join(dir, s.Rules))
	}
	return environ
}

func (w *world) agent(a *app.App) agent.Agent {
	ref, err := a.Agents.Find(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	of, findings, err := a.Agents.Load(ref)
	if err != nil || len(findings) > 0 {
		w.t.Fatalf("%v: %v", findings, err)
	}
	return of
}

// validate makes sure that there are no findings.
func (w *world) validate() {
	a := w.app()
	defer a.Close()
	for _, f := range a.Validator().Findings(w.t.Context(), w.agent(a), nil) {
		w.t.Errorf("%s %s: %v", f.Severity, f.Rule, f)
	}
}

// Emit counts calls of models. The engine reports a call before it is made.
func (w *world) Emit(_ context.Context, ev event.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := ev.Body.(event.ModelCall); ok {
		place := ev.Node
		if ev.Item != nil {
			place += "#" + strconv.Itoa(*ev.Item)
		}
		w.calls[place]++
	}
	return nil
}

// process does what a process of its own would, which ends at a write of the journal, or not if that is 0. It returns whether it ended there.
func (w *world) process(at int, do func(a *app.App, runs *run.Service, events event.Scope) error) (ended bool, err error) {
	a := w.app()
	w.left, w.writes = at, 0
	runs := a.Runs()
	runs.Live = nil // a socket keeps the clock of the test from moving
	runs.Open = func(graph.Durability) (run.Store, error) { return store{w.store, w}, nil }
	err = errors.Join(do(a, runs, a.Events(w)), a.Close())
	return at > 0 && w.left == 0, err
}

// start begins the run in a process that ends at a write.
func (w *world) start(at int) (ended bool) {
	ended, err := w.process(at, func(a *app.App, runs *run.Service, events event.Scope) error {
		job, err := a.AgentJob(w.t.Context(), launch.Run{Agent: w.agent(a), Prompt: w.Prompt, NoStream: true, Asker: ask.Unavailable{}, Events: events})
		if err != nil {
			return err
		}
		_, err = runs.Start(w.t.Context(), job)
		return err
	})
	w.expected(ended, err)
	return ended
}

// expected fails the test if a process did not end as it should.
func (w *world) expected(ended bool, err error) {
	w.t.Helper()
	if !ended && err != nil && fault.CodeOf(err) != fault.Suspended && (w.Error == "" || !strings.Contains(err.Error(), w.Error)) {
		w.t.Fatal(err)
	}
}

// history is what is on record.
func (w *world) history() run.History {
	h, err := w.store.History(w.t.Context(), w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// next begins the run in a process, or goes on with it, and returns whether the process ended at a write.
func (w *world) next(at int) (ended bool) {
	if w.id == "" {
		return w.start(at)
	}
	return w.resume(at)
}

// over reports whether the run has ended.
func (w *world) over() bool {
	if w.id == "" {
		return false
	}
	if w.processes++; w.processes > 100 {
		w.t.Fatal("the run does not end")
	}
	status := w.history().Info.Status
	return status == run.Done || status == run.Failed && w.Error != ""
}

// made returns how often models were called, by node and item.
func (w *world) made() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

// recorded returns how many of these calls are on record.
func (w *world) recorded() map[string]int {
	n := make(map[string]int)
	for _, s := range w.history().Steps {
		if s.Kind == steps.Model && s.Done {
			place := s.Node
			if rest, ok := strings.CutPrefix(s.Key, "item/"); ok {
				item, _, _ := strings.Cut(rest, "/")
				place += "#" + item
			}
			n[place]++
		}
	}
	return n
}

// resume goes on with the run in another process, with what it waits for.
func (w *world) resume(at int) (ended bool) {
	ctx := w.t.Context()
	h := w.history()
	r := run.Resumption{Continuation: run.Continuation{ID: w.id, NoStream: true, Asker: ask.Unavailable{}}, Answers: make(map[string]string)}
	for _, p := range h.Pending {
		if text, ok := w.Answers[p.ID]; ok {
			r.Answers[p.ID] = text
		}
	}
	given := len(r.Answers) > 0
	if soon := w.signal(h); !soon && !given && h.Info.Status == run.Suspended {
		w.sleep(h)
	}
	ended, err := w.process(at, func(a *app.App, runs *run.Service, events event.Scope) error {
		r.Events = events
		_, err := runs.Resume(ctx, r)
		return err
	})
	w.expected(ended, err)
	return ended
}

// signal sends the signals that are due, and returns whether a node waits for one.
func (w *world) signal(h run.History) (waits bool) {
	for _, next := range w.Signals[len(h.Signals):] {
		waits = slices.ContainsFunc(h.Waiting, func(p run.Pending) bool { return p.Wait == run.ForSignal && p.Signal == next.Name })
		if next.At == 0 && !waits || time.Since(w.began) < next.At {
			return false
		}
		v, err := json.Marshal(plain(w.t, next.Value))
		if err == nil {
			_, err = w.store.Signal(w.t.Context(), w.id, next.Name, v, "")
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if waits {
			break
		}
	}
	return waits
}

// sleep lets time pass until what the run waits for comes: the end of a wait, or the next signal.
func (w *world) sleep(h run.History) {
	var until time.Time
	soonest := func(at time.Time) {
		if !at.IsZero() && (until.IsZero() || at.Before(until)) {
			until = at
		}
	}
	for _, p := range slices.Concat(h.Waiting, h.Pending) {
		soonest(p.Deadline)
	}
	if sent := len(h.Signals); sent < len(w.Signals) && w.Signals[sent].At > 0 {
		soonest(w.began.Add(w.Signals[sent].At))
	}
	if until.IsZero() {
		w.t.Fatalf("the run waits for what does not come: %+v %+v", h.Pending, h.Waiting)
	}
	time.Sleep(time.Until(until))
}

func (w *world) outcome() outcome { return outcomeOf(w.t, w.store, w.id) }

// outcomeOf is what the record of a run says.
func outcomeOf(t *testing.T, store run.Store, id string) outcome {
	t.Helper()
	h, err := store.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	last, err := store.Checkpoint(t.Context(), id, -1)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any // its keys are sorted when it is written
	if err := json.Unmarshal(last.State.AppendJSON(nil), &state); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{Output: h.Info.Output, Error: h.Info.Error, State: string(text)}
	for _, v := range h.Visits {
		o.Visits, o.steps = append(o.Visits, visitText(h, v)), append(o.steps, v.Step)
	}
	return o
}

// visitText is a visit as a trace has it.
func visitText(h run.History, v run.Visit) string {
	text := v.Node
	if v.Number > 1 {
		text += fmt.Sprintf("(%d)", v.Number)
	}
	if v.Type == graph.MapNode {
		items := make(map[int]bool)
		for _, s := range h.Steps {
			if rest, ok := strings.CutPrefix(s.Key, "item/"); ok && s.Step == v.Step && s.Node == v.Node && s.Done {
				number, _, _ := strings.Cut(rest, "/")
				if i, err := strconv.Atoi(number); err == nil {
					items[i] = true
				}
			}
		}
		text += fmt.Sprint(slices.Sorted(maps.Keys(items)))
	}
	text += nestedText(h, v)
	if v.Canceled {
		text += " canceled"
	}
	if v.Failed {
		text += "!"
	}
	if len(v.Targets) > 0 {
		text += " -> " + strings.Join(v.Targets, ", ")
	}
	return text
}

// nestedText has the nodes of a visit's subgraphs, such as " {#0/s1/describe #0/s2/end}": item 0, first super-step.
func nestedText(h run.History, v run.Visit) string {
	var paths []string
	for _, s := range h.Steps {
		path, done := strings.CutSuffix(s.Key, "/done")
		if done && s.Step == v.Step && s.Node == v.Node && strings.Contains(path, "graph/s") {
			paths = append(paths, strings.NewReplacer("item/", "#", "graph/", "").Replace(path))
		}
	}
	if paths == nil {
		return ""
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(padded(a), padded(b)) })
	return " {" + strings.Join(paths, " ") + "}"
}

var digits = regexp.MustCompile(`\d+`)

// padded sorts like a text with numbers.
func padded(text string) string {
	return digits.ReplaceAllStringFunc(text, func(n string) string { return strings.Repeat("0", 6-min(6, len(n))) + n })
}

// store is a store whose process ends at a write: its lease is gone, and nothing more is recorded.
type store struct {
	*memstore.Store
	w *world
}

func (s store) Create(ctx context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	j, err := s.Store.Create(ctx, info, start)
	if err != nil {
		return nil, err
	}
	s.w.id = j.ID()
	return journal{j, s.w}, nil
}

func (s store) Open(ctx context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	j, found, err := s.Store.Open(ctx, id, unless...)
	if err != nil {
		return nil, found, err
	}
	return journal{j, s.w}, found, nil
}

// Close leaves the store to the next process.
func (s store) Close() error { return nil }

type journal struct {
	run.Journal
	w *world
}

// write makes a write, unless the process ends before it.
func (w *world) write(write func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.left > 0 {
		if w.left--; w.left == 0 {
			if err := w.store.Orphan(w.id); err != nil {
				return err
			}
		}
	}
	return write()
}

func (j journal) Task(step int, node string) steps.Recorder {
	return task{j.Journal.Task(step, node), j.w, fmt.Sprintf("%d/%s/", step, node)}
}

func (j journal) Finished(ctx context.Context, t run.TaskRecord) error {
	return j.w.write(func() error { return j.Journal.Finished(ctx, t) })
}

func (j journal) Commit(ctx context.Context, c run.Checkpoint, v []run.Visit) error {
	return j.w.write(func() error { return j.Journal.Commit(ctx, c, v) })
}

func (j journal) Asked(ctx context.Context, p run.Pending) error {
	return j.w.write(func() error { return j.Journal.Asked(ctx, p) })
}

func (j journal) End(ctx context.Context, e run.Ending) error {
	return j.w.write(func() error { return j.Journal.End(ctx, e) })
}

type task struct {
	steps.Recorder
	w     *world
	place string // of its keys
}

func (t task) Begin(ctx context.Context, key string, s steps.Step) error {
	return t.w.write(func() error {
		if t.w.begun[t.place+key]++; t.w.done[t.place+key] {
			t.w.t.Errorf("%s is on record and begins again", t.place+key)
		}
		return t.Recorder.Begin(ctx, key, s)
	})
}

func (t task) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	return t.w.write(func() error {
		if t.w.done[t.place+key] {
			t.w.t.Errorf("%s is on record and was made again", t.place+key)
		}
		err := t.Recorder.Record(ctx, key, s, result)
		if err == nil {
			t.w.done[t.place+key] = true
		}
		return err
	})
}
