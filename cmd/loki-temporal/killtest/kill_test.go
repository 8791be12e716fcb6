//go:build unix

package killtest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

var update = flag.Bool("update", false, "write the history of the undisturbed run for the replay test of the driver")

// historyFile is the history that the driver's replay test reads.
var historyFile = filepath.Join("..", "driver", "testdata", "history.json")

// TestUndisturbed runs the graph with a worker that lives.
func TestUndisturbed(t *testing.T) {
	w := newWorld(t, newServer(t))
	start := w.begin("-a", "./agent", "prompt")
	w.work() // later than what waits for it
	_, said, code := start()
	var id string
	if _, err := fmt.Sscanf(said, "run %s\n", &id); err != nil || code != 8 || !strings.Contains(said, "approve: Go on? [go, stop]") {
		t.Fatalf("exit status %d:\n%s", code, said)
	}
	if _, said, code := w.try("--resume", id, "--answers", "wrong.yaml"); code != 2 || !strings.Contains(said, `has no waiting question "review"`) {
		t.Errorf("exit status %d:\n%s", code, said)
	}
	printed := w.do("--resume", id, "--answer", "go")
	o := w.outcome(w.await(id, "done", nil))
	if o.Output == "" || len(o.Effects) != effects {
		t.Fatalf("the run is not what it should be: %+v", o)
	}
	for asked, n := range w.calls {
		if n != 1 {
			t.Errorf("%d calls of the model with %q", n, asked)
		}
	}
	for key, n := range w.made {
		if n != 1 {
			t.Errorf("%d effects with key %s", n, key)
		}
	}
	if printed != o.Output {
		t.Errorf("printed %q, want %q", printed, o.Output)
	}
	if *update {
		w.writeHistory(id)
	}
}

// TestEncrypted looks for words of a run in its history.
func TestEncrypted(t *testing.T) {
	s := newServer(t)
	for _, key := range []string{"", "0123456789abcdef0123456789abcdef"} {
		t.Run(fmt.Sprint(len(key)), func(t *testing.T) {
			w := newWorld(t, s)
			w.key = key
			w.work()
			id := w.do("-a", "./agent", "--detach", "prompt")
			if _, said, code := w.try("--resume", id); code != 8 {
				t.Fatalf("exit status %d:\n%s", code, said)
			}
			if printed := w.do("--resume", id, "--answer", "go"); !strings.Contains(printed, "said think about prompt") {
				t.Errorf("printed %q", printed)
			}
			history, err := protojson.Marshal(w.history(id))
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, ev := range w.history(id).GetEvents() {
				for _, words := range []string{"think about", "Go on?", "did 1", "initial_prompt"} {
					if strings.Contains(ev.String(), words) {
						found++
					}
				}
			}
			if (found == 0) != (key != "") || len(history) < 10_000 {
				t.Errorf("%d words of the run in %d bytes of its history", found, len(history))
			}
		})
	}
}

// history returns the history of a run.
func (w *world) history(id string) *historypb.History {
	w.t.Helper()
	var h historypb.History
	for events := w.client.GetWorkflowHistory(context.Background(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		ev, err := events.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		h.Events = append(h.Events, ev)
	}
	return &h
}

// writeHistory keeps the history of a run.
func (w *world) writeHistory(id string) {
	w.t.Helper()
	data, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(w.history(id))
	if err == nil {
		err = os.WriteFile(historyFile, append(data, '\n'), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestKilledWorkers kills workers with SIGKILL at random instants while a run goes on, and all of them before its question is
// answered. The run ends as one whose workers lived.
func TestKilledWorkers(t *testing.T) {
	s := newServer(t)
	calm := newWorld(t, s)
	calm.work()
	begin := time.Now()
	id := calm.do("-a", "./agent", "--detach", "prompt")
	calm.await(id, "suspended", nil)
	took := time.Since(begin)
	calm.do("--resume", id, "--answer", "go", "--detach")
	want := calm.outcome(calm.await(id, "done", nil))
	if want.Output == "" || len(want.Effects) != effects {
		t.Fatalf("the undisturbed run is not what it should be: %+v", want)
	}
	rounds, kills := 2, 8
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		rounds, kills = 6, 10
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t, s)
			w.work()
			w.work()
			id := w.do("-a", "./agent", "--detach", "--heartbeat", "2s", "prompt")
			left := kills
			disturb := func() {
				if left == 0 {
					return
				}
				left--
				time.Sleep(time.Duration(rnd.Float64() * float64(took) / 4).Round(time.Millisecond))
				w.kill(rnd.IntN(len(w.workers)))
				w.work()
			}
			w.await(id, "suspended", disturb)
			before := kills - left
			for range len(w.workers) {
				w.kill(0)
			}
			w.do("--resume", id, "--answer", "go", "--detach") // no worker lives
			w.work()
			left = 3
			got := w.outcome(w.await(id, "done", disturb))
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("the run differs:\n got %+v\nwant %+v", got, want)
			}
			repeated := 0
			for _, n := range w.calls {
				repeated += n - 1
			}
			again := 0
			for _, n := range w.made {
				again += n - 1
			}
			t.Logf("%d workers killed before the question, %d after it; %d calls of the model and %d effects were made again, these with the same keys", before, 3-left, repeated, again)
			if limit := 4 * (kills + 4); repeated > limit { // four at once, at most
				t.Errorf("%d calls of the model were made again", repeated)
			}
		})
	}
}

// TestKilledSaga kills workers while a run waits, calls models side by side within a budget, and undoes what it did. Each effect is made once, and so is each
// compensation.
func TestKilledSaga(t *testing.T) {
	s := newServer(t)
	rounds, kills := 2, 6
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		rounds, kills = 10, 8
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	want := ""
	for i := range rounds + 1 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t, s)
			w.work()
			w.work()
			id := w.do("-a", "./saga", "--detach", "--heartbeat", "2s", "prompt")
			w.do("--signal", id, `paid={"sum": 5}`)
			left := kills
			w.await(id, "failed", func() {
				if i == 0 || left == 0 {
					return
				}
				left--
				time.Sleep(time.Duration(rnd.Float64() * float64(time.Second)).Round(time.Millisecond))
				w.kill(rnd.IntN(len(w.workers)))
				w.work()
			})
			said := w.do("--run", id)
			if !strings.Contains(said, "undone: 2 nodes") || strings.Contains(said, "could not be undone") {
				t.Fatal(said)
			}
			if len(w.made) != 4 {
				t.Errorf("effects %v, want those of two nodes and of two compensations", w.made)
			}
			got := strings.NewReplacer(id, "ID", w.dir, "DIR").Replace(w.do("--run", id, "--state"))
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("state %s\nwant  %s", got, want)
			}
			if _, said, code := w.try("--resume", id); code != 2 || !strings.Contains(said, "loki-temporal --fork") {
				t.Errorf("exit status %d:\n%s", code, said)
			}
			t.Logf("%d workers killed; effects by key: %v", kills-left, w.made)
		})
	}
}

// TestKilledBudget kills workers while two nodes use up a budget side by side: it is kept.
func TestKilledBudget(t *testing.T) {
	s := newServer(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t, s)
			w.work()
			w.work()
			id := w.do("-a", "./budget", "--detach", "--heartbeat", "2s", "prompt")
			left := 4
			got := w.await(id, "failed", func() {
				if i == 0 || left == 0 {
					return
				}
				left--
				time.Sleep(time.Duration(rnd.Float64() * float64(time.Second) / 2).Round(time.Millisecond))
				w.kill(rnd.IntN(len(w.workers)))
				w.work()
			})
			var used struct {
				In  int `json:"input_tokens"`
				Out int `json:"output_tokens"`
			}
			if err := json.Unmarshal(got.Usage, &used); err != nil {
				t.Fatal(err)
			}
			if n := used.In + used.Out; got.Failure.Code != "limit" || n < 135 || n > 165 { // a call more at most
				t.Errorf("%d tokens used, %+v", n, *got.Failure)
			}
			t.Logf("%d workers killed, %d tokens used, %d calls of the model", 4-left, used.In+used.Out, len(w.calls))
		})
	}
}
