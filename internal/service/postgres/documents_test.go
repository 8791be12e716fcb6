package postgres_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/engine/governor"
	"loki/internal/llm/provider"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
)

// provided is a model whose provider takes some calls at once and refuses others.
type provided struct {
	mu                     sync.Mutex
	most, atWork, refusals int
	peak                   int
	took                   time.Duration
}

func (p *provided) Chat(ctx context.Context, _ provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		p.mu.Lock()
		if p.atWork >= p.most {
			p.refusals++
			p.mu.Unlock()
			yield(provider.Chunk{}, &provider.Error{Kind: provider.RateLimited, Status: 429, RetryAfter: 50 * time.Millisecond})
			return
		}
		p.atWork++
		p.peak = max(p.peak, p.atWork)
		p.mu.Unlock()
		select {
		case <-time.After(p.took):
		case <-ctx.Done():
		}
		p.mu.Lock()
		p.atWork--
		p.mu.Unlock()
		yield(provider.Chunk{Kind: provider.End}, ctx.Err())
	}
}

// servers returns the limits of several servers on one database.
func servers(t *testing.T, n int) (list []*governor.Governor, dbs []*postgres.DB) {
	address := postgrestest.Database(t)
	for range n {
		g, db := new(governor.Governor), open(t, address)
		g.ShareThrough(func() (governor.Rows, error) {
			return &postgres.Documents{DB: db, Name: "limits", Topic: "limits"}, nil
		})
		t.Cleanup(g.Close)
		list, dbs = append(list, g), append(dbs, db)
	}
	return list, dbs
}

func limited(g *governor.Governor, p provider.Chat) provider.Chat {
	return g.Chat(p, governor.Options{Client: "st", Model: "m", Limits: governor.DefaultLimits(), Account: func() string { return "account" }})
}

func call(ctx context.Context, p provider.Chat) (err error) {
	for _, err = range p.Chat(ctx, provider.Request{}) {
		if err != nil {
			return err
		}
	}
	return err
}

// TestLimits: servers on one database keep to the limit of one account together, and learn it once.
func TestLimits(t *testing.T) {
	list, _ := servers(t, 3)
	p := &provided{most: 4, took: 50 * time.Millisecond}
	var wg sync.WaitGroup
	for _, g := range list {
		chat := limited(g, p)
		for range 6 {
			wg.Go(func() {
				for range 5 {
					if err := call(t.Context(), chat); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	known, err := list[0].List(t.Context())
	if err != nil || len(known) != 1 || known[0].Calls < 90 || known[0].AtWork != 0 || p.peak > 4 || p.refusals > 12 {
		t.Errorf("%+v, %v, %d at once, %d refused", known, err, p.peak, p.refusals)
	}
	if n, err := list[1].Reset(t.Context(), "another"); n != 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := list[1].Reset(t.Context(), "st"); n != 1 || err != nil {
		t.Error(n, err)
	}
	if known, err = list[2].List(t.Context()); err != nil || known[0].Calls != 0 {
		t.Errorf("%+v, %v", known, err)
	}
}

// TestLimitsOfTheDead: the calls of a server that is no more do not count, and what waits for those of one that lives begins with the news
// of their end.
func TestLimitsOfTheDead(t *testing.T) {
	list, dbs := servers(t, 3)
	p := &provided{most: 1, took: time.Hour}
	ctx, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	hold := func(g *governor.Governor) {
		wg.Go(func() {
			_ = call(ctx, g.Chat(p, governor.Options{Client: "st", Model: "m", Limits: governor.Limits{Share: true, Concurrency: 1}, Account: func() string { return "own" }}))
		})
		until(t, "a call at work", func() bool {
			known, err := g.List(t.Context())
			return err == nil && slices.ContainsFunc(known, func(s governor.Status) bool { return s.AtWork == 1 })
		})
	}
	hold(list[0])
	dead := join(t, dbs[0])
	if _, err := dbs[1].Pool().Exec(t.Context(), `DELETE FROM loki.members WHERE id = $1`, dead.ID()); err != nil {
		t.Fatal(err)
	}
	free := &provided{most: 1}
	if err := call(t.Context(), list[1].Chat(free, governor.Options{Client: "st", Model: "m", Limits: governor.Limits{Share: true, Concurrency: 1}, Account: func() string { return "own" }})); err != nil {
		t.Error(err)
	}
	end()
	wg.Wait()
}

// TestLimitsWithoutDatabase: a server whose database cannot be reached keeps to limits of its own.
func TestLimitsWithoutDatabase(t *testing.T) {
	g := new(governor.Governor)
	db := open(t, "postgres://nobody@127.0.0.1:1/none")
	g.ShareThrough(func() (governor.Rows, error) {
		return &postgres.Documents{DB: db, Name: "limits", Topic: "limits"}, nil
	})
	defer g.Close()
	begin := time.Now()
	chat := limited(g, &provided{most: 1})
	for range 3 {
		if err := call(t.Context(), chat); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("%v", took)
	}
}
