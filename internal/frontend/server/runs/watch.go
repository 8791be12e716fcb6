package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// endFrame is the name of the last frame of a stream, whose data is the run.
const endFrame = "end"

// eventNames returns the names of frames that say the most about a run.
func eventNames() []string {
	return []string{
		"started", "model_call", "delta", "reasoning", "reply", "tool_call", "tool_result", "node_started", "node_finished", "state_updated",
		"question", "answer", "retry", "warning", "finished", endFrame, "error",
	}
}

// eventsRequest asks for the events of a run.
type eventsRequest struct {
	one
	After int    `query:"after" minimum:"0" doc:"number of the last event that is known already"`
	Last  string `header:"Last-Event-ID" maxLength:"20" doc:"the same; it counts more"`
}

func (e *endpoints) events(ctx context.Context, in *eventsRequest, info run.Info) (*rest.Reply, error) {
	after := in.After
	if in.Last != "" {
		var err error
		if after, err = strconv.Atoi(in.Last); err != nil || after < 0 {
			return nil, rest.Invalid("Last-Event-ID", "Last-Event-ID: %q is not the number of an event", in.Last)
		}
	}
	id := info.ID // all that is kept of it for the time of the stream
	return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
		return e.watch(ctx, w, id, after, false)
	}), nil
}

// watch sends the events of a run after the one with a number, and the run itself at its end. With untilRest
// set it ends also when the run is suspended.
func (e *endpoints) watch(ctx context.Context, w *stream.Writer, id string, after int, untilRest bool) error {
	for frames, err := range e.Manager.WatchBatches(ctx, id, after) {
		if err != nil {
			return err
		}
		last := -1
		if untilRest {
			last = slices.IndexFunc(frames, rests)
		}
		if last >= 0 {
			frames = frames[:last+1]
		}
		if err := w.SendAll(ctx, streamEvents(frames)); err != nil {
			return err
		}
		if last >= 0 {
			break
		}
	}
	if untilRest {
		if _, err := e.Manager.Wait(ctx, id); err != nil { // its end comes to be on record
			return err
		}
	}
	r, err := e.now(ctx, id)
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.Send(ctx, stream.Event{Name: endFrame, Data: data})
}

// streamEvents returns frames of a run as a stream has them.
func streamEvents(frames []manager.Frame) []stream.Event {
	events := make([]stream.Event, len(frames))
	for i, f := range frames {
		events[i] = stream.Event{Name: f.Type, Data: f.Data}
		if f.Number > 0 {
			events[i].ID = strconv.Itoa(f.Number)
		}
	}
	return events
}

// rests reports whether a frame says that the run has come to rest, and not one of its children.
func rests(f manager.Frame) bool {
	if f.Type != (event.Finished{}).Type() {
		return false
	}
	var at struct {
		Depth int `json:"depth"`
	}
	return json.Unmarshal(f.Data, &at) == nil && at.Depth == 0
}

// await returns when a run has come to rest, or after a time.
func (e *endpoints) await(ctx context.Context, id string, most time.Duration) error {
	rest.Wait(ctx)
	defer rest.Progress(ctx)
	limited, done := context.WithTimeout(ctx, most)
	defer done()
	for f, err := range e.Manager.Watch(limited, id, 0) {
		if err != nil {
			if limited.Err() != nil && ctx.Err() == nil {
				return nil
			}
			return err
		}
		if rests(f) {
			break
		}
	}
	if _, err := e.Manager.Wait(limited, id); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
