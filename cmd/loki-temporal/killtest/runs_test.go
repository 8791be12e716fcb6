//go:build unix

package killtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/temporaltest"
)

// TestStoppedRuns goes on with runs that are over without an output.
func TestStoppedRuns(t *testing.T) {
	s := newServer(t)
	begin := func(t *testing.T) (w *world, id string) {
		w = newWorld(t, s)
		w.work()
		id = w.do("-a", "./agent", "--detach", "prompt")
		w.await(id, "suspended", nil)
		return w, id
	}
	finish := func(t *testing.T, w *world, id string) {
		t.Helper()
		if _, said, code := w.try("--resume", id); code != 8 || !strings.Contains(said, "approve: Go on?") {
			t.Fatalf("resumed: exit status %d\n%s", code, said)
		}
		printed := w.do("--resume", id, "--answer", "go")
		if o := w.outcome(w.await(id, "done", nil)); printed == "" || o.Output != printed || len(o.Effects) != effects {
			t.Errorf("printed %q, %+v", printed, o)
		}
		for asked, n := range w.calls {
			if n != 1 {
				t.Errorf("%d calls of the model with %q", n, asked)
			}
		}
		if _, said, code := w.try("--resume", id); code != 2 || !strings.Contains(said, "is done") {
			t.Errorf("resumed when it was done: exit status %d\n%s", code, said)
		}
	}
	t.Run("canceled", func(t *testing.T) {
		w, id := begin(t)
		w.do("--cancel", id)
		w.await(id, "canceled", nil)
		finish(t, w, id)
	})
	t.Run("terminated", func(t *testing.T) {
		w, id := begin(t)
		if err := w.client.TerminateWorkflow(t.Context(), id, "", "test"); err != nil {
			t.Fatal(err)
		}
		if shown := w.do("--run", id); !strings.Contains(shown, "canceled") || !strings.Contains(shown, "was ended at the server") {
			t.Errorf("shown:\n%s", shown)
		}
		finish(t, w, id)
	})
	t.Run("changed", func(t *testing.T) {
		w, id := begin(t)
		if err := os.WriteFile(filepath.Join(w.dir, "agent", "count.sh"), []byte(countScript+"\n# changed\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		const changed = "the contents of count.sh changed"
		if _, said, code := w.try("--resume", id, "--answer", "go"); code != 3 || !strings.Contains(said, changed) {
			t.Errorf("answered: exit status %d\n%s", code, said)
		}
		if _, said, code := w.try("--resume", id); code != 3 || !strings.Contains(said, changed) || !strings.Contains(said, "loki-temporal --resume "+id+" --force") {
			t.Errorf("resumed: exit status %d\n%s", code, said)
		}
		printed := w.do("--resume", id, "--force")
		if o := w.outcome(w.await(id, "done", nil)); printed == "" || o.Output != printed || len(o.Effects) != effects {
			t.Errorf("printed %q, %+v", printed, o)
		}
	})
	t.Run("not_there", func(t *testing.T) {
		w, _ := begin(t)
		for _, args := range [][]string{{"--run", "none"}, {"--resume", "none"}, {"--resume", "none", "--answer", "x"}, {"--cancel", "none"}} {
			if _, said, code := w.try(args...); code != 4 {
				t.Errorf("%q: exit status %d\n%s", args, code, said)
			}
		}
	})
}

// TestStoppedWorker ends a worker by SIGTERM while a run goes on. It gives its nodes back at once, although a worker without a
// sign of life would count as dead much later.
func TestStoppedWorker(t *testing.T) {
	w := newWorld(t, newServer(t))
	w.work()
	id := w.do("-a", "./agent", "--detach", "--heartbeat", "5m", "prompt")
	rnd := rand.New(rand.NewPCG(3, 4))
	left := 4
	w.await(id, "suspended", func() {
		if left == 0 {
			return
		}
		left--
		time.Sleep(time.Duration(rnd.Float64() * float64(time.Second)))
		w.end(0, syscall.SIGTERM)
		w.work()
	})
	w.do("--resume", id, "--answer", "go", "--detach")
	if o := w.outcome(w.await(id, "done", nil)); o.Output == "" || len(o.Effects) != effects {
		t.Errorf("%+v", o)
	}
	t.Logf("%d workers stopped", 4-left)
}

// TestContinuedRun has a run go on in a new workflow whenever its history has 30 events, while workers are killed.
func TestContinuedRun(t *testing.T) {
	calm := newWorld(t, newServer(t))
	calm.work()
	id := calm.do("-a", "./agent", "--detach", "prompt")
	calm.await(id, "suspended", nil)
	calm.do("--resume", id, "--answer", "go", "--detach")
	want := calm.outcome(calm.await(id, "done", nil))

	limits := dynamicconfig.StaticClient{dynamicconfig.HistoryCountSuggestContinueAsNew.Key(): 30}
	w := newWorld(t, newServer(t, temporaltest.WithBaseServerOptions(temporal.WithDynamicConfigClient(limits))))
	w.work()
	id = w.do("-a", "./agent", "--detach", "--heartbeat", "2s", "prompt")
	first, err := w.client.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	left := 4
	disturb := func() {
		if left == 0 {
			return
		}
		left--
		time.Sleep(time.Duration(rnd.Float64() * float64(time.Second)))
		w.kill(0)
		w.work()
	}
	w.await(id, "suspended", disturb)
	w.do("--resume", id, "--answer", "go", "--detach")
	got := w.outcome(w.await(id, "done", disturb))
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("the run differs:\n got %+v\nwant %+v", got, want)
	}
	last, err := w.client.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := first.GetWorkflowExecutionInfo().GetExecution().GetRunId(), last.GetWorkflowExecutionInfo().GetExecution().GetRunId(); a == b {
		t.Error("the run did not go on in a new workflow")
	}
	t.Logf("%d workers killed", 4-left)
}
