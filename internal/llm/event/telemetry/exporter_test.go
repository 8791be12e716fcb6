package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/llm/event"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is a collector within the process, for tests with a clock of their own.
type collector struct {
	answer func(request int) (*http.Response, error) // from 1

	mu       sync.Mutex
	requests int
	sizes    []int // spans of each request
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal(body, &data); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.requests++
	n := c.requests
	c.sizes = append(c.sizes, len(data.ResourceSpans[0].ScopeSpans[0].Spans))
	c.mu.Unlock()
	resp, err := c.answer(n)
	if err == errHang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return resp, err
}

var errHang = errors.New("no answer")

func status(code int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: code, Status: http.StatusText(code), Header: make(http.Header), Body: http.NoBody}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

func (c *collector) start(t *testing.T) *exporter {
	s, on, err := readSettings(environment("OTEL_EXPORTER_OTLP_ENDPOINT=http://user:hunter2@collector:4318?key=hunter2"), traces, "1.2.3")
	if err != nil || !on {
		t.Fatal(on, err)
	}
	return startExporter(context.Background(), s, c)
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

var oneSpan = (&span{trace: [16]byte{1}, id: [8]byte{1}, name: "x", kind: kindInternal}).append(nil)

func TestExporter(t *testing.T) {
	refused := errors.New("connection refused")
	for _, tt := range []struct {
		name     string
		answer   func(int) (*http.Response, error)
		requests int
		took     time.Duration // of shutdown
		want     string        // error
	}{
		{
			name:   "works",
			answer: func(int) (*http.Response, error) { return status(200), nil }, requests: 1,
		},
		{
			name:   "busy_then_works",
			answer: func(n int) (*http.Response, error) { return status([]int{503, 429, 200}[n-1]), nil }, requests: 3, took: 750 * time.Millisecond,
		},
		{
			name: "asks_for_a_wait",
			answer: func(n int) (*http.Response, error) {
				return status([]int{503, 200}[n-1], "Retry-After", "2"), nil
			}, requests: 2, took: 2 * time.Second,
		},
		{
			name:   "always_busy",
			answer: func(int) (*http.Response, error) { return status(503), nil }, requests: 5, took: shutdownTimeout,
			want: "3 of 3 trace spans could not be sent to http://collector:4318/v1/traces: HTTP status Service Unavailable",
		},
		{
			name:   "refuses",
			answer: func(int) (*http.Response, error) { return status(400), nil }, requests: 1,
			want: "3 of 3 trace spans could not be sent to http://collector:4318/v1/traces: HTTP status Bad Request",
		},
		{
			name:   "redirects",
			answer: func(int) (*http.Response, error) { return status(302, "Location", "http://elsewhere"), nil }, requests: 1,
			want: "3 of 3 trace spans could not be sent to http://collector:4318/v1/traces: HTTP status Found",
		},
		{
			name:   "not_reachable",
			answer: func(int) (*http.Response, error) { return nil, refused }, requests: 1,
			want: "3 of 3 trace spans could not be sent to http://collector:4318/v1/traces: connection refused",
		},
		{
			name:   "hangs",
			answer: func(int) (*http.Response, error) { return nil, errHang }, requests: 1, took: shutdownTimeout,
			want: "3 of 3 trace spans could not be sent to http://collector:4318/v1/traces: no answer in the last 5s",
		},
		{
			name: "rejects_some",
			answer: func(int) (*http.Response, error) {
				resp := status(200)
				partial := appendText(appendVarint(nil, 1, 2), 2, "too old")
				resp.Body = io.NopCloser(bytes.NewReader(appendBytes(nil, 1, partial)))
				return resp, nil
			}, requests: 1,
			want: `2 of 3 trace spans could not be sent to http://collector:4318/v1/traces: the collector rejected spans: "too old"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &collector{answer: tt.answer}
				x := c.start(t)
				for range 3 {
					x.put(oneSpan)
				}
				begin := time.Now()
				err := x.shutdown(t.Context())
				if err == nil && tt.want != "" || err != nil && err.Error() != tt.want {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("shutdown took %s, want %s", took, tt.took)
				}
				if c.count() != tt.requests {
					t.Errorf("%d requests, want %d", c.count(), tt.requests)
				}
				if again := x.shutdown(t.Context()); (again == nil) != (err == nil) {
					t.Errorf("the second shutdown says %v", again)
				}
			})
		})
	}
}

// TestExporterSendsInBetween shows what long runs depend on: spans do not wait for the
// end, and a collector that comes back gets all of them.
func TestExporterSendsInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		c := &collector{answer: func(int) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("connection refused")
			}
			return status(200), nil
		}}
		x := c.start(t)
		expect := func(when string, requests int) {
			t.Helper()
			synctest.Wait()
			if got := c.count(); got != requests {
				t.Errorf("%s: %d requests, want %d", when, got, requests)
			}
		}
		x.put(oneSpan)
		expect("at once", 0)
		time.Sleep(sendInterval)
		expect("after the interval", 1)
		time.Sleep(time.Hour)
		expect("with nothing to send", 1)
		for range batchSpans {
			x.put(oneSpan)
		}
		expect("with a full batch", 2)
		down.Store(true)
		for range 2 * batchSpans {
			x.put(oneSpan)
		}
		expect("the first failure", 3)
		time.Sleep(firstBackoff)
		expect("after the first wait", 4)
		time.Sleep(2 * firstBackoff)
		expect("after the second wait", 5)
		down.Store(false)
		time.Sleep(4 * firstBackoff)
		expect("it is back", 7)
		if err := x.shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFullQueue fills the queue while the first request hangs: put waits then. Once the
// request has failed, it does not wait any more and counts.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(int) (*http.Response, error) { return nil, errHang }}
		x := c.start(t)
		begin := time.Now()
		for range queueSpans {
			x.put(oneSpan)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("with room in the queue put waited %s", took)
		}
		x.put(oneSpan)
		if took := time.Since(begin); took != defaultTimeout {
			t.Errorf("with a full queue put waited %s, want %s", took, defaultTimeout)
		}
		for range 99 {
			x.put(oneSpan)
		}
		if took := time.Since(begin); took != defaultTimeout {
			t.Errorf("with a broken collector put waited %s", took-defaultTimeout)
		}
		begin = time.Now()
		err := x.shutdown(t.Context())
		if want := "65636 of 65636 trace spans could not be sent"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if took := time.Since(begin); took != failingTimeout {
			t.Errorf("shutdown took %s, want %s", took, failingTimeout)
		}
	})
}

// TestBackpressure shows that a working collector gets everything, however fast spans
// are made.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(int) (*http.Response, error) {
			time.Sleep(10 * time.Millisecond)
			return status(200), nil
		}}
		x := c.start(t)
		const n = queueSpans + 4*batchSpans
		for range n {
			x.put(oneSpan)
		}
		if err := x.shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		sum := 0
		for _, size := range c.sizes {
			sum += size
			if size > batchSpans {
				t.Errorf("a request of %d spans", size)
			}
		}
		if sum != n {
			t.Errorf("%d spans arrived, want %d", sum, n)
		}
	})
}

func TestLargeSpansGoInSmallBatches(t *testing.T) {
	large := (&span{name: "x", attrs: []attr{{"a", strings.Repeat("x", batchBytes/2)}}}).append(nil)
	huge := (&span{name: "x", attrs: []attr{{"a", strings.Repeat("x", batchBytes)}}}).append(nil)
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(int) (*http.Response, error) { return status(200), nil }}
		x := c.start(t)
		for _, s := range [][]byte{large, oneSpan, large, huge, oneSpan} {
			x.put(s)
		}
		if err := x.shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []int{2, 1, 1, 1}; len(c.sizes) != 4 || c.sizes[0] != want[0] {
			t.Errorf("requests of %v spans, want %v", c.sizes, want)
		}
	})
}

// TestFlood sends 10,000 spans over the loopback interface.
func TestFlood(t *testing.T) {
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
	s := newStory(t, tracer.Emitter())
	s.emit(t.Context(), top, event.Started{Graph: "flood", Node: "n"})
	for i := range 9999 {
		src := at(top, i+1, "n")
		s.emit(t.Context(), src, event.NodeStarted{NodeType: "llm", Visit: i + 1}, event.NodeFinished{NodeType: "llm"})
	}
	s.emit(t.Context(), top, event.Finished{})
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	ids := make(map[string]bool)
	for _, span := range sink.received() {
		ids[string(span.SpanId)] = true
	}
	if len(ids) != 10_000 {
		t.Errorf("%d spans arrived, want 10000", len(ids))
	}
}

// TestFailingCollectorDoesNotSlowTheRun tells a run to a collector that never answers.
func TestFailingCollectorDoesNotSlowTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(int) (*http.Response, error) { return nil, errHang }}
		tracer, err := Start(t.Context(), environment("OTEL_TRACES_EXPORTER=otlp"), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := tracer.exporter.shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		tracer.exporter = c.start(t)
		begin := time.Now()
		for range 500 {
			stories["run"](t.Context(), newStory(t, tracer.Emitter()))
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the runs waited %s", took)
		}
		err = tracer.Shutdown(t.Context())
		if want := "7500 of 7500 trace spans could not be sent"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	c := &collector{answer: func(int) (*http.Response, error) { return status(200), nil }}
	s, _, err := readSettings(environment("OTEL_TRACES_EXPORTER=otlp"), traces, "")
	if err != nil {
		b.Fatal(err)
	}
	tracer, err := Start(b.Context(), environment("OTEL_TRACES_EXPORTER=otlp"), "")
	if err != nil {
		b.Fatal(err)
	}
	_ = tracer.exporter.shutdown(b.Context())
	tracer.exporter = startExporter(b.Context(), s, c)
	e := tracer.Emitter()
	ev := func(src event.Source, body event.Body) event.Event {
		return event.Event{Time: time.Unix(1, 0), Source: src, Body: body}
	}
	for b.Loop() {
		for _, ev := range []event.Event{
			ev(top, event.Started{Graph: "g"}), ev(at(top, 1, "n"), event.NodeStarted{NodeType: "llm", Visit: 1}),
			ev(at(top, 1, "n"), call), ev(at(top, 1, "n"), reply), ev(at(top, 1, "n"), done), ev(top, event.Finished{}),
		} {
			if err := e.Emit(b.Context(), ev); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := tracer.Shutdown(b.Context()); err != nil {
		b.Fatal(err)
	}
}
