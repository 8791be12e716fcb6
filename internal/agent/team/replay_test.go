package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/llm/chat"
)

// history is a random plan of what a root and its descendants do. However their work interleaves,
// the root ends with the same output.
type history struct {
	mu      sync.Mutex
	effects map[string]int // how often each recorded step was made; guarded by mu
}

func (h *history) effect(name string) func() string {
	return func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.effects[name]++
		return "effect of " + name
	}
}

// agents returns the agents of a history. A prompt is a seed, and says all that the agent does.
func (h *history) agents() agents { return agents{"worker": h.worker} }

// worker does some steps, tells its parent about it, perhaps asks, and perhaps has children.
func (h *history) worker(ctx context.Context, a *agent) (string, error) {
	var seed uint64
	if _, err := fmt.Sscan(a.prompt, &seed); err != nil {
		return "", err
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	out := []string{a.prompt}
	for i := range 1 + rnd.IntN(3) {
		key := fmt.Sprintf("model/%d", i)
		text, err := a.step(ctx, key, chat.Usage{InputTokens: 1}, h.effect(a.m.ID+"/"+key))
		if err != nil {
			return "", err
		}
		out = append(out, anyID.ReplaceAllString(text, "$1"))
	}
	if rnd.IntN(3) == 0 {
		answer, err := a.step(ctx, "ask", chat.Usage{}, func() string {
			answer, err := a.m.Asker().Ask(ctx, ask.Question{ID: "ask", Kind: ask.Text, Text: "about " + a.prompt})
			if err != nil {
				return err.Error()
			}
			return answer
		})
		if err != nil {
			return "", err
		}
		out = append(out, answer)
	}
	if _, err := a.call(ctx, "agent__send_message", object{"id": "parent", "message": a.prompt}); err != nil {
		return "", err
	}
	if a.m.Depth < 3 && rnd.IntN(2) == 0 {
		below, err := h.lead(ctx, a, rnd, 1+rnd.IntN(2))
		if err != nil {
			return "", err
		}
		out = append(out, below)
	}
	if rnd.IntN(8) == 0 {
		return strings.Join(out, " "), errors.New("failed as planned")
	}
	return strings.Join(out, " "), nil
}

// lead starts n children, some through tasks, works with them, and returns what came of it.
func (h *history) lead(ctx context.Context, a *agent, rnd *rand.Rand, n int) (string, error) {
	var ids []string
	var canceled int
	blocked := ""
	started := func(r result, err error) error {
		if err != nil {
			return err
		}
		for _, s := range append([]result{r}, r.Dispatched...) {
			if s.ID != "" && s.Status == "ok" {
				ids = append(ids, s.ID)
			}
		}
		return nil
	}
	for range n {
		prompt := fmt.Sprint(rnd.Uint64())
		var err error
		switch rnd.IntN(4) {
		case 0:
			err = started(a.get(ctx, "agent__task_create", object{"subject": "s", "agent": "worker", "prompt": prompt}))
		case 1:
			var r result
			if r, err = a.get(ctx, "agent__task_create", object{"subject": "first"}); err == nil {
				blocked = r.TaskID
				_, err = a.get(ctx, "agent__task_create", object{"subject": "then", "agent": "worker", "prompt": prompt, "blocked_by": []string{blocked}})
			}
			if err == nil {
				err = started(a.get(ctx, "agent__task_complete", object{"task_id": blocked}))
			}
		default:
			err = started(a.get(ctx, "agent__spawn", object{"agent": "worker", "prompt": prompt}))
		}
		if err != nil {
			return "", err
		}
		if rnd.IntN(3) == 0 {
			if _, err := a.call(ctx, []string{"agent__list", "agent__task_list", "agent__list_available"}[rnd.IntN(3)], object{}); err != nil {
				return "", err
			}
		}
	}
	rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	if len(ids) > 2 && rnd.IntN(2) == 0 { // whatever it did until then is not part of the end
		if _, err := a.call(ctx, "agent__cancel", object{"id": ids[0]}); err != nil {
			return "", err
		}
		ids, canceled = ids[1:], 1
	}
	var outs, messages []string
	for _, id := range ids {
		r, err := h.take(ctx, a, id)
		if err != nil {
			return "", err
		}
		outs = append(outs, fmt.Sprintf("(%s %s)", r.Outcome, r.Output))
		box, err := a.get(ctx, "agent__check_inbox", object{})
		if err != nil {
			return "", err
		}
		for _, m := range box.Messages {
			if slices.Contains(ids, m.From) {
				messages = append(messages, m.Payload.Content)
			}
		}
	}
	sort.Strings(messages)
	return fmt.Sprintf("%v %v %d canceled", outs, messages, canceled), nil
}

// take collects a child, and answers what it and others ask meanwhile.
func (h *history) take(ctx context.Context, a *agent, id string) (result, error) {
	for {
		r, err := a.collect(ctx, id)
		if err != nil || r.Status == "completed" {
			return r, err
		}
		if r.Status != "pending" {
			return r, errors.New(r.Message)
		}
		for _, p := range r.Pending {
			if _, err := a.get(ctx, "agent__reply_escalation", object{"escalation_id": p.ID, "reply": "answer to " + p.Question}); err != nil {
				return r, err
			}
		}
	}
}

// TestEveryInterruption cuts the record of random histories at every point, as a kill of the process
// does, and goes on from there: the end is the same, and what is on record is not made again.
func TestEveryInterruption(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			root := func(h *history) agentFunc {
				return func(ctx context.Context, a *agent) (string, error) {
					return h.lead(ctx, a, rand.New(rand.NewPCG(seed, 1)), 4)
				}
			}
			h := &history{effects: make(map[string]int)}
			r := newRig(h.agents())
			r.used.InputTokens = 3
			want, used := r.must(t, root(h))
			all := r.rec.order
			if len(all) < 20 {
				t.Fatalf("only %d records", len(all))
			}
			for n := range len(all) + 1 {
				again := &history{effects: make(map[string]int)}
				r2 := newRig(again.agents())
				r2.used, r2.rec = r.used, r.rec.until(n)
				got, usedAgain, err := r2.run(t.Context(), root(again))
				if err != nil || got != want {
					t.Fatalf("seed %d, cut at %d of %d before %s:\n got %s, %v\nwant %s", seed, n, len(all), slices.Concat(all, []string{"the end"})[n], got, err, want)
				}
				if !strings.Contains(want, "1 canceled") && usedAgain != used || used.InputTokens == 0 {
					t.Fatalf("seed %d, cut at %d: used %+v, want %+v", seed, n, usedAgain, used)
				}
				if key := r2.rec.loggedTwice(t); key != "" {
					t.Fatalf("seed %d, cut at %d: %s is in the log twice", seed, n, key)
				}
				for name, times := range again.effects {
					key := "agents/" + name
					if times != 1 || slices.Contains(all[:n], key) {
						t.Fatalf("seed %d, cut at %d: %s was made %d times, and was on record: %v", seed, n, name, times, slices.Contains(all[:n], key))
					}
				}
				if started := slices.Compact(slices.Sorted(slices.Values(r2.started))); len(started) != len(r2.started) {
					t.Fatalf("seed %d, cut at %d: a child was started twice: %v", seed, n, r2.started)
				}
			}
		})
	}
}

// loggedTwice returns the key of a call that is in the log more than once, if there is one.
func (r *recorder) loggedTwice(t *testing.T) string {
	seen := make(map[string]bool)
	for _, k := range r.keys("team/") {
		var e struct{ Key string }
		if err := json.Unmarshal(r.Records[k].Result, &e); err != nil {
			t.Fatal(err)
		}
		if seen[e.Key] {
			return e.Key
		}
		seen[e.Key] = true
	}
	return ""
}

// TestInterruptedAgainAndAgain lets the process die after a few records each time, until the end.
func TestInterruptedAgainAndAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		root := func(h *history) agentFunc {
			return func(ctx context.Context, a *agent) (string, error) {
				return h.lead(ctx, a, rand.New(rand.NewPCG(seed, 3)), 4)
			}
		}
		h := &history{effects: make(map[string]int)}
		want, _ := newRig(h.agents()).must(t, root(h))
		total := maps.Clone(h.effects)
		h = &history{effects: make(map[string]int)}
		rec := newRecorder()
		for lives := 1; ; lives++ {
			if lives > 1000 {
				t.Fatal("it does not come to an end")
			}
			r := newRig(h.agents())
			r.rec = rec.until(len(rec.order))
			r.rec.left = 1 + rnd.IntN(5)
			ctx, cancel := context.WithCancel(t.Context())
			r.rec.died = cancel // nothing of a process goes on after its death
			got, _, err := r.run(ctx, root(h))
			cancel()
			rec = r.rec
			if err != nil {
				continue
			}
			if got != want {
				t.Errorf("seed %d, after %d lives:\n got %s\nwant %s", seed, lives, got, want)
			}
			break
		}
		if !strings.Contains(want, "1 canceled") && len(h.effects) != len(total) {
			t.Errorf("seed %d: %d effects, want %d", seed, len(h.effects), len(total))
		}
	}
}

// TestForegroundChildIsNotRunAgain resumes a node that runs an agent, which has children of its own.
func TestForegroundChildIsNotRunAgain(t *testing.T) {
	t.Parallel()
	h := &history{effects: make(map[string]int)}
	as := h.agents()
	as["outer"] = func(ctx context.Context, a *agent) (string, error) {
		return h.lead(ctx, a, rand.New(rand.NewPCG(9, 9)), 3)
	}
	direct := ask.Func(func(_ context.Context, q ask.Question) (string, error) { return "user: " + q.Text, nil })
	root := func(ctx context.Context, a *agent) (string, error) {
		var outs []string
		for _, key := range []string{"item/0", "item/1"} {
			r, err := a.m.Run(ctx, key, "outer", "x")
			if err != nil {
				return "", err
			}
			outs = append(outs, r.Output, string(r.Status), fmt.Sprint(r.Usage.InputTokens, r.Own.InputTokens))
		}
		return strings.Join(outs, "\n"), nil
	}
	r := newRig(as)
	r.o.Direct, r.used.InputTokens = direct, 3
	want, used := r.must(t, root)
	if used != (chat.Usage{}) {
		t.Errorf("what the results have is used twice: %+v", used)
	}
	for n := range len(r.rec.order) + 1 {
		h.effects = make(map[string]int)
		r2 := newRig(as)
		r2.o.Direct, r2.used, r2.rec = direct, r.used, r.rec.until(n)
		got, _, err := r2.run(t.Context(), root)
		if err != nil || got != want {
			t.Fatalf("cut at %d: got %s, %v, want %s", n, got, err, want)
		}
		if n == len(r.rec.order) && len(r2.started)+len(h.effects) != 0 {
			t.Errorf("started again: %v, made again: %v", r2.started, h.effects)
		}
	}
}

// TestManyChildrenInARow counts the work for each child: it does not grow.
func TestManyChildrenInARow(t *testing.T) {
	t.Parallel()
	const n = 1000
	r := newRig(agents{"echo": echo})
	lookups := make([]int, 0, n)
	root := func(ctx context.Context, a *agent) (string, error) {
		for range n {
			before := r.rec.lookups
			id, err := a.spawn(ctx, "echo", "x")
			if err != nil {
				return "", err
			}
			if _, err := a.collect(ctx, id); err != nil {
				return "", err
			}
			lookups = append(lookups, r.rec.lookups-before)
		}
		return "", nil
	}
	r.must(t, root)
	if slices.Max(lookups) != slices.Min(lookups) {
		t.Errorf("from %d to %d lookups for a child", slices.Min(lookups), slices.Max(lookups))
	}
	if got, want := len(r.rec.order), 3*n; got != want { // spawn, result, collect
		t.Errorf("%d records for %d children, want %d", got, n, want)
	}
	longest := 0
	for _, rec := range r.rec.Records {
		longest = max(longest, len(rec.Result))
	}
	if longest > 1000 {
		t.Errorf("a record has %d bytes", longest)
	}
	// When everything is on record, the log is read once, and no child is looked at. Each of the calls
	// is asked whether a hook decided about it.
	hooks := 2 * n
	r.rec = r.rec.until(len(r.rec.order))
	r.started, lookups = nil, lookups[:0]
	r.must(t, root)
	if r.rec.lookups != 2*n+1+hooks || len(r.started) != 0 {
		t.Errorf("%d lookups for a log of %d entries, %d children started", r.rec.lookups, 2*n, len(r.started))
	}
}
