package stream_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/frontend/server/stream"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

func TestFrame(t *testing.T) {
	for _, tt := range []struct {
		name string
		ev   stream.Event
		want string
	}{
		{"whole", stream.Event{ID: "7", Name: "delta", Data: []byte(`{"a":1}`)}, "id: 7\nevent: delta\ndata: {\"a\":1}\n\n"},
		{"data_only", stream.Event{Data: []byte("[DONE]")}, "data: [DONE]\n\n"},
		{"lines", stream.Event{Data: []byte("a\nb\r\nc\rd")}, "data: a\ndata: b\ndata: c\ndata: d\n\n"},
		{"hostile_name", stream.Event{ID: "1\nevent: x", Name: "a\r\nb\x00", Data: nil}, "id: 1event: x\nevent: ab\ndata: \n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.ev.Frame()); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		w := stream.New(rec, stream.Options{})
		time.Sleep(16 * time.Second)
		if err := w.Send(t.Context(), stream.Event{Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(14 * time.Second)
		w.Close()
		time.Sleep(time.Minute)
		if got, want := rec.Body.String(), ":\n\ndata: x\n\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := rec.Header().Get("X-Accel-Buffering"); got != "no" {
			t.Errorf("X-Accel-Buffering: %q", got)
		}
		if err := w.Send(t.Context(), stream.Event{}); !errors.Is(err, stream.ErrGone) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestNothingIsWrittenBeforeTheFirstEvent(t *testing.T) {
	rec := httptest.NewRecorder()
	w := stream.New(rec, stream.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Send(ctx, stream.Event{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	w.Close()
	if w.Begun() || rec.Body.Len() > 0 || rec.Header().Get("Content-Type") != "" {
		t.Error("something was written")
	}
}

func TestEmitter(t *testing.T) {
	rec := httptest.NewRecorder()
	w := stream.New(rec, stream.Options{})
	defer w.Close()
	e := stream.NewEmitter(w)
	at := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	if err := e.Send(t.Context(), "started", map[string]any{"request_id": "r"}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range []event.Event{
		{Body: event.Started{Model: "m"}},
		{Body: event.Delta{Text: "Hi <b>"}},
		{Body: event.Reasoning{Text: "hm"}},
		{Body: event.ToolCall{ID: "1", Name: "t", Arguments: "{}"}},
		{Body: event.ToolResult{ID: "1", Name: "t", Text: "no", Failed: true}},
		{Body: event.Reply{Model: "m", Stop: "stop", Usage: chat.Usage{InputTokens: 1, OutputTokens: 2}}},
		{Time: at, Source: event.Source{Run: "r", Node: "n"}, Body: event.Delta{Text: "of a node"}},
		{Time: at, Body: event.Warning{Text: "w"}},
	} {
		if err := e.Emit(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	want := `id: 1
event: started
data: {"request_id":"r"}

id: 2
event: assistant_delta
data: {"text":"Hi <b>"}

id: 3
event: reasoning_delta
data: {"text":"hm"}

id: 4
event: tool_call
data: {"id":"1","name":"t","args":"{}"}

id: 5
event: tool_result
data: {"id":"1","name":"t","result":"no","is_error":true}

id: 6
event: usage
data: {"model":"m","stop":"stop","usage":{"input_tokens":1,"output_tokens":2}}

id: 7
event: delta
data: {"type":"delta","time":"2026-11-23T00:00:00.000000Z","run":"r","node":"n","text":"of a node"}

id: 8
event: warning
data: {"type":"warning","time":"2026-11-23T00:00:00.000000Z","text":"w"}

`
	if got := rec.Body.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
