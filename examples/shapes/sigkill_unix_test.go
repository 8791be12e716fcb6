//go:build unix

package shapes

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/app"
	"loki/internal/base/text/sample"
	"loki/internal/frontend/cli"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// TestMain is loki itself if it is called by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "loki" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{}))
	}
	os.Exit(m.Run())
}

// TestSIGKILL kills the program at random moments of shapes that wait for nothing, and resumes them. LOKI_TEST=full takes all of them.
func TestSIGKILL(t *testing.T) {
	list := slices.DeleteFunc(shapes(t), func(s shape) bool {
		text := source(t, filepath.Join(s.name, graph.FileName))
		if s.Rules != "" {
			text += source(t, filepath.Join(s.name, s.Rules))
		}
		return s.Answers != nil || s.Signals != nil || s.Error != "" || slices.ContainsFunc([]string{"type: wait", "retry:", "timeout:", "delay:", "backoff:"}, func(slow string) bool { return strings.Contains(text, slow) })
	})
	rnd := rand.New(rand.NewPCG(1, uint64(len(list))))
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if !sample.Full() {
		list = list[:3]
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	loki := filepath.Join(t.TempDir(), "loki")
	if err := os.Symlink(self, loki); err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		for _, how := range schedulings() {
			t.Run(s.name+"/"+how.name, func(t *testing.T) {
				begin := time.Now()
				want := program{s, t, loki, stage(t, s, how)}.finish()
				took := time.Since(begin)
				s.check(t, how, want)
				for range 3 {
					p := program{s, t, loki, stage(t, s, how)}
					after := time.Duration(rnd.Float64() * float64(took))
					p.start(after)
					if got := p.finish(); how.form(got.trace()) != how.form(want.trace()) || got.Output != want.Output || got.State != want.State {
						t.Errorf("killed after %s:\n%v\nwant\n%v", after, got, want)
					}
				}
			})
		}
	}
}

func source(t *testing.T, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// program is the real one with a home of its own.
type program struct {
	shape
	t    *testing.T
	path string
	dir  string // of the agent
}

// start begins the run, or goes on with it, and kills the process after a time, 0 for not at all.
func (p program) start(kill time.Duration) {
	p.t.Helper()
	args := []string{"-q", "-a", p.dir, p.Prompt}
	if p.last().ID != "" {
		args = []string{"-q", "--resume"}
	}
	cmd := exec.Command(p.path, args...)
	cmd.Env, cmd.Dir = p.environ(p.dir), filepath.Dir(p.dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if kill > 0 {
		defer time.AfterFunc(kill, func() { _ = cmd.Process.Kill() }).Stop()
	}
	if err := cmd.Wait(); err != nil && kill == 0 {
		p.t.Fatalf("%v: %v: %s", args, err, &stderr)
	}
}

// finish goes on with the run until it has ended.
func (p program) finish() outcome {
	p.t.Helper()
	for range 3 {
		if last := p.last(); last.Status == run.Done {
			store := p.runs()
			defer store.Close()
			return outcomeOf(p.t, store, last.ID)
		}
		p.start(0)
	}
	p.t.Fatalf("the run does not end: %+v", p.last())
	return outcome{}
}

// last describes the run, if there is one.
func (p program) last() run.Info {
	p.t.Helper()
	store := p.runs()
	defer store.Close()
	list, err := store.Runs(p.t.Context(), run.Query{})
	if err != nil || len(list) > 1 {
		p.t.Fatal(fmt.Errorf("%d runs: %w", len(list), err))
	}
	if len(list) == 0 {
		return run.Info{}
	}
	return list[0]
}

func (p program) runs() run.Store {
	p.t.Helper()
	a, err := app.New(app.Options{Environ: p.environ(p.dir)})
	if err != nil {
		p.t.Fatal(err)
	}
	store, err := a.OpenRuns()
	if err != nil {
		p.t.Fatal(err)
	}
	return store
}
