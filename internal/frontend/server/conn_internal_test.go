package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestPlaces has more connections than there are places for: those whose clients ask nothing make room, those at work stay.
func TestPlaces(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var u unasked
	working, finish := make(chan struct{}, 10), make(chan struct{})
	const most = 4
	l := newListener(inner, func() time.Duration { return time.Minute }, most, u.evict)
	s := &http.Server{ConnContext: withConn, ConnState: u.follow, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.asks(r.Context())
		if r.URL.Path == "/work" {
			working <- struct{}{}
			<-finish
		}
		_, _ = io.WriteString(w, "done")
	})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	open := func(text string) *bufio.Reader {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err == nil {
			_, err = io.WriteString(c, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		return bufio.NewReader(c)
	}
	request := func(path string) *bufio.Reader {
		return open("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	answered := func(r *bufio.Reader) {
		t.Helper()
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(a.Body); string(body) != "done" {
			t.Errorf("%q, %v", body, err)
		}
	}
	atWork := []*bufio.Reader{request("/work"), request("/work"), request("/work")}
	for range atWork {
		<-working
	}
	for range 3 * most { // all of which want the last place
		open("GET / HTTP/1.1\r\nHo")
		open("")
		answered(request("/")) // and then its connection is idle
	}
	last := request("/work")
	<-working // all places are taken by work
	waits := request("/")
	finish <- struct{}{}
	for range 3 {
		finish <- struct{}{}
	}
	for _, r := range append(atWork, last, waits) {
		answered(r)
	}

	// With all places taken, and a connection that waits for one, the server can be ended.
	for range most {
		request("/work")
	}
	for range most {
		<-working
	}
	request("/")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	close(finish)
	_ = s.Close()
	if n := mostConnections(); n != 0 && n < 16 {
		t.Errorf("at most %d connections", n)
	}
}
