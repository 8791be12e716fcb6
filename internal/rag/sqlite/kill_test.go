//go:build unix

package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/rag/sqlite"
)

// The kill test builds a knowledge base in a process of its own, kills that process with SIGKILL at
// a random moment, and goes on with the build in another one. Meanwhile the index in use answers as
// before, and in the end all is as if the build had not been disturbed. LOKI_KILL_TEST=full tries 100
// moments; otherwise it is a sample.

// workerFile is the variable that holds the file the worker process builds.
const workerFile = "LOKI_TEST_RAG_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(workerFile); file != "" {
		if err := buildVersion(context.Background(), sqlite.New(file), 2); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestKill(t *testing.T) {
	dir := t.TempDir()
	start := filepath.Join(dir, "start.db")
	if err := buildVersion(t.Context(), sqlite.New(start), 1); err != nil {
		t.Fatal(err)
	}
	before := dump(t, sqlite.New(start))
	// base returns another knowledge base like that.
	base := func(t *testing.T) string {
		data, err := os.ReadFile(start)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "base.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// work runs the worker to its end, or kills it after a time. It reports whether it was killed.
	work := func(t *testing.T, path string, killAfter time.Duration) bool {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), workerFile+"="+path)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killAfter > 0 {
			timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		_ = cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status > 0 {
			t.Fatalf("exit status %d: %s", status, errs.String())
		}
		return cmd.ProcessState.ExitCode() == -1
	}

	calm := base(t)
	begin := time.Now()
	work(t, calm, 0)
	took := time.Since(begin)
	want := dump(t, sqlite.New(calm))
	if want == before {
		t.Fatal("the versions do not differ")
	}
	moments := 10
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		moments = 100
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	kills, begun := 0, 0
	for i := range moments {
		t.Run(fmt.Sprintf("random_%03d", i), func(t *testing.T) {
			path := base(t)
			for range 1 + rnd.IntN(3) {
				if !work(t, path, time.Duration(rnd.Float64()*float64(took))) {
					break
				}
				kills++
				if _, err := os.Stat(path + ".build"); err == nil {
					begun++
				}
				if got := dump(t, sqlite.New(path)); got != before && got != want {
					t.Error("the index in use is neither the old one nor the new one")
				}
			}
			work(t, path, 0)
			if got := dump(t, sqlite.New(path)); got != want {
				t.Errorf("the index differs from that of a build that was not disturbed:\n%.2000s", got)
			}
			if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Logf("killed %d times, %d of them with a build to go on with", kills, begun)
}
