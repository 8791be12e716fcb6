//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKillKnowledge kills the program with SIGKILL at random moments while it builds a knowledge base,
// goes on with the build, and compares what comes of it with a build that was not disturbed. It ends
// after 8 kills that hit a build, or after 100 with LOKI_KILL_TEST=full.
//
// A moment is counted from the request to the embedding model that arrived last. In some builds that
// request is held for longer than a build takes from one time it saves its work to the next, so that
// there is something to go on with.
func TestKillKnowledge(t *testing.T) {
	const documents, held = 24, 3500 * time.Millisecond
	build := func(k librarian, add bool) []string {
		if add {
			return []string{"--rag", "bees", "--rag-add", "docs"}
		}
		return []string{"--rag", "bees", "--rebuild-rag"}
	}
	// prepare returns a user whose knowledge base has a third of the documents, one of them in an older
	// version, and one that is gone.
	prepare := func(t *testing.T) (librarian, *embeddings) {
		e := newEmbeddings(t, nil)
		k := newLibrarian(t, e)
		for i := range documents / 3 {
			k.note(t, fmt.Sprintf("note-%02d.md", i))
		}
		write(t, filepath.Join(k.dir, "docs", "note-00.md"), "An older version of the note about honey.")
		k.note(t, "gone.md")
		k.run(t, 0, build(k, true)...)
		if err := os.Remove(filepath.Join(k.dir, "docs", "gone.md")); err != nil {
			t.Fatal(err)
		}
		for i := range documents {
			k.note(t, fmt.Sprintf("note-%02d.md", i))
		}
		return k, e
	}
	// outcome returns what the knowledge base is and what is found in it, without what differs from
	// one user, time and layout of the file to the next.
	outcome := func(t *testing.T, k librarian) string {
		var all string
		for _, args := range [][]string{
			{"--info", "--rag", "bees", "--output", "json"},
			{"--rag", "bees", "--rag-query", "honey", "--output", "json"},
			{"--rag", "bees", "--rag-query", "Paragraph 7 of note-19.md and note-00.md", "--rag-set", "top_k=40", "--output", "json"},
		} {
			stdout, _ := k.run(t, 0, args...)
			var reply map[string]any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(stdout, k.dir, "")), &reply); err != nil {
				t.Fatalf("%q: %v in %s", args, err, stdout)
			}
			maps.DeleteFunc(reply, func(key string, _ any) bool { return key == "built" || key == "bytes" || key == "seconds" })
			text, err := json.MarshalIndent(reply, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		return all
	}

	calm, e := prepare(t)
	before := outcome(t, calm)
	first := e.requests.Load()
	calm.run(t, 0, build(calm, true)...)
	requests := int(e.requests.Load() - first)
	want := outcome(t, calm)
	if before == want {
		t.Fatal("the build changes nothing")
	}

	need := 8
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		need = 100
	}
	var (
		mu                   sync.Mutex
		kills, late, resumed int
	)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return kills >= need
	}
	try := func(t *testing.T, rnd *rand.Rand) {
		k, e := prepare(t)
		for round := range 1 + rnd.IntN(3) {
			at := e.requests.Load() + 1 + int64(rnd.IntN(requests))
			after := time.Duration(rnd.Float64() * float64(30*time.Millisecond))
			hold := rnd.IntN(8) == 0
			reached := make(chan struct{})
			var once sync.Once
			e.set(func(_ http.ResponseWriter, r *http.Request, n int64) bool {
				if n < at {
					return false
				}
				if hold && n == at {
					select {
					case <-time.After(held):
					case <-r.Context().Done():
					}
				}
				once.Do(func() { close(reached) })
				return false
			})
			cmd := k.command(t.Context(), build(k, round%2 == 0)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait() // the status says it
			}()
			select {
			case <-reached:
				select {
				case <-time.After(after):
				case <-ended:
				}
			case <-ended:
			}
			_ = cmd.Process.Kill() // which may have ended
			<-ended
			e.set(nil)
			mu.Lock()
			hit := cmd.ProcessState.ExitCode() == -1
			if hit {
				kills++
			} else {
				late++
			}
			if _, err := os.Stat(filepath.Join(k.dir, "home", "config", "rags", "bees.db.build")); err == nil {
				resumed++
			}
			mu.Unlock()
			if status := cmd.ProcessState.ExitCode(); status > 0 {
				t.Fatalf("exit status %d", status)
			}
			if got := outcome(t, k); got != before && got != want {
				t.Errorf("what is in use is neither the old index (-) nor the new one:\n%s", cmp.Diff(before, got))
			}
			if !hit {
				break
			}
		}
		k.run(t, 0, build(k, true)...)
		if got := outcome(t, k); got != want {
			t.Errorf("the index differs from that of a build that was not disturbed (-):\n%s", cmp.Diff(want, got))
		}
		if left, _ := filepath.Glob(filepath.Join(k.dir, "home", "config", "rags", "*.db?*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	t.Run("workers", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(1, uint64(worker)))
				for i := 0; !enough() && !t.Failed(); i++ {
					if i == 5*need {
						t.Fatal("too many kills come too late")
					}
					t.Run(fmt.Sprintf("random_%03d", i), func(t *testing.T) { try(t, rnd) })
				}
			})
		}
	})
	t.Logf("%d requests; killed %d times, %d times with a build to go on with; %d tries were too late", requests, kills, resumed, late)
}
