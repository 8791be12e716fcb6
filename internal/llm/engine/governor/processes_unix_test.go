//go:build unix

package governor

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/provider"
)

// Environment of a process of the test.
const (
	workerServer = "LOKI_TEST_LIMITED_SERVER" // address of the provider, with the number of the process
	workerDir    = "LOKI_TEST_LIMITS"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerServer) == "" {
		os.Exit(m.Run())
	}
	var g Governor
	g.ShareIn(os.Getenv(workerDir))
	p := g.Chat(remote(os.Getenv(workerServer)), sharedOptions())
	for range 8 {
		go func() {
			for {
				if _, err := ask(context.Background(), p, "m"); err != nil {
					fmt.Println(err)
				}
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

// remote is a model of another process, by its address.
type remote string

func (r remote) Chat(ctx context.Context, _ provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(r), nil)
		if err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			yield(provider.Chunk{}, &provider.Error{Kind: provider.RateLimited, Status: 429, RetryAfter: time.Second, Msg: "slow down"})
			return
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: "fine"}, nil) {
			yield(provider.Chunk{Kind: provider.End}, nil)
		}
	}
}

// counting is a server that takes four calls at once, and counts those of each process.
type counting struct {
	mu              sync.Mutex
	answers, atWork [4]int
	refused         int
	inFlight, peak  int // with those that it refuses
}

const mostOfCounting = 4

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(r.URL.Path[1] - '0')
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight++
	c.peak = max(c.peak, c.inFlight)
	defer func() { c.inFlight-- }()
	if sum(c.atWork) >= mostOfCounting {
		c.refused++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	c.atWork[n]++
	c.mu.Unlock()
	select {
	case <-time.After(100 * time.Millisecond):
	case <-r.Context().Done(): // the process is dead
	}
	c.mu.Lock()
	c.atWork[n]--
	c.answers[n]++
}

func sum(of [4]int) (n int) {
	for _, each := range of {
		n += each
	}
	return n
}

// until waits until what is counted is as ok says, a minute at most, and returns how long that took. ok may change the counts.
func (c *counting) until(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		done := ok()
		c.mu.Unlock()
		if done {
			return time.Since(begin)
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("not within a minute: %s; %+v", what, c.answers)
		}
	}
}

// TestRealProcesses: four processes get equal shares of what a provider takes and exceed that by one call at most, none of their calls fails,
// and when one of them is killed the others get its share.
func TestRealProcesses(t *testing.T) {
	c := &counting{}
	server := httptest.NewServer(c)
	defer server.Close()
	dir := t.TempDir()
	var processes [4]*exec.Cmd
	var said [4]func() string
	for i := range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s/%d", workerServer, server.URL, i), workerDir+"="+dir)
		cmd.Stderr = os.Stderr
		end, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said[i] = sync.OnceValue(func() string {
			_ = end.Close()
			text, _ := io.ReadAll(out)
			_ = cmd.Wait() // one of them is killed
			return string(text)
		})
		defer said[i]()
		processes[i] = cmd
	}
	c.until(t, "all are at work", func() bool { return slices.Min(c.answers[:]) > 2 })
	c.mu.Lock()
	c.answers, c.refused, c.peak = [4]int{}, 0, 0
	c.mu.Unlock()
	c.until(t, "200 answers", func() bool { return sum(c.answers) >= 200 })
	c.mu.Lock()
	t.Logf("%v answers, %d refused, %d in flight", c.answers, c.refused, c.peak)
	if c.peak > mostOfCounting+1 || slices.Min(c.answers[:]) < 40 || slices.Max(c.answers[:]) > 60 {
		t.Errorf("%v answers, %d in flight", c.answers, c.peak)
	}
	c.mu.Unlock()
	c.until(t, "a call to kill", func() bool { return c.atWork[0] > 0 && processes[0].Process.Kill() == nil })
	t.Logf("the others had its share after %v", c.until(t, "the share of the dead", func() bool { return sum(c.atWork)-c.atWork[0] == mostOfCounting }))
	for i := range said {
		if text := said[i](); text != "" {
			t.Errorf("process %d: %s", i, text)
		}
	}
}
