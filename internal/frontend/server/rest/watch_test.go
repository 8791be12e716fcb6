package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
)

// watched is an endpoint that only watches: it sends what next gets, and says how it ended.
type watched struct {
	api   *rest.API
	url   string
	next  chan string
	ended chan error
}

// newWatched returns one that is served as by the server: there may be 64 watchers.
func newWatched(t *testing.T) *watched {
	t.Helper()
	e := &watched{next: make(chan string), ended: make(chan error, 100)}
	a, s := serve(t, rest.Options{}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "GET", Path: "/watch", Summary: "Test", Watch: true}, func(context.Context, *struct{}) (*rest.Reply, error) {
			return rest.Stream(func(ctx context.Context, w *stream.Writer) (err error) {
				defer func() { e.ended <- err }()
				for {
					select {
					case text := <-e.next:
						switch text {
						case "end":
							return nil
						case "fail":
							return rest.Conflict("failed")
						case "panic":
							panic("a defect")
						}
						if err := w.Send(ctx, stream.Event{Data: []byte(text)}); err != nil {
							return err
						}
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
			}).With("X-Own", "own"), nil
		})
	})
	a.SetLimits(rest.Limits{Requests: 1})
	e.api, e.url = a, s.URL+"/watch"
	return e
}

// TestDetachedWatch looks at a watch on its own connection, byte by byte.
func TestDetachedWatch(t *testing.T) {
	e := newWatched(t)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(e.url, "http://"), "/watch"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /watch HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\nGET /next HTTP/1.1\r\n") // the second one is not served
	r := bufio.NewReader(conn)
	var head strings.Builder
	for line := ""; line != "\r\n"; head.WriteString(line) {
		if line, err = r.ReadString('\n'); err != nil { // the header comes before the first event
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"HTTP/1.1 200 OK\r\n", "\r\nConnection: close\r\n", "\r\nContent-Type: text/event-stream\r\n", "\r\nX-Request-Id: mine\r\n", "\r\nX-Own: own\r\n",
		"\r\nTransfer-Encoding: chunked\r\n", "\r\nDate: ", "\r\nCache-Control: no-cache\r\n",
	} {
		if !strings.Contains(head.String(), want) {
			t.Errorf("no %q in %q", want, head.String())
		}
	}
	e.next <- "one"
	e.next <- "two"
	e.next <- "end"
	body, err := io.ReadAll(r)
	if want := "b\r\ndata: one\n\n\r\nb\r\ndata: two\n\n\r\n0\r\n\r\n"; string(body) != want || err != nil {
		t.Errorf("got %q, %v, want %q", body, err, want)
	}
}

// TestWatchEnds has watches end in all ways, and looks at what their clients have got.
func TestWatchEnds(t *testing.T) {
	for _, tt := range []struct{ name, last, want string }{
		{"end", "end", "data: first\n\n"},
		{"error", "fail", "data: first\n\nevent: error\ndata: {\"error\":{\"code\":\"conflict\",\"message\":\"failed\""},
		{"panic", "panic", "data: first\n\nevent: error\ndata: {\"error\":{\"code\":\"internal\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newWatched(t)
			go func() { // ends with the two
				e.next <- "first"
				e.next <- tt.last
			}()
			if status, body, _ := send(t, "GET", e.url, ""); status != 200 || !strings.HasPrefix(body, tt.want) || tt.last == "end" && body != tt.want {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	t.Run("stop", func(t *testing.T) {
		e := newWatched(t)
		res, err := http.Get(e.url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		e.api.Drain()
		if err := e.api.Stop(t.Context()); err != nil { // waits for the watch
			t.Error(err)
		}
		select {
		case err := <-e.ended:
			if !errors.Is(err, rest.ErrStopping()) {
				t.Errorf("it ended with %v", err)
			}
		default:
			t.Error("the watch has not ended")
		}
		if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "shutting down") {
			t.Errorf("%v %q", err, body)
		}
	})
}

// TestWatchersLeave: the place of a watcher that has left is free again, and its endpoint knows that it left.
func TestWatchersLeave(t *testing.T) {
	e := newWatched(t)
	for i := range 200 {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 200 {
			t.Fatalf("watcher %d: %s", i, res.Status)
		}
		leave()
		res.Body.Close()
		if err := <-e.ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("watcher %d ended with %v", i, err)
		}
	}
	for open := 0; open < 64; { // the place of the last one that left may be free in a moment
		res, err := http.Get(e.url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode == 200 {
			open++
		}
	}
	if status, body, _ := send(t, "GET", e.url, ""); status != 503 {
		t.Errorf("one more than there may be: %d %s", status, body)
	}
	e.api.Drain()
	if err := e.api.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPlainWatch: clients and writers that a connection cannot be taken from get the same events.
func TestPlainWatch(t *testing.T) {
	e := newWatched(t)
	// say has the endpoint send one event and end. What it returns waits until it has: a client may leave before.
	say := func() (wait func()) {
		go func() { // ends with the two
			e.next <- "one"
			e.next <- "end"
		}()
		return func() { <-e.ended }
	}
	t.Run("HTTP/1.0", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(e.url, "http://"), "/watch"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /watch HTTP/1.0\r\n\r\n")
		defer say()()
		if all, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(all), "\r\n\r\ndata: one\n\n") || strings.Contains(string(all), "chunked") {
			t.Errorf("%v %q", err, all)
		}
	})
	t.Run("HEAD", func(t *testing.T) {
		defer say()()
		if status, body, header := send(t, "HEAD", e.url, ""); status != 200 || body != "" || header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d %q %v", status, body, header)
		}
	})
	t.Run("recorder", func(t *testing.T) {
		defer say()()
		rec := httptest.NewRecorder()
		e.api.ServeHTTP(rec, rest.Begin(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/watch", nil)))
		if got := rec.Body.String(); got != "data: one\n\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestSlowReader: a client that reads nothing is cut after the time that the limits say, and one beside it gets all.
// Both kinds of streams are tried: those that work and those that watch.
func TestSlowReader(t *testing.T) {
	const count, stall = 300, 500 * time.Millisecond
	data := bytes.Repeat([]byte("x"), 100_000)
	for _, watch := range []bool{false, true} {
		t.Run(fmt.Sprintf("watch_%v", watch), func(t *testing.T) {
			cut := make(chan error, 1)
			a, s := serve(t, rest.Options{}, func(a *rest.API) {
				rest.Register(a, rest.Operation{Method: "GET", Path: "/much/{who}", Summary: "Test", Watch: watch}, func(_ context.Context, in *who) (*rest.Reply, error) {
					return rest.Stream(func(ctx context.Context, w *stream.Writer) (err error) {
						defer func() {
							if in.Who == "slow" {
								cut <- err
							}
						}()
						for range count {
							if err := w.Send(ctx, stream.Event{Data: data}); err != nil {
								return err
							}
						}
						return nil
					}), nil
				})
			})
			a.SetLimits(rest.Limits{Timeout: stall})
			begun := time.Now()
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET /much/slow HTTP/1.1\r\nHost: h\r\n\r\n")
			fast, err := http.Get(s.URL + "/much/fast")
			if err != nil {
				t.Fatal(err)
			}
			defer fast.Body.Close()
			got, err := io.Copy(io.Discard, fast.Body) // keeping all of it takes longer than stall with the race detector
			if want := int64(count * (len(data) + len("data: \n\n"))); err != nil || fast.StatusCode != 200 || got != want {
				t.Errorf("the fast one: status %d, %d bytes, want %d (%v)", fast.StatusCode, got, want, err)
			}
			if err := <-cut; !errors.Is(err, stream.ErrGone) && !strings.Contains(err.Error(), "no progress") {
				t.Errorf("the slow one ended with %v", err)
			}
			if took := time.Since(begun); took < stall {
				t.Errorf("it was cut after %v", took)
			}
			if all, err := io.ReadAll(conn); err == nil && bytes.HasSuffix(all, []byte("\r\n0\r\n\r\n")) {
				t.Error("its answer seems to be complete")
			}
			if !a.Idle(t.Context()) {
				t.Error("its slot is not free")
			}
			a.Drain()
			if err := a.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

type who struct {
	Who string `path:"who"`
}
