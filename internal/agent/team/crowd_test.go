package team_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
)

// TestACrowd has 100 children, 8 at a time, who write to each other and their parent, while the
// parent collects in any order. No message to it is lost.
func TestACrowd(t *testing.T) {
	t.Parallel()
	const children, atOnce = 100, 8
	var now, most, sent atomic.Int64
	r := newRig(agents{"member": func(ctx context.Context, a *agent) (string, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n) // perhaps less than the truth, never more
		}
		defer now.Add(-1)
		for _, id := range append(strings.Fields(a.prompt)[1:], "parent") {
			got, err := a.get(ctx, "agent__send_message", object{"id": id, "message": a.m.ID})
			if err != nil {
				return "", err
			}
			if got.Status == "ok" && id == "parent" {
				sent.Add(1)
			}
		}
		_, err := a.get(ctx, "agent__check_inbox", object{})
		return a.m.ID, err
	}})
	r.limits.MaxConcurrent = atOnce
	rnd := rand.New(rand.NewPCG(1, 1))
	r.must(t, func(ctx context.Context, a *agent) (string, error) {
		var ids []string
		collected := make(map[string]bool)
		var inbox []string
		readAll := func() error {
			got, err := a.get(ctx, "agent__check_inbox", object{})
			for _, m := range got.Messages {
				inbox = append(inbox, m.From)
			}
			return err
		}
		for started := 0; started < children || len(ids) > 0; {
			if started < children && rnd.IntN(2) == 0 {
				switch id, err := a.spawn(ctx, "member", "write "+strings.Join(ids, " ")); {
				case err == nil:
					ids, started = append(ids, id), started+1
				case !strings.Contains(err.Error(), "at most 8"):
					return "", err
				}
				continue
			}
			if len(ids) == 0 {
				continue
			}
			i := rnd.IntN(len(ids))
			got, err := a.get(ctx, []string{"agent__collect", "agent__check"}[rnd.IntN(2)], object{"id": ids[i]})
			if err != nil {
				return "", err
			}
			if got.Status == "completed" {
				if got.Output != ids[i] || collected[ids[i]] {
					t.Errorf("%s: %+v", ids[i], got)
				}
				collected[ids[i]] = true
				ids = slices.Delete(ids, i, i+1)
			}
			if rnd.IntN(5) == 0 {
				if err := readAll(); err != nil {
					return "", err
				}
			}
		}
		if err := readAll(); err != nil {
			return "", err
		}
		slices.Sort(inbox)
		if n := len(slices.Compact(inbox)); n != children || sent.Load() != children || len(collected) != children {
			t.Errorf("%d messages from %d children, %d sent, %d collected", len(inbox), n, sent.Load(), len(collected))
		}
		return "", nil
	})
	if most.Load() > atOnce {
		t.Errorf("%d at once", most.Load())
	}
}

// TestACrowdIsStopped cancels the root while 100 children are at work, in a bubble that does not end
// before the last goroutine has.
func TestACrowdIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(agents{"hang": hang, "talks": func(ctx context.Context, a *agent) (string, error) {
			for ctx.Err() == nil {
				wait(ctx, time.Second)
				if _, err := a.get(ctx, "agent__send_message", object{"id": "parent", "message": "hi"}); err != nil {
					return "", err
				}
			}
			return "", ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := r.run(ctx, func(ctx context.Context, a *agent) (string, error) {
			id := ""
			for i := range 100 {
				var err error
				if id, err = a.spawn(ctx, []string{"hang", "talks"}[i%2], "x"); err != nil {
					return "", err
				}
			}
			time.AfterFunc(30*time.Second, cancel)
			_, err := a.collect(ctx, id)
			return "", err
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if kept := len(r.rec.results()); kept != 0 {
			t.Errorf("%d results are on record", kept)
		}
	})
}

// modelTask is a task as the simplest model has it.
type modelTask struct {
	after  map[int]bool // tasks it still waits for, from 1
	status string
	owner  string
	agent  bool
}

// settle starts the task if nothing is in its way any more, and reports whether its agent starts.
func (m *modelTask) settle() bool {
	if m.status != "blocked" || len(m.after) > 0 {
		return false
	}
	m.status = "pending"
	if m.agent {
		m.status, m.owner = "in_progress", "auto:echo"
	}
	return m.agent
}

// TestTaskQueueAgainstAModel makes random calls, and compares the list with a model that works out
// everything anew.
func TestTaskQueueAgainstAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		r := newRig(agents{"echo": echo})
		r.must(t, func(ctx context.Context, a *agent) (string, error) {
			var model []*modelTask
			for range 60 {
				id := 1 + rnd.IntN(len(model)+1) // perhaps one that is not there
				var m *modelTask
				if id <= len(model) {
					m = model[id-1]
				}
				var got result
				var err error
				switch pick := rnd.IntN(10); {
				case pick < 5 || len(model) == 0:
					m := &modelTask{status: "blocked", after: make(map[int]bool), agent: rnd.IntN(2) == 0}
					args, warnings := object{"subject": "s"}, 0
					var after []string
					for range rnd.IntN(4) {
						b := 1 + rnd.IntN(len(model)+2) // perhaps itself, perhaps one that is not there
						after = append(after, fmt.Sprint(b))
						if b > len(model) {
							warnings++
						} else if blocker := model[b-1]; blocker.status != "completed" && !m.after[b] {
							m.after[b] = true
							if blocker.status == "failed" {
								warnings++
							}
						}
					}
					args["blocked_by"] = after
					if m.agent {
						args["agent"], args["prompt"] = "echo", "p"
					}
					model = append(model, m)
					starts := m.settle()
					got, err = a.get(ctx, "agent__task_create", args)
					if len(got.Warnings) != warnings || got.TaskID != fmt.Sprint(len(model)) || (len(got.Dispatched) == 1) != starts {
						t.Errorf("seed %d: %v gave %+v, want %d warnings", seed, args, got, warnings)
					}
				case pick < 8:
					dispatched := 0
					if m != nil {
						m.status = "completed"
						for _, other := range model {
							delete(other.after, id)
							if other.settle() {
								dispatched++
							}
						}
					}
					got, err = a.get(ctx, "agent__task_complete", object{"task_id": fmt.Sprint(id)})
					if len(got.Dispatched) != dispatched || got.Status != "ok" {
						t.Errorf("seed %d: completing %d gave %+v, want %d agents", seed, id, got, dispatched)
					}
				case pick < 9:
					if m != nil {
						m.status = "failed"
					}
					got, err = a.get(ctx, "agent__task_fail", object{"task_id": fmt.Sprint(id)})
					if (got.Status == "ok") != (m != nil) {
						t.Errorf("seed %d: failing %d gave %+v", seed, id, got)
					}
				default:
					got, err = a.get(ctx, "agent__spawn", object{"agent": "echo", "prompt": "p", "task_id": id})
					ok := m != nil && m.status != "completed" && len(m.after) == 0
					if ok {
						m.status, m.owner = "in_progress", got.ID
					}
					if (got.Status == "ok") != ok {
						t.Errorf("seed %d: spawning for %d gave %+v", seed, id, got)
					}
				}
				if err != nil {
					return "", err
				}
				list, err := a.get(ctx, "agent__task_list", object{})
				if err != nil {
					return "", err
				}
				var have, want []string
				for _, l := range list.Tasks {
					owner := ""
					if l.Owner != nil {
						owner = *l.Owner
					}
					have = append(have, fmt.Sprintln(l.ID, l.Status, owner, l.BlockedBy))
				}
				for i, m := range model {
					want = append(want, fmt.Sprintln(i+1, m.status, m.owner, slices.Sorted(maps.Keys(m.after))))
				}
				if !slices.Equal(have, want) {
					t.Fatalf("seed %d: the list is\n%v\nwant\n%v", seed, have, want)
				}
			}
			return "", nil
		})
	}
}

// TestEscalationsAgainstAModel has children ask at random moments, and a root that answers some of
// the questions. Each question ends once: with the answer that was accepted for it, or with none when
// its time is over.
func TestEscalationsAgainstAModel(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Second
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			type end struct {
				answer string
				took   time.Duration
			}
			ends := make(map[string]end) // by question
			var mu sync.Mutex
			r := newRig(agents{"asks": func(ctx context.Context, a *agent) (string, error) {
				rnd := rand.New(rand.NewPCG(seed, uint64(len(a.prompt))))
				for i := range 1 + rnd.IntN(4) {
					wait(ctx, time.Duration(rnd.IntN(60_000))*time.Millisecond)
					text, began := fmt.Sprintf("%s/%d", a.prompt, i), time.Now()
					got, err := a.m.Asker().Ask(ctx, ask.Question{ID: fmt.Sprint(i), Kind: ask.Text, Text: text})
					if ctx.Err() != nil {
						return "", ctx.Err()
					}
					if err != nil {
						got = ""
					}
					mu.Lock()
					ends[text] = end{got, time.Since(began)}
					mu.Unlock()
				}
				return "", nil
			}})
			r.limits.EscalationTimeout = limit
			r.must(t, func(ctx context.Context, a *agent) (string, error) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				var ids, shown []string
				for i := range 5 {
					id, err := a.spawn(ctx, "asks", strings.Repeat("q", i+1))
					if err != nil {
						return "", err
					}
					ids = append(ids, id)
				}
				accepted := make(map[string]string) // answers, by question
				questions := make(map[string]string)
				for len(ids) > 0 {
					wait(ctx, time.Duration(rnd.IntN(20_000))*time.Millisecond)
					got, err := a.get(ctx, "agent__check", object{"id": ids[0]})
					if err != nil {
						return "", err
					}
					if got.Status == "completed" {
						ids = ids[1:]
						continue
					}
					open := make(map[string]bool)
					for _, p := range got.Pending {
						open[p.ID], questions[p.ID] = true, p.Question
						if !slices.Contains(shown, p.ID) {
							shown = append(shown, p.ID)
						}
					}
					if len(shown) == 0 || rnd.IntN(3) == 0 {
						continue
					}
					id := shown[rnd.IntN(len(shown))] // one that is open, or was
					reply, err := a.get(ctx, "agent__reply_escalation", object{"escalation_id": id, "reply": "to " + questions[id]})
					if err != nil {
						return "", err
					}
					if (reply.Status == "ok") != open[id] {
						t.Errorf("seed %d: the reply to %s, open %v, gave %+v", seed, id, open[id], reply)
					}
					if reply.Status == "ok" {
						accepted[strings.TrimPrefix(questions[id], "[input] ")] = "to " + questions[id]
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for question, e := range ends {
					if e.answer != accepted[question] || e.answer == "" && e.took != limit || e.took > limit {
						t.Errorf("seed %d: %s ended with %+v, want %q", seed, question, e, accepted[question])
					}
				}
				if n := a.m.Notice(ctx); n != "" || len(ends) < 5 {
					t.Errorf("seed %d: %d questions, and %s", seed, len(ends), n)
				}
				return "", nil
			})
		})
	}
}
