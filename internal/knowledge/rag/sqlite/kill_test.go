//go:build unix

package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text/sample"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/sqlite"
)

// The kill test builds a knowledge base in a process of its own, kills that process with SIGKILL at
// a random moment, and goes on with the build in another one. Meanwhile the index in use answers as
// before, and in the end all is as if the build had not been disturbed. It ends after 10 kills that hit
// a build, or after 100 with LOKI_KILL_TEST=full.
//
// The moments are spread evenly over the time of a build that was not disturbed. They are counted from
// the operation that was under way then, which the worker announces, because processes take different
// times to begin.

// workerFile is the variable that holds the file the worker process builds.
const workerFile = "LOKI_TEST_RAG_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(workerFile); file != "" {
		if err := buildVersion(context.Background(), announcedStore{sqlite.New(file)}, 2); err != nil {
			fmt.Fprintln(os.Stderr, err, fault.HintOf(err))
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// announcedStore writes a byte to the standard output before each operation that writes.
type announcedStore struct{ rag.Store }

func announce() { _, _ = os.Stdout.Write([]byte{'.'}) } // without it the test fails

func (s announcedStore) Build(ctx context.Context, set rag.Settings) (rag.Build, error) {
	announce()
	b, err := s.Store.Build(ctx, set)
	return announcedBuild{b}, err
}

type announcedBuild struct{ rag.Build }

func (b announcedBuild) Put(ctx context.Context, f rag.File, chunks []rag.Chunk) error {
	announce()
	return b.Build.Put(ctx, f, chunks)
}

func (b announcedBuild) Flush(ctx context.Context) error {
	announce()
	return b.Build.Flush(ctx)
}

func (b announcedBuild) Commit(ctx context.Context, keep func(rag.File) (string, bool)) (rag.Stats, error) {
	announce()
	return b.Build.Commit(ctx, keep)
}

func (b announcedBuild) Close() error {
	announce()
	return b.Build.Close()
}

// moment is a time in a build.
type moment struct {
	operation int // that has begun, from 1; 0 for none
	after     time.Duration
}

// never is no moment of a build.
var never = moment{operation: -1}

// work runs the worker to its end, or kills it at a moment. It reports whether it was killed, and
// returns when the operations began and the last one ended.
func work(t *testing.T, path string, kill moment) (killed bool, begun []time.Time) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerFile+"="+path, "GORACE=atexit_sleep_ms=0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	signals := bufio.NewReaderSize(out, 16)
	for {
		if len(begun) == kill.operation {
			timer := time.AfterFunc(kill.after, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		_, err := signals.ReadByte()
		begun = append(begun, time.Now())
		if err != nil {
			break
		}
	}
	_ = cmd.Wait() // the status says it
	if status := cmd.ProcessState.ExitCode(); status > 0 {
		t.Fatalf("exit status %d: %s", status, errs.String())
	}
	return cmd.ProcessState.ExitCode() == -1, begun
}

func TestKill(t *testing.T) {
	start := built(t)
	before := dump(t, sqlite.New(start))
	data, err := os.ReadFile(start)
	if err != nil {
		t.Fatal(err)
	}
	// base returns another knowledge base like that.
	base := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "base.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	// The first run of a program is slower.
	var calm string
	var begun []time.Time
	for range 2 {
		calm = base(t)
		_, begun = work(t, calm, never)
	}
	want := dump(t, sqlite.New(calm))
	if want == before {
		t.Fatal("the versions do not differ")
	}
	took := begun[len(begun)-1].Sub(begun[0])
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() moment {
		at := begun[0].Add(time.Duration(rnd.Float64() * float64(took)))
		i, _ := slices.BinarySearchFunc(begun, at, time.Time.Compare)
		i = max(i, 1)
		return moment{i, at.Sub(begun[i-1])}
	}

	need := 10 / sample.Step(3)
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		need = 100
	}
	kills, resumed, late := 0, 0, 0
	for i := 0; kills < need; i++ {
		if i == 5*need {
			t.Fatalf("only %d of %d tries hit a build", kills, kills+late)
		}
		t.Run(fmt.Sprintf("random_%03d", i), func(t *testing.T) {
			path := base(t)
			for range 1 + rnd.IntN(3) {
				if killed, _ := work(t, path, random()); !killed {
					late++
					break
				}
				kills++
				if _, err := os.Stat(path + ".build"); err == nil {
					resumed++
				}
				if got := dump(t, sqlite.New(path)); got != before && got != want {
					t.Error("the index in use is neither the old one nor the new one")
				}
			}
			work(t, path, never)
			if got := dump(t, sqlite.New(path)); got != want {
				t.Errorf("the index differs from that of a build that was not disturbed:\n%.2000s", got)
			}
			if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Logf("%d operations in %s; killed %d times, %d of them with a build to go on with; %d tries were too late", len(begun)-1, took, kills, resumed, late)
}
