package client

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/llm/provider/sse"
)

// silence is how long a stream may say nothing before its connection counts as lost. The server sends
// something every 15 seconds.
const silence = time.Minute

// frames returns the frames of a stream of server-sent events. One called error is the error of the
// sequence. A stream whose connection breaks ends with an error, and so does one that says nothing for
// too long.
func (c *Client) frames(ctx context.Context, r request) iter.Seq2[sse.Event, error] {
	r.accept = "text/event-stream"
	return func(yield func(sse.Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var resp *http.Response
		err := c.send(ctx, r, func(begun *http.Response) error {
			resp = begun
			return nil
		})
		if err != nil {
			yield(sse.Event{}, err)
			return
		}
		defer resp.Body.Close()
		watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
		defer watchdog.Stop()
		for frame, err := range sse.Decode(&alive{resp.Body, watchdog}, 0) {
			if err != nil {
				if errors.Is(context.Cause(ctx), errSilent) {
					err = fault.Wrap(fault.Failure, errSilent, "the connection to the server at %s was lost", c.base)
				} else {
					err = c.connectionError(ctx, err)
				}
				yield(sse.Event{}, err)
				return
			}
			if frame.Type == "error" {
				e := new(Error)
				hint := e.read([]byte(frame.Data))
				yield(sse.Event{}, fault.Wrap(e.FaultCode(), e, "").WithHint("%s", hint))
				return
			}
			if !yield(frame, nil) {
				return
			}
		}
	}
}

var errSilent = errors.New("no data from the server for a minute")

// alive is a stream whose reads put a watchdog off.
type alive struct {
	body interface{ Read(p []byte) (int, error) }
	dog  *time.Timer
}

// Read reads from the body.
func (a *alive) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.dog.Reset(silence)
	return n, err
}

// reconnection is how often, in a row, a stream is connected again: for about ten minutes.
func reconnection() retry.Policy {
	return retry.Policy{Attempts: 64, Backoff: 200 * time.Millisecond, Factor: 2, MaxBackoff: 10 * time.Second, Jitter: 0.3}
}

// RunEvent is an event of a run.
type RunEvent struct {
	Number int    // on record, from 1; 0 for a piece, such as a part of a reply, which is not
	Type   string // as in [event.Event]
	Data   []byte // JSON in the form of machine output
}

// Watch returns the events of a run: those on record after the one with the number after, and then what
// happens. It ends with the run; while the run is suspended it waits. A lost connection is restored, and
// no event comes twice or is left out; pieces of that time are lost. lost is called each time,
// with the reason; it may be nil.
func (c *Client) Watch(ctx context.Context, id string, after int, lost func(error)) iter.Seq2[RunEvent, error] {
	return func(yield func(RunEvent, error) bool) {
		for failures := 1; ; failures++ {
			before := after
			ended, err := c.watchOnce(ctx, id, &after, func(ev RunEvent) bool { return yield(ev, nil) })
			if ended {
				return
			}
			if after > before {
				failures = 1
			}
			wait, again := reconnection().Wait(failures, 0, rand.Float64())
			if e, answered := errors.AsType[*Error](err); answered {
				again = again && (e.Status == http.StatusServiceUnavailable || e.Code == "overloaded")
			}
			if !again || ctx.Err() != nil {
				yield(RunEvent{}, err)
				return
			}
			if lost != nil {
				lost(err)
			}
			if c.o.Sleep(ctx, wait) != nil {
				yield(RunEvent{}, context.Cause(ctx))
				return
			}
		}
	}
}

// watchOnce is Watch over one connection. ended says that there is nothing more, or that yield has returned
// false.
func (c *Client) watchOnce(ctx context.Context, id string, after *int, yield func(RunEvent) bool) (ended bool, err error) {
	r := request{method: http.MethodGet, path: pathOf("v1", "runs", id, "events")}
	if *after > 0 {
		r.last = strconv.Itoa(*after)
	}
	for frame, err := range c.frames(ctx, r) {
		if err != nil {
			return false, err
		}
		if frame.Type == endFrame {
			return true, nil
		}
		ev := RunEvent{Type: frame.Type, Data: []byte(frame.Data)}
		// A piece has no id: the decoder repeats that of the event before it.
		if n, err := strconv.Atoi(frame.ID); err == nil && n > *after {
			ev.Number, *after = n, n
		}
		if !yield(ev) {
			return true, nil
		}
	}
	return false, fault.New(fault.Failure, "the connection to the server at %s was lost", c.base)
}

// endFrame is the name of the last frame of the events of a run.
const endFrame = "end"
