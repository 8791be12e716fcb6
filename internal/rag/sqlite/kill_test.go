//go:build unix

package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/rag"
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

// buildVersion brings the knowledge base to a version of its 150 documents. From one version to the
// next a third of them changes, some are removed and some are added.
func buildVersion(ctx context.Context, s rag.Store, version int) (err error) {
	b, err := s.Build(ctx, rag.Settings{EmbeddingModel: "test", ChunkSize: 100, TopK: version})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	keep := make(map[string]bool)
	for i := 10 * version; i < 10*version+150; i++ {
		path, seed := fmt.Sprintf("/docs/%d", i), uint64(i)
		if i%3 == 0 {
			seed += uint64(version) << 32
		}
		keep[path] = true
		hash := fmt.Sprint(seed)
		if f, ok, err := b.File(ctx, path); err != nil {
			return err
		} else if ok && f.Hash == hash {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 0))
		var chunks []rag.Chunk
		for range r.IntN(12) {
			var text strings.Builder
			for range r.IntN(60) {
				fmt.Fprintf(&text, "word%d ", int(r.ExpFloat64()*20))
			}
			chunks = append(chunks, rag.Chunk{Text: text.String(), Vector: []float32{r.Float32(), r.Float32(), r.Float32(), r.Float32()}})
		}
		if err := b.Put(ctx, path, hash, chunks); err != nil {
			return err
		}
		if i%7 == 0 {
			if err := b.Flush(ctx); err != nil {
				return err
			}
		}
	}
	_, err = b.Commit(ctx, func(path string) bool { return keep[path] })
	return err
}

// dump returns what is in the index and what some searches find.
func dump(t *testing.T, s rag.Store) string {
	t.Helper()
	ctx := t.Context()
	x, err := s.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var out strings.Builder
	stats, err := x.Stats(ctx)
	fmt.Fprintln(&out, stats.Settings, stats.Files, stats.Chunks, stats.Dimensions, err)
	for f, err := range x.Files(ctx) {
		fmt.Fprintln(&out, f, err)
		var ids []rag.ID
		for i := range f.Chunks {
			ids = append(ids, rag.ID{File: f.ID, Seq: i})
		}
		chunks, err := x.Chunks(ctx, ids, true)
		fmt.Fprintln(&out, chunks, err)
	}
	for i := range 20 {
		found, err := x.Match(ctx, fmt.Sprintf("word%d word%d word%d", i, 2*i, 5*i), 50)
		fmt.Fprintln(&out, found, err)
		found, err = x.Nearest(ctx, []float32{float32(i), 1, 2, -float32(i)}, 50)
		fmt.Fprintln(&out, found, err)
	}
	return out.String()
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
