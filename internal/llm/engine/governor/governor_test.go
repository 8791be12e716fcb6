package governor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/process/awake"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// server is a provider that takes a number of calls at once, and refuses others.
type server struct {
	mu       sync.Mutex
	most     int
	limit    func() int // replaces most if it is set
	atWork   int
	peak     int
	refusals int
	answers  int
	took     time.Duration
	after    time.Duration // that it asks refused calls to wait
	order    []string      // of the models of the calls that it took
	begun    []time.Time   // of these calls
}

func (s *server) begin(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit != nil {
		s.most = s.limit()
	}
	if s.atWork >= s.most {
		s.refusals++
		return false
	}
	s.atWork++
	s.peak = max(s.peak, s.atWork)
	s.order, s.begun = append(s.order, model), append(s.begun, time.Now())
	return true
}

func (s *server) ask(ctx context.Context, model string) error {
	if !s.begin(model) {
		return &provider.Error{Kind: provider.RateLimited, Status: 429, RetryAfter: s.after, Msg: "slow down"}
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.atWork--
		s.answers++
	}()
	select {
	case <-time.After(s.took):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if !yield(provider.Chunk{Kind: provider.Note, Text: "a note"}, nil) {
			return
		}
		if err := s.ask(ctx, req.Model); err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: "fine"}, nil) {
			yield(provider.Chunk{Kind: provider.End, Usage: chat.Usage{InputTokens: 3, OutputTokens: 2}}, nil)
		}
	}
}

func (s *server) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	return make([][]float32, len(req.Texts)), chat.Usage{}, s.ask(ctx, req.Model)
}

func (s *server) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	return nil, chat.Usage{}, s.ask(ctx, req.Model)
}

// ask makes one call and returns its text.
func ask(ctx context.Context, p provider.Chat, model string) (text string, err error) {
	for chunk, err := range p.Chat(ctx, provider.Request{Model: model}) {
		if err != nil {
			return text, err
		}
		if chunk.Kind == provider.Text {
			text += chunk.Text
		}
	}
	return text, nil
}

func options() Options { return Options{Client: "st", Model: "m", Limits: DefaultLimits()} }

// fanOut asks n times, so many at once, and returns how many calls failed.
func fanOut(ctx context.Context, t *testing.T, p provider.Chat, n, atOnce int) (failed int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	todo := make(chan int, n)
	for i := range n {
		todo <- i
	}
	close(todo)
	for range atOnce {
		wg.Go(func() {
			for range todo {
				if text, err := ask(ctx, p, "m"); err != nil || text != "fine" {
					mu.Lock()
					failed++
					mu.Unlock()
					t.Logf("%q, %v", text, err)
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// TestFanOut: a server that takes two calls at once answers all, and hardly refuses any.
func TestFanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 2, took: 600 * time.Millisecond, after: time.Second}
		var g Governor
		begin := time.Now()
		failed := fanOut(t.Context(), t, g.Chat(s, options()), 20, 8)
		if took := time.Since(begin); failed > 0 || s.refusals > 3 || took > 7*time.Second {
			t.Errorf("%d failed, %d refused, %v", failed, s.refusals, took)
		}
	})
}

// TestChangingServer: a server whose limit changes each minute answers all, almost as fast as it can, and hardly refuses any.
func TestChangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const items = 500
		begin := time.Now()
		limit := func(d time.Duration) int { return []int{2, 5, 1, 4}[int(d/time.Minute)%4] }
		s := &server{took: took, after: time.Second, limit: func() int { return limit(time.Since(begin)) }}
		var g Governor
		failed := fanOut(t.Context(), t, g.Chat(s, options()), items, 64)
		passed, best := time.Since(begin), time.Duration(0)
		for done := 0; done < items; best += took {
			done += limit(best)
		}
		t.Logf("%v, best is %v, %d refused", passed, best, s.refusals)
		if failed > 0 || s.refusals >= items/50 || passed.Seconds() > 1.10*best.Seconds() {
			t.Errorf("%d failed, %d refused, %v, best is %v", failed, s.refusals, passed, best)
		}
	})
}

// TestOwnMinute: no minute has more requests or tokens than the configuration says, also after a time without any, and no time
// is lost.
func TestOwnMinute(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1000}
		o := sharedOptions()
		o.Limits.RequestsPerMinute = 15
		time.Sleep(1500 * time.Millisecond)
		begin := time.Now()
		if failed := fanOut(t.Context(), t, sharing(t, dir).Chat(s, o), 60, 60); failed > 0 {
			t.Errorf("%d failed", failed)
		}
		for i := range s.begun[15:] {
			if d := s.begun[i+15].Sub(s.begun[i]); d < time.Minute {
				t.Errorf("16 calls begin within %v", d)
			}
		}
		if d := time.Since(begin); d > 184*time.Second {
			t.Errorf("%d calls took %v", len(s.begun), d)
		}
		o = Options{Client: "st", Model: "n", Limits: Limits{Learn: true, TokensPerMinute: 100, ParkAfter: time.Minute}}
		var g Governor
		e := g.Embedder(s, o)
		begin = time.Now()
		for _, size := range []int{30, 30, 30, 1000, 30} { // one that is longer than a minute allows is sent all the same
			if _, _, err := e.Embed(t.Context(), provider.EmbedRequest{Texts: []string{strings.Repeat("word ", size)}}); err != nil {
				t.Error(err)
			}
			t.Logf("%d words after %v", size, time.Since(begin))
		}
		if d := time.Since(begin); d < 2*time.Minute || d > 185*time.Second {
			t.Errorf("the tokens took %v", d)
		}
	})
}

// TestNoLimit: where nothing refuses, as many calls are made at once as there are.
func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1000, took: 600 * time.Millisecond}
		var g Governor
		for _, most := range []time.Duration{730 * time.Millisecond, 600 * time.Millisecond} {
			begin := time.Now()
			failed := fanOut(t.Context(), t, g.Chat(s, options()), 100, 100)
			if took := time.Since(begin); failed > 0 || s.peak != 100 || took > most {
				t.Errorf("%d failed, %d at once, %v", failed, s.peak, took)
			}
		}
	})
}

// TestRefusedForGood: a provider that refuses everything ends the calls after the longest wait, all of them, with its own error and a
// time at which to try again.
func TestRefusedForGood(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Second, 59 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{after: after}
			var g Governor
			p := g.Chat(s, options())
			var late atomic.Int32
			var wg sync.WaitGroup
			begin := time.Now()
			for range 50 {
				wg.Go(func() {
					_, err := ask(AtMost(t.Context(), Low), p, "m")
					took := time.Since(begin)
					if took > time.Minute && late.Add(1) == 1 { // the one call that asks again after a minute
						took -= time.Minute + time.Second
					}
					if provider.KindOf(err) != provider.RateLimited || provider.RetryAfter(err) < 59*time.Second || took < 20*time.Second || took > time.Minute {
						t.Errorf("asked to wait %v: %v after %v", after, err, took)
					}
				})
			}
			wg.Wait()
			if s.refusals > 50+30 { // all of them in the first moment
				t.Errorf("asked to wait %v: %d refusals", after, s.refusals)
			}
		})
	}
}

// TestSlowCalls: that one more call is refused while calls take long does not mean that nothing is answered.
func TestSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 2, took: 3 * time.Minute, after: time.Second}
		var g Governor
		begin := time.Now()
		failed := fanOut(t.Context(), t, g.Chat(s, options()), 8, 8)
		if took := time.Since(begin); failed > 0 || took > 12*time.Minute+time.Second {
			t.Errorf("%d failed, %d refused, %v", failed, s.refusals, took)
		}
	})
}

// TestRefusedBefore: that everything was refused some time ago does not end a call that is refused now.
func TestRefusedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{after: time.Second}
		var g Governor
		p := g.Chat(s, options())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, _ = ask(ctx, p, "m")
		time.Sleep(time.Hour)
		time.AfterFunc(5*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.most = 1
		})
		if text, err := ask(t.Context(), p, "m"); err != nil || text != "fine" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// TestLongWait: a provider that asks for a long wait is not asked again soon, and calls do not wait for it.
func TestLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{after: 2 * time.Hour}
		var g Governor
		p := g.Chat(s, options())
		begin := time.Now()
		for range 50 {
			_, err := ask(t.Context(), p, "m")
			if left := provider.RetryAfter(err); left < time.Hour+59*time.Minute || left > 2*time.Hour {
				t.Fatalf("%v asks to wait %v", err, left)
			}
		}
		if s.refusals != 1 || time.Since(begin) > time.Second {
			t.Errorf("asked %d times in %v", s.refusals, time.Since(begin))
		}
		s.most = 1
		time.Sleep(time.Minute)
		for range 2 { // the first one asks all the same, and is answered
			if _, err := ask(t.Context(), p, "m"); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOrder: who reads along comes first, a run does not wait for one with more calls, and the many are not forgotten.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1, took: time.Second}
		var g Governor
		o := options()
		o.Limits.Concurrency = 1
		p := g.Chat(s, o)
		var wg sync.WaitGroup
		start := func(name string, priority Priority) {
			ctx := event.NewContext(t.Context(), event.NewScope(nil, event.Source{Run: name}, nil))
			wg.Go(func() {
				if _, err := ask(AtMost(ctx, priority), p, name); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		start("first", High)
		for range 20 {
			start("low", Low)
		}
		for range 12 {
			start("node", Normal)
		}
		start("chat", High)
		wg.Wait()
		if got := fmt.Sprint(s.order[:15]); got != "[first chat node node node node node node node low node node node node node]" {
			t.Error(got)
		}
	})
}

// TestWaiting: a wait is reported, stops the time of a node, ends with its context, and leaves no call under way.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1, took: 10 * time.Second}
		var g Governor
		o := options()
		o.Limits.Concurrency = 1
		p := g.Chat(s, o)
		var got eventtest.Collector
		ctx := event.NewContext(t.Context(), event.NewScope(&got, event.Source{Node: "n"}, nil))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = ask(t.Context(), p, "m") })
		synctest.Wait()
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := ask(soon, p, "m"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		timed, end := awake.WithTimeout(ctx, 12*time.Second)
		defer end()
		metered, waited := awake.WithMeter(timed)
		if _, err := ask(metered, p, "m"); err != nil {
			t.Error(err)
		}
		if d := waited(); d != 9*time.Second {
			t.Errorf("waited %v", d)
		}
		wg.Wait()
		bodies := eventtest.Bodies[event.Limited](&got)
		if len(bodies) != 3 || bodies[2].Waited != 9000 || bodies[0].Client != "st" || bodies[0].Model != "m" || bodies[0].Reason != "concurrency" {
			t.Errorf("%+v", bodies)
		}
		for range p.Chat(ctx, provider.Request{}) {
			break // a reader who has enough
		}
		begin := time.Now()
		if _, err := ask(ctx, p, "m"); err != nil || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestRefusalIsReported: the event that ends a wait says how often the call was refused, and how long it waited.
func TestRefusalIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1, took: 500 * time.Millisecond, after: 2 * time.Second}
		var g Governor
		p := g.Chat(s, options())
		var got eventtest.Collector
		ctx := event.NewContext(t.Context(), event.NewScope(&got, event.Source{Node: "n"}, nil))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = ask(t.Context(), p, "m") })
		synctest.Wait()
		if _, err := ask(ctx, p, "m"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		bodies := eventtest.Bodies[event.Limited](&got)
		if last := bodies[len(bodies)-1]; s.refusals != 1 || last.Refused != 1 || last.Waited != 2000 || !last.Until.IsZero() {
			t.Errorf("%d refusals, %+v", s.refusals, bodies)
		}
	})
}

// TestOtherModels: embedding models and rerankers have limits, too.
func TestOtherModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1, took: time.Second, after: time.Second}
		var g Governor
		embedder, reranker := g.Embedder(s, options()), g.Reranker(s, Options{Client: "st", Model: "r", Limits: DefaultLimits()})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if v, _, err := embedder.Embed(t.Context(), provider.EmbedRequest{Texts: []string{"a"}}); err != nil || len(v) != 1 {
					t.Error(v, err)
				}
				if _, _, err := reranker.Rerank(t.Context(), provider.RerankRequest{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// TestConfigured: the limits of the configuration hold, also without learning.
func TestConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 1000, took: time.Second, after: time.Second}
		var g Governor
		o := Options{Client: "st", Model: "m", Limits: Limits{Concurrency: 3, ParkAfter: time.Minute}}
		begin := time.Now()
		if failed := fanOut(t.Context(), t, g.Chat(s, o), 9, 9); failed > 0 || s.peak != 3 || time.Since(begin) != 3*time.Second {
			t.Errorf("%d failed, %d at once, %v", failed, s.peak, time.Since(begin))
		}
		o = Options{Client: "st", Model: "n", Limits: Limits{Learn: true, RequestsPerMinute: 60, ParkAfter: time.Minute}}
		begin = time.Now()
		if failed := fanOut(t.Context(), t, g.Chat(s, o), 90, 90); failed > 0 || time.Since(begin).Round(time.Second) != 62*time.Second {
			t.Errorf("%d failed, %v", failed, time.Since(begin))
		}
		s.most = 0
		o = Options{Client: "st", Model: "o", Limits: Limits{Concurrency: 3}}
		if _, err := ask(t.Context(), g.Chat(s, o), "m"); provider.KindOf(err) != provider.RateLimited || s.refusals != 1 {
			t.Errorf("%v after %d refusals", err, s.refusals)
		}
		if p := g.Chat(s, Options{}); p != provider.Chat(s) {
			t.Error("a client without limits is not what it was")
		}
	})
}

// away is a provider that does not answer for some time.
type away struct {
	server
	until time.Time
	asked int
}

func (a *away) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	if a.mu.Lock(); time.Now().Before(a.until) {
		defer a.mu.Unlock()
		a.asked++
		return func(yield func(provider.Chunk, error) bool) {
			yield(provider.Chunk{}, &provider.Error{Kind: provider.Transient, Status: 529, Msg: "overloaded"})
		}
	}
	a.mu.Unlock()
	return a.server.Chat(ctx, req)
}

// TestBreaker: a provider that did not answer five calls is asked once in a while, until it answers.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Governor
		begin := time.Now()
		a := &away{server: server{most: 9}, until: begin.Add(25 * time.Second)}
		p := g.Chat(a, options())
		node := AtMost(t.Context(), Normal)
		for range outages {
			if _, err := ask(node, p, "m"); provider.KindOf(err) != provider.Transient {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 4 { // after 10 s, after 20 s more, and then all
			wg.Go(func() { _, _ = ask(node, p, "m") })
		}
		wg.Wait()
		if took := time.Since(begin).Round(time.Second); a.asked != outages+1 || took != 30*time.Second {
			t.Errorf("asked %d times in %v", a.asked, took)
		}
		// Who reads along is not kept waiting, and neither is who has another model.
		a.until = time.Now().Add(time.Hour)
		for range outages + 2 {
			_, _ = ask(t.Context(), p, "m")
		}
		if a.asked != 2*outages+3 {
			t.Errorf("asked %d times", a.asked)
		}
		o := options()
		o.Model, o.Fallback = "n", true
		p, a.asked = g.Chat(a, o), 0
		begin = time.Now()
		for i := range outages + 2 {
			_, err := ask(t.Context(), p, "n")
			if e, ok := errors.AsType[*provider.Error](err); !ok || e.Away != (i >= outages) {
				t.Errorf("%d: %+v", i, err)
			}
		}
		if a.asked != outages || time.Since(begin) > time.Second {
			t.Errorf("asked %d times in %v", a.asked, time.Since(begin))
		}
		for _, s := range listed(t, &g) {
			if s.Breaker != "open" || s.Client != "st" || s.Calls == 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestHeaders: limits of requests and tokens are learned from the header fields, and calls wait before they are refused.
func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		s := state{AtOnce: 100}
		begin := func(need amount) time.Duration {
			t.Helper()
			ticket, _, wait := s.admit(now, "p", DefaultLimits(), need, now)
			if ticket != nil {
				s.endSucceeded(now, "p", ticket, amount{})
			}
			return wait
		}
		first, _, _ := s.admit(now, "p", DefaultLimits(), amount{}, now)
		h := http.Header{}
		h.Set("x-ratelimit-limit-requests", "60")
		h.Set("x-ratelimit-remaining-requests", "2")
		h.Set("x-ratelimit-reset-requests", "58s")
		h.Set("anthropic-ratelimit-input-tokens-limit", "1000")
		h.Set("anthropic-ratelimit-input-tokens-remaining", "400")
		h.Set("anthropic-ratelimit-input-tokens-reset", now.Add(time.Minute).Format(time.RFC3339))
		s.learn(now, first, readings(h, now))
		for i, want := range []time.Duration{0, 0, time.Second} {
			if got := begin(amount{}); got.Round(time.Millisecond) != want {
				t.Errorf("call %d waits %v", i, got)
			}
		}
		now = now.Add(20 * time.Second)
		if got := begin(amount{input: 700}); got.Round(time.Second) != 5*time.Second { // as long as nothing was refused
			t.Errorf("a long call waits %v", got)
		}
		s.Refused = true
		if got := begin(amount{input: 700}); got.Round(time.Second) != 10*time.Second {
			t.Errorf("a long call waits %v", got)
		}
	})
}

// FuzzHeaders: whatever a server writes, a call begins within a bound.
func FuzzHeaders(f *testing.F) {
	f.Add("10", "0", "6m0s", "1000", "-1", "2026-11-30T10:00:00Z", "30", true)
	f.Add("1e308", "NaN", "-5s", "Inf", "0", "1e18", "-1e300", false)
	f.Add("1", "0", "999999999", "1", "0", "9999-12-31T00:00:00Z", "1e9", true)
	f.Fuzz(func(t *testing.T, limit, left, reset, limit2, left2, reset2, after string, refuse bool) {
		now := time.Unix(1.8e9, 0)
		h := http.Header{}
		h.Set("x-ratelimit-limit-requests", limit)
		h.Set("x-ratelimit-remaining-requests", left)
		h.Set("x-ratelimit-reset-requests", reset)
		h.Set("anthropic-ratelimit-tokens-limit", limit2)
		h.Set("anthropic-ratelimit-tokens-remaining", left2)
		h.Set("anthropic-ratelimit-tokens-reset", reset2)
		s := state{AtOnce: firstAtOnce}
		need := amount{input: 1e6, output: 1e6}
		call, _, _ := s.admit(now, "p", DefaultLimits(), need, now)
		list := readings(h, now)
		s.learn(now, call, list)
		if wait, _ := number(after); refuse {
			if d := s.endRefused(now, "p", call, DefaultLimits(), seconds(wait), usedUp(list)); d <= 0 || d > longestWait {
				t.Fatalf("a refused call waits %v", d)
			}
		} else {
			s.endSucceeded(now, "p", call, need)
		}
		since := now
		for range 20 {
			ticket, why, wait := s.admit(now, "p", DefaultLimits(), need, since)
			if ticket != nil {
				s.endSucceeded(now, "p", ticket, need)
				if now.Sub(since) > 2*longGuess {
					t.Fatalf("a call waits %v", now.Sub(since))
				}
				since = now
				continue
			}
			if wait <= 0 || wait > longestWait {
				t.Fatalf("a call waits %v", wait)
			}
			if why == paused {
				wait = min(wait, longGuess)
			}
			now = now.Add(wait)
		}
	})
}

// TestRateOfTime: a refusal for a quota of a time has all calls wait, and says nothing about calls at once.
func TestRateOfTime(t *testing.T) {
	for _, rate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := state{AtOnce: 8, Refused: true}
			now := time.Now()
			var calls []*ticket
			for range 3 {
				c, _, _ := s.admit(now, "p", DefaultLimits(), amount{}, now)
				calls = append(calls, c)
			}
			s.endRefused(now.Add(time.Millisecond), "p", calls[0], DefaultLimits(), 3*time.Second, rate)
			_, why, _ := s.admit(now.Add(time.Second), "p", DefaultLimits(), amount{}, now)
			if want := map[bool]reason{false: slots, true: paused}[rate]; why != want {
				t.Errorf("%v: a call waits because of %q", rate, why)
			}
		})
	}
}

// TestBesideMany: a chat beside 500 calls of low priority begins as soon as one of them ends.
func TestBesideMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{most: 4, took: time.Second, after: time.Second}
		var g Governor
		p := g.Chat(s, options())
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				if _, err := ask(AtMost(t.Context(), Low), p, "low"); err != nil {
					t.Error(err)
				}
			})
		}
		for range 10 {
			time.Sleep(7300 * time.Millisecond)
			begin := time.Now()
			if _, err := ask(t.Context(), p, "chat"); err != nil || time.Since(begin) > 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		}
		wg.Wait()
	})
}
