package run_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

func TestBudgetBelowABudget(t *testing.T) {
	root := run.NewBudget(graph.Budget{Tokens: 100}, usage(0))
	child := run.NewBudget(graph.Budget{Tokens: 30}, usage(0)).Under(root)
	free := run.NewBudget(graph.Budget{}, usage(0)).Under(root) // has no limit of its own
	reserve := func(b *run.Budget, tokens int) error {
		settle, err := b.Reserve(t.Context(), usage(tokens), usage(tokens), true)
		if err == nil {
			settle(usage(tokens))
		}
		return err
	}
	if err := reserve(child, 20); err != nil {
		t.Error(err)
	}
	err := reserve(child, 20)
	if fault.CodeOf(err) != fault.Limit || !child.Refused(err) || root.Refused(err) || free.Refused(err) {
		t.Errorf("20 of the child's 30 are used, and 20 more: %v", err)
	}
	if err := reserve(free, 75); err != nil {
		t.Error(err)
	}
	err = reserve(child, 10) // as much as the child has left
	if fault.CodeOf(err) != fault.Limit || !child.Refused(err) || !root.Refused(err) || !free.Refused(err) {
		t.Errorf("20 and 75 are used, and 10 more: %v", err)
	}
	child.Spend(usage(15)) // from the record
	if child.Overrun() == "" || root.Overrun() == "" || free.Overrun() != "" {
		t.Errorf("overruns %q, %q, %q", child.Overrun(), root.Overrun(), free.Overrun())
	}
	if err := reserve(free, 0); !free.Refused(err) || !root.Refused(err) || child.Refused(nil) || child.Refused(errors.New("boom")) {
		t.Errorf("the budget of all is exceeded: %v", err)
	}
	var none *run.Budget
	if none.Under(nil) != nil || child.Under(nil) != child || none.Refused(err) {
		t.Error("without a budget nothing is bounded")
	}
}

// TestBudgetOfTime has the time of a child run out, and then that of its parent.
func TestBudgetOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := run.NewBudget(graph.Budget{Duration: time.Minute}, usage(0)).SetIn("root.yaml")
		child := run.NewBudget(graph.Budget{Duration: time.Second}, usage(0)).Under(root)
		all, cancelAll := root.Within(t.Context(), 0)
		defer cancelAll()
		ctx, cancel := child.Within(all, 0)
		defer cancel()
		<-ctx.Done()
		if err := context.Cause(ctx); fault.CodeOf(err) != fault.Limit || !child.Refused(err) || root.Refused(err) || all.Err() != nil {
			t.Errorf("after a second: %v", err)
		}
		<-all.Done()
		if err := context.Cause(all); !root.Refused(err) || fault.HintOf(err) != "raise root.yaml" || err.Error() != "the budget of 1m0s is used up" {
			t.Errorf("after a minute: %v, %s", err, fault.HintOf(err))
		}
		var none *run.Budget
		if free, stop := none.Within(t.Context(), 0); free.Err() != nil {
			t.Error("without a budget nothing is bounded")
		} else {
			stop()
		}
	})
}

// TestBudgetOfATree has the calls of a tree of agents run side by side, with random budgets of
// their own, and each as long as it may be. What all use together stays within the budget of the
// root, except for what one call that runs alone uses more than estimated, and so does each child
// within its own.
func TestBudgetOfATree(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		const most = 100
		synctest.Test(t, func(t *testing.T) {
			type agent struct {
				budget *run.Budget
				parent *agent
				limit  int // 0 for none
				used   int
			}
			root := &agent{limit: 200 + rnd.IntN(2000)}
			root.budget = run.NewBudget(graph.Budget{Tokens: root.limit}, usage(0))
			agents := []*agent{root}
			for range 12 {
				a := &agent{parent: agents[rnd.IntN(len(agents))], limit: rnd.IntN(3) * rnd.IntN(800)}
				a.budget = run.NewBudget(graph.Budget{Tokens: a.limit}, usage(0)).Under(a.parent.budget)
				agents = append(agents, a)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // the clock of synctest: a deadlock ends there
			defer cancel()
			var mu sync.Mutex
			var wg sync.WaitGroup
			for _, a := range agents {
				for range 3 {
					pause, bounded := time.Duration(rnd.IntN(1000))*time.Millisecond, rnd.IntN(10) > 0
					wg.Go(func() {
						for {
							settle, err := a.budget.Reserve(ctx, usage(most/2), usage(most), bounded)
							if err != nil {
								if !a.budget.Refused(err) {
									t.Errorf("seed %d: %v", seed, err)
								}
								return
							}
							time.Sleep(pause)
							mu.Lock()
							for of := a; of != nil; of = of.parent {
								of.used += most
							}
							mu.Unlock()
							settle(usage(most))
						}
					})
				}
			}
			wg.Wait()
			for i, a := range agents {
				if a.limit > 0 && a.used > a.limit+most/2 {
					t.Errorf("seed %d: agent %d used %d of %d", seed, i, a.used, a.limit)
				}
			}
			if root.used < root.limit-most {
				t.Errorf("seed %d: only %d of %d were used", seed, root.used, root.limit)
			}
		})
	}
}

// TestLiftedBudget: it counts, and refuses nothing any more.
func TestLiftedBudget(t *testing.T) {
	b := run.NewBudget(graph.Budget{Tokens: 10}, usage(10))
	if _, err := b.Reserve(t.Context(), usage(5), usage(5), true); err == nil {
		t.Error("more than the budget was granted")
	}
	b.Lift()
	settle, err := b.Reserve(t.Context(), usage(5), usage(5), true)
	if err != nil {
		t.Fatal(err)
	}
	settle(usage(5))
	if got := b.Overrun(); !strings.Contains(got, "used 15 tokens") {
		t.Errorf("it reports %q", got)
	}
	(*run.Budget)(nil).Lift()
}
