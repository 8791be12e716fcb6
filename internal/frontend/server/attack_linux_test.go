package server_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/text/sample"
	"loki/internal/frontend/server/servertest"
)

// fortress is a server that is attacked. Alice has a key.
func fortress(t *testing.T, more string) (s *servertest.Server, key string) {
	t.Helper()
	key, entry := servertest.Key("alice", 1, "read, write")
	s = servertest.Program(t, servertest.Files{
		"config.yaml": "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\napi:\n  auth:\n    keys:\n" + entry + more,
		"rules.yaml":  "default: {reply: done, delay: 400ms}\n",
	})
	if a := s.Get("/v1/info", "Authorization", "Bearer "+key); a.Status != http.StatusOK { // the key is used for the first time
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return s, key
}

// resources returns the memory and the processor time that the server uses.
func resources(t *testing.T, s *servertest.Server) (mb float64, cpu time.Duration) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rss, _ := strings.Cut(string(status), "VmRSS:")
	fmt.Sscan(rss, &mb)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system int
	fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return mb / 1024, time.Duration(user+system) * 10 * time.Millisecond
}

// visitor sends good requests until stop is called, which returns how long they took, the fastest first.
func visitor(t *testing.T, s *servertest.Server, key string) (stop func() []time.Duration) {
	var took []time.Duration
	end, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
		defer client.CloseIdleConnections()
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			begin := time.Now()
			res, err := client.Do(s.Request(http.MethodGet, "/v1/models", "", "Authorization", "Bearer "+key))
			if err != nil {
				t.Errorf("a good request: %v", err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if took = append(took, time.Since(begin)); res.StatusCode != http.StatusOK {
				t.Errorf("a good request: %s", res.Status)
			}
		}
	}()
	return func() []time.Duration {
		close(end)
		<-done
		slices.Sort(took)
		return took
	}
}

// patience is for how long a request may wait on a busy machine.
const patience = 10 * time.Minute

// report shows how good requests went and how the server has grown. With LOKI_TEST=full it fails if they were slow or
// it has grown by much: a sample shares the machine with other tests, and the race detector has memory of its own.
func report(t *testing.T, s *servertest.Server, took []time.Duration, before float64) {
	t.Helper()
	after, cpu := resources(t, s)
	if len(took) == 0 {
		t.Fatal("no good request")
	}
	median, slowest := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d good requests meanwhile: median %v, 99 %% within %v; memory %.0f MB before, %.0f MB after; processor time %v", len(took), median, slowest, before, after, cpu)
	if !sample.Full() {
		return
	}
	if median > 500*time.Millisecond {
		t.Errorf("good requests take %v", median)
	}
	if after > before+150 {
		t.Errorf("the memory grows from %.0f to %.0f MB", before, after)
	}
}

// TestBadKeys sends bad keys of all kinds, 100,000 with LOKI_TEST=full.
func TestBadKeys(t *testing.T) {
	t.Parallel()
	s, key := fortress(t, "")
	before, _ := resources(t, s)
	stop := visitor(t, s, key)
	count := 100_000 / sample.Step(100)
	var next atomic.Int64
	var statuses [600]atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for range 16 {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			defer client.CloseIdleConnections()
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
				bad := []string{
					fmt.Sprintf("loki_%012x_%d", n, n), "loki_000000000001_" + fmt.Sprint(n), fmt.Sprint("guess", n), strings.Repeat("x", 400) + fmt.Sprint(n), "same", strings.Repeat("y", 20000), "a.b.c",
				}[n%7]
				res, err := client.Do(s.Request(http.MethodGet, "/v1/models", "", "Authorization", "Bearer "+bad))
				if err != nil {
					t.Errorf("a bad key: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				statuses[res.StatusCode].Add(1)
			}
		})
	}
	all.Wait()
	took := stop()
	refused, limited := statuses[http.StatusUnauthorized].Load(), statuses[http.StatusTooManyRequests].Load()
	t.Logf("%d bad keys in %v: %d are refused, %d are too many", count, time.Since(begin).Round(time.Millisecond), refused, limited)
	if refused+limited != int64(count) || limited == 0 || refused == 0 {
		t.Errorf("%d and %d of %d", refused, limited, count)
	}
	report(t, s, took, before)
}

// TestSlowClients has connections that send a byte now and then, 5,000 with LOKI_TEST=full: in the header, in the body of a
// request without a key, and in that of one with a key.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s, key := fortress(t, "")
	before, _ := resources(t, s)
	stop := visitor(t, s, key)
	count := 5000 / sample.Step(25)
	var all sync.WaitGroup
	ended := make(chan string, count)
	begin := time.Now()
	for n := range count {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		head := []string{
			"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
			"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
			"POST /healthz/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		}[n%3]
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			stopped := make(chan struct{})
			go func() { // ends with the connection
				defer close(stopped)
				answer, _ := bufio.NewReader(c).ReadString('\n')
				ended <- strings.TrimSpace(answer)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
			for {
				if _, err := io.WriteString(c, "x"); err != nil {
					break
				}
				select {
				case <-stopped:
				case <-time.After(time.Second):
				}
			}
			<-stopped
		})
	}
	all.Wait() // the server ends them all
	took, answers := stop(), make(map[string]int)
	close(ended)
	for answer := range ended {
		answers[answer]++
	}
	t.Logf("%d slow connections are ended within %v, with %v", count, time.Since(begin).Round(time.Millisecond), answers)
	if limit := 40 * time.Second; time.Since(begin) > limit {
		t.Errorf("they last for more than %v", limit)
	}
	report(t, s, took, before)
}

// TestBadBodies sends what is too large or makes no sense.
func TestBadBodies(t *testing.T) {
	s, key := fortress(t, "  limits: {max_body_bytes: 100000}\n")
	before, _ := resources(t, s)
	large := strings.Repeat("x", 200_000)
	deep := strings.Repeat(`[`, 40_000)
	random := make([]byte, 1000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for range 200 / sample.Step(100) {
		for name, tt := range map[string]struct {
			body   string
			status int
			header []string
		}{
			"large":           {`{"prompt":"` + large + `"}`, 413, nil},
			"large_unsized":   {`{"prompt":"` + large + `"}`, 413, []string{"Content-Length", "-1"}},
			"large_no_key":    {`{"prompt":"` + large + `"}`, 401, []string{"Authorization", ""}},
			"deep":            {`{"prompt":` + deep, 400, nil},
			"deep_object":     {strings.Repeat(`{"a":`, 15_000), 400, nil},
			"random":          {string(random), 400, nil},
			"cut":             {`{"prompt":"x`, 400, nil},
			"two":             {`{"prompt":"x"}{"prompt":"y"}`, 400, nil},
			"number":          {`{"prompt":1e99999}`, 400, nil},
			"nul":             {"{\"prompt\":\"\x00\"}", 400, nil},
			"null":            {"null", 400, nil},
			"list":            {"[]", 400, nil},
			"twice":           {`{"prompt":"x","prompt":"y"}`, 400, nil},
			"other_type":      {"<prompt>x</prompt>", 400, []string{"Content-Type", "application/xml"}},
			"compressed":      {"\x1f\x8b\x08\x00", 415, []string{"Content-Encoding", "gzip"}},
			"large_header":    {`{"prompt":"x"}`, 431, []string{"X-Large", large}},
			"header_of_zeros": {`{"prompt":"x"}`, 401, []string{"Authorization", "Bearer " + strings.Repeat("0", 30_000)}},
		} {
			r := s.Request(http.MethodPost, "/v1/completions", tt.body, append([]string{"Authorization", "Bearer " + key, "X-Forwarded-For", "192.0.2.1"}, tt.header...)...)
			if r.Header.Get("Content-Length") == "-1" {
				r.Header.Del("Content-Length")
				r.ContentLength = -1
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil { // the server has ended the connection while the client was writing
				if tt.status != 413 && tt.status != 431 && tt.status != 401 {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != tt.status && (tt.status != 401 || res.StatusCode != http.StatusTooManyRequests) {
				t.Errorf("%s: %s", name, res.Status)
			}
		}
	}
	after, _ := resources(t, s)
	if t.Logf("memory %.0f MB before, %.0f MB after", before, after); after > before+150 {
		t.Errorf("the memory grows from %.0f to %.0f MB", before, after)
	}
	if a := s.Post("/v1/completions", `{"prompt":"x"}`, "Authorization", "Bearer "+key); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

// TestOverload sends twice as many requests as the server takes, each of which takes 400 ms: some are refused, quickly, and all
// others are answered.
func TestOverload(t *testing.T) {
	entries, keys := "", make([]string, 4)
	for n := range keys {
		var entry string
		keys[n], entry = servertest.Key(fmt.Sprint("user", n), n+2, "write")
		entries += entry
	}
	s, _ := fortress(t, entries+"  limits: {max_concurrent_requests: 16, per_subject_concurrency: 8}\n")
	until := time.Now().Add(30 * time.Second / time.Duration(sample.Step(10)))
	var answered, refused atomic.Int64
	var slowest atomic.Int64 // refusal, in nanoseconds
	var all sync.WaitGroup
	for n := range 32 {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			defer client.CloseIdleConnections()
			for time.Now().Before(until) {
				begin := time.Now()
				res, err := client.Do(s.Request(http.MethodPost, "/v1/completions", `{"prompt":"x"}`, "Authorization", "Bearer "+keys[n%len(keys)]))
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				switch {
				case err == nil && res.StatusCode == http.StatusOK && strings.Contains(string(body), "done"):
					answered.Add(1)
				case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
					refused.Add(1)
					took := int64(time.Since(begin))
					for old := slowest.Load(); took > old && !slowest.CompareAndSwap(old, took); old = slowest.Load() {
					}
					time.Sleep(100 * time.Millisecond) // less than it is asked to
				default:
					t.Errorf("%s %s %v", res.Status, body, err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d answered, %d refused, the slowest refusal after %v", answered.Load(), refused.Load(), time.Duration(slowest.Load()))
	if answered.Load() < 40 || refused.Load() == 0 {
		t.Error("the load is not what it should be")
	}
	if limit := 3 * time.Second; time.Duration(slowest.Load()) > limit {
		t.Errorf("a refusal takes %v", time.Duration(slowest.Load()))
	}
	if a := s.Get("/healthz/live"); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Post("/v1/completions", `{"prompt":"x"}`, "Authorization", "Bearer "+keys[0]); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}
