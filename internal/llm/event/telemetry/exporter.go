package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"loki/internal/base/text"
)

const (
	batchSpans    = 512
	batchBytes    = 2 << 20 // of encoded spans in one request, unless one span is larger
	queueSpans    = 1 << 16 // spans that may wait
	sendInterval  = time.Second
	firstBackoff  = time.Second
	lastBackoff   = 30 * time.Second
	drainBackoff  = 250 * time.Millisecond // first wait between attempts during shutdown
	responseLimit = 64 << 10
)

// exporter sends encoded spans or metrics, called spans here, in batches, by one goroutine that ends in shutdown.
//
// Every lost span is counted. While the collector works, a full queue makes put wait.
// When a request fails for a reason that may pass, the batch stays in the queue and is
// tried again after a growing wait. During that wait put does not block, and spans that
// find the queue full are counted as lost.
type exporter struct {
	url      string
	shown    string // url without credentials
	headers  http.Header
	client   *http.Client
	gzip     bool
	resource []byte
	version  string
	signal   signal
	implied  bool // a collector that does not take the signal is left alone

	begun chan struct{} // holds a token when the queue is no longer empty
	full  chan struct{} // holds a token when a batch is complete
	stop  chan struct{} // closed by shutdown
	done  chan struct{} // closed by the goroutine
	abort context.CancelFunc

	mu      sync.Mutex
	room    sync.Cond // there is room in the queue, or no sense in waiting for it
	queue   [][]byte
	failing bool // the last request failed
	closed  bool
	total   int   // spans put
	lost    int   // spans that will never arrive
	cause   error // of the last failure
}

// export starts the exporter of a signal, which is nil if the variables do not ask for the signal.
func export(ctx context.Context, getenv func(string) string, of signal, version string) (*exporter, settings, error) {
	s, on, err := readSettings(getenv, of, version)
	if err != nil || !on {
		return nil, s, err
	}
	transport, err := s.transport()
	if err != nil {
		return nil, s, err
	}
	return startExporter(context.WithoutCancel(ctx), s, transport), s, nil
}

// startExporter starts the goroutine.
func startExporter(ctx context.Context, s settings, transport http.RoundTripper) *exporter {
	x := &exporter{
		url: s.url.String(), shown: s.address(), headers: s.headers, gzip: s.gzip,
		resource: appendAttrs(nil, 1, s.resource), version: s.version, signal: s.signal, implied: s.implied,
		client: &http.Client{
			Transport: transport, Timeout: s.timeout,
			// A redirect would take the headers, and the keys in them, elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		begun: make(chan struct{}, 1), full: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	x.room.L = &x.mu
	ctx, x.abort = context.WithCancel(ctx)
	go x.work(ctx)
	return x
}

// put queues an encoded span.
func (x *exporter) put(span []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.total++
	for len(x.queue) >= queueSpans && !x.failing && !x.closed {
		x.room.Wait()
	}
	if x.closed || len(x.queue) >= queueSpans {
		x.lost++
		return
	}
	x.queue = append(x.queue, span)
	if len(x.queue) == 1 {
		wake(x.begun)
	}
	if len(x.queue) >= batchSpans {
		wake(x.full)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// work sends batches until shutdown.
func (x *exporter) work(ctx context.Context) {
	defer close(x.done)
	wait := time.Duration(0) // until a failed request is repeated
	backoff := firstBackoff
	for {
		if wait == 0 {
			select {
			case <-x.begun:
			case <-x.stop:
				x.drain(ctx)
				return
			}
			wait = sendInterval
		}
		full := x.full
		if x.isFailing() {
			full = nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-full:
			timer.Stop()
		case <-timer.C:
		case <-x.stop:
			timer.Stop()
			x.drain(ctx)
			return
		}
		wait = 0
		if err := x.flush(ctx); err != nil {
			wait = max(backoff, err.wait)
			backoff = min(2*backoff, lastBackoff)
		} else {
			backoff = firstBackoff
		}
	}
}

// drain sends what is left. A collector that cannot be reached is asked once, one that
// is busy again and again until ctx ends.
func (x *exporter) drain(ctx context.Context) {
	for backoff := drainBackoff; ; backoff *= 2 {
		err := x.flush(ctx)
		if err == nil {
			return
		}
		if !err.busy {
			break
		}
		select {
		case <-time.After(max(backoff, err.wait)):
			continue
		case <-ctx.Done():
		}
		break
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lost += len(x.queue)
	x.queue = nil
}

// transientError is a failure that may pass.
type transientError struct {
	err  error
	busy bool          // the collector answered
	wait time.Duration // that it asked for
}

func (e *transientError) Error() string { return e.err.Error() }

// Unwrap returns the failure.
func (e *transientError) Unwrap() error { return e.err }

// flush sends everything that is queued. It stops at a failure that may pass.
func (x *exporter) flush(ctx context.Context) *transientError {
	for {
		batch := x.batch()
		if len(batch) == 0 {
			return nil
		}
		rejected, err := x.send(ctx, batch)
		passing, _ := errors.AsType[*transientError](err)
		x.mu.Lock()
		if err != nil {
			x.cause = err
		}
		x.failing = passing != nil
		if passing == nil {
			x.lost += rejected
			clear(x.queue[:len(batch)])
			x.queue = x.queue[len(batch):]
		}
		x.room.Broadcast()
		x.mu.Unlock()
		if passing != nil {
			return passing
		}
	}
}

// batch returns the spans of the next request. They stay in the queue.
func (x *exporter) batch() [][]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	size := 0
	for i, s := range x.queue {
		if size += len(s); i == batchSpans || i > 0 && size > batchBytes {
			return x.queue[:i:i]
		}
	}
	return x.queue[:len(x.queue):len(x.queue)]
}

// isIdle reports whether everything was sent.
func (x *exporter) isIdle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.queue) == 0
}

func (x *exporter) isFailing() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failing
}

// send makes one request. rejected counts the spans of it that will never be taken, and
// err says why. With a transientError the request may be repeated.
func (x *exporter) send(ctx context.Context, spans [][]byte) (rejected int, err error) {
	body := appendRequest(nil, x.resource, x.version, spans)
	if x.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		body = b.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return len(spans), err
	}
	req.Header = x.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "loki/"+x.version)
	if x.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := x.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // it repeats the address, with what is secret in it
		}
		return 0, &transientError{err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, responseLimit))
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300 && err != nil:
		return 0, nil // taken; only what the collector says about it is lost
	case code >= 200 && code < 300:
		rejected, message, err := readResponse(data)
		if err != nil || rejected == 0 {
			return 0, nil
		}
		return min(rejected, len(spans)), fmt.Errorf("the collector rejected %s: %q", x.signal.items(), text.Cut(message, 200))
	case code == http.StatusNotFound && x.implied && x.signal == figures:
		return 0, nil // it takes traces only
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return 0, &transientError{
			err: errors.New("HTTP status " + resp.Status), busy: true,
			wait: min(time.Duration(max(seconds, 0))*time.Second, lastBackoff),
		}
	default:
		return len(spans), errors.New("HTTP status " + resp.Status)
	}
}

// shutdown sends the queued spans and waits for the goroutine. The error says how many
// spans were lost.
func (x *exporter) shutdown(ctx context.Context) error {
	x.mu.Lock()
	first := !x.closed
	x.closed = true
	limit := shutdownTimeout
	if x.failing {
		limit = failingTimeout
	}
	x.room.Broadcast()
	x.mu.Unlock()
	if first {
		close(x.stop)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-x.done:
	case <-ctx.Done():
		x.abort()
		<-x.done
		x.mu.Lock()
		if x.cause == nil || errors.Is(x.cause, context.Canceled) {
			x.cause = fmt.Errorf("no answer in the last %s", limit)
		}
		x.mu.Unlock()
	}
	x.abort()
	x.client.CloseIdleConnections()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lost == 0 {
		return nil
	}
	if x.signal == traces {
		return fmt.Errorf("%d of %d trace spans could not be sent to %s: %w", x.lost, x.total, x.shown, x.cause)
	}
	return fmt.Errorf("metrics could not be sent to %s: %w", x.shown, x.cause)
}
