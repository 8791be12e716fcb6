package providertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// patience bounds what should take no time at all. It is long because a loaded
// machine is slow; reaching it fails a test.
const patience = 20 * time.Second

// deadline ends a request to a far end that says nothing. A provider that keeps
// to its context passes however short or long this is.
const deadline = 30 * time.Millisecond

// parallel is how many requests run at once in the test of concurrency.
const parallel = 8

var checks = []struct {
	name     string
	scenario Scenario
	run      func(testing.TB, Subject)
}{
	{"text_streamed", TextReply, func(t testing.TB, s Subject) { checkText(t, s, true) }},
	{"text_in_one_piece", TextReply, func(t testing.TB, s Subject) { checkText(t, s, false) }},
	{"concurrent_requests", TextReply, checkConcurrent},
	{"canceled_before_the_request", TextReply, checkCanceledBefore},
	{"release_after_reply", TextReply, checkReleaseAfterReply},
	{"tool_calls_streamed", ToolCallReply, func(t testing.TB, s Subject) { checkCalls(t, s, true) }},
	{"tool_calls_in_one_piece", ToolCallReply, func(t testing.TB, s Subject) { checkCalls(t, s, false) }},
	{"cut_off_call_streamed", CutOffCall, func(t testing.TB, s Subject) { checkCutOff(t, s, true) }},
	{"cut_off_call_in_one_piece", CutOffCall, func(t testing.TB, s Subject) { checkCutOff(t, s, false) }},
	{"rate_limit_streamed", RateLimited, func(t testing.TB, s Subject) { checkRateLimit(t, s, true) }},
	{"rate_limit_in_one_piece", RateLimited, func(t testing.TB, s Subject) { checkRateLimit(t, s, false) }},
	{"drop_mid_stream", DropMidStream, checkDrop},
	{"garbage_streamed", Garbage, func(t testing.TB, s Subject) { checkGarbage(t, s, true) }},
	{"garbage_in_one_piece", Garbage, func(t testing.TB, s Subject) { checkGarbage(t, s, false) }},
	{"deadline_streamed", Hang, func(t testing.TB, s Subject) { checkDeadline(t, s, true) }},
	{"deadline_in_one_piece", Hang, func(t testing.TB, s Subject) { checkDeadline(t, s, false) }},
	{"cancel_mid_stream", Stall, checkCancelMidStream},
	{"early_break", Stall, checkEarlyBreak},
}

func (s Subject) request(stream bool) provider.Request {
	req := s.Request
	req.Stream = stream
	if len(req.Messages) == 0 {
		req.Messages = []chat.Message{chat.Text(chat.User, "What is it like?")}
	}
	return req
}

func (s Subject) ask(ctx context.Context, t testing.TB, stream bool) Reply {
	t.Helper()
	return Collect(t, s.Chat.Chat(ctx, s.request(stream)))
}

// awaitIdle checks that the far end is left alone.
func (s Subject) awaitIdle(t testing.TB) {
	t.Helper()
	if s.WaitIdle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.WaitIdle(ctx); err != nil {
		t.Errorf("the far end still serves a request: %v", err)
	}
}

func checkText(t testing.TB, s Subject, stream bool) {
	r := s.ask(t.Context(), t, stream)
	wantText(t, r, s)
	if u := r.Usage; u.InputTokens == 0 || u.OutputTokens == 0 {
		t.Errorf("usage %+v: a reply with text has input and output tokens", u)
	}
}

func wantText(t testing.TB, r Reply, s Subject) {
	t.Helper()
	switch {
	case r.Err != nil:
		t.Errorf("request failed: %v", r.Err)
	case r.Text != s.Text:
		t.Errorf("text = %q, want %q", r.Text, s.Text)
	case r.Stop != chat.StopEnd:
		t.Errorf("stop reason = %q, want %q", r.Stop, chat.StopEnd)
	case len(r.ToolCalls) != 0:
		t.Errorf("tool calls = %+v, want none", r.ToolCalls)
	}
}

func checkConcurrent(t testing.TB, s Subject) {
	var wg sync.WaitGroup
	replies := make([]Reply, parallel) // goroutine i writes replies[i] only
	for i := range parallel {
		wg.Go(func() { replies[i] = s.ask(t.Context(), t, i%2 == 0) })
	}
	wg.Wait()
	for _, r := range replies {
		wantText(t, r, s)
	}
}

func checkCanceledBefore(t testing.TB, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := s.ask(ctx, t, true)
	if !errors.Is(r.Err, context.Canceled) || r.Chunks != 0 {
		t.Errorf("%d chunks and the error %v, want none and context.Canceled", r.Chunks, r.Err)
	}
}

func checkReleaseAfterReply(t testing.TB, s Subject) {
	s.ask(t.Context(), t, true)
	s.awaitIdle(t)
}

func checkCalls(t testing.TB, s Subject, stream bool) {
	r := s.ask(t.Context(), t, stream)
	if r.Err != nil {
		t.Errorf("request failed: %v", r.Err)
		return
	}
	same := slices.EqualFunc(r.ToolCalls, s.ToolCalls, func(got, want chat.ToolCall) bool {
		return got.Name == want.Name && got.Arguments == want.Arguments && (want.ID == "" || got.ID == want.ID)
	})
	if !same {
		t.Errorf("tool calls = %+v, want %+v", r.ToolCalls, s.ToolCalls)
	}
	if r.Stop != chat.StopToolCalls {
		t.Errorf("stop reason = %q, want %q", r.Stop, chat.StopToolCalls)
	}
}

// checkCutOff checks that a reply that was cut off says so, whatever it holds, and that its
// call is passed on as it came: what becomes of it is for the caller to decide.
func checkCutOff(t testing.TB, s Subject, stream bool) {
	r := s.ask(t.Context(), t, stream)
	switch {
	case r.Err != nil:
		t.Errorf("request failed: %v", r.Err)
	case r.Stop != chat.StopLength:
		t.Errorf("stop reason = %q, want %q", r.Stop, chat.StopLength)
	case len(r.ToolCalls) != 1:
		t.Errorf("tool calls = %+v, want one", r.ToolCalls)
	case r.ToolCalls[0].Arguments != s.CutOff && (stream || !strings.HasPrefix(r.ToolCalls[0].Arguments, s.CutOff)):
		t.Errorf("arguments = %q, want %q as they came", r.ToolCalls[0].Arguments, s.CutOff)
	}
}

func checkRateLimit(t testing.TB, s Subject, stream bool) {
	r := s.ask(t.Context(), t, stream)
	wantKind(t, r.Err, provider.RateLimited)
	if r.Chunks != 0 {
		t.Errorf("%d chunks before the error, want none", r.Chunks)
	}
	if got := provider.RetryAfter(r.Err); got != s.RetryAfter {
		t.Errorf("wait before the next try = %v, want %v", got, s.RetryAfter)
	}
	s.awaitIdle(t)
}

func checkDrop(t testing.TB, s Subject) {
	r := s.ask(t.Context(), t, true)
	wantKind(t, r.Err, provider.Transient)
	if r.Text != s.Text {
		t.Errorf("text before the drop = %q, want %q", r.Text, s.Text)
	}
	if len(r.ToolCalls) != 0 {
		t.Errorf("tool calls of a broken reply: %+v", r.ToolCalls)
	}
}

func checkGarbage(t testing.TB, s Subject, stream bool) {
	r := s.ask(t.Context(), t, stream)
	wantKind(t, r.Err, provider.BadReply)
	s.awaitIdle(t)
}

func wantKind(t testing.TB, err error, want provider.ErrorKind) {
	t.Helper()
	e, ok := errors.AsType[*provider.Error](err)
	if !ok {
		t.Errorf("error = %v (%T), want a *provider.Error of kind %s", err, err, want)
		return
	}
	if e.Kind != want {
		t.Errorf("error %q has kind %s, want %s", e, e.Kind, want)
	}
}

func checkDeadline(t testing.TB, s Subject, stream bool) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	start := time.Now()
	r := s.ask(ctx, t, stream)
	if !errors.Is(r.Err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want context.DeadlineExceeded", r.Err)
	}
	if d := time.Since(start); d > patience {
		t.Errorf("the request outlived its deadline by %v", d-deadline)
	}
	s.awaitIdle(t)
}

func checkCancelMidStream(t testing.TB, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := Collect(t, func(yield func(provider.Chunk, error) bool) {
		for c, err := range s.Chat.Chat(ctx, s.request(true)) {
			if !yield(c, err) {
				return
			}
			cancel() // the first chunk is here and the far end keeps the line open
		}
	})
	if !errors.Is(r.Err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", r.Err)
	}
	if r.Chunks == 0 {
		t.Errorf("no chunk arrived before the cancellation")
	}
	s.awaitIdle(t)
}

func checkEarlyBreak(t testing.TB, s Subject) {
	chunks := 0
	for _, err := range s.Chat.Chat(t.Context(), s.request(true)) {
		if err != nil {
			t.Errorf("request failed: %v", err)
		}
		chunks++
		break
	}
	if chunks == 0 {
		t.Errorf("the sequence is empty")
	}
	s.awaitIdle(t)
}
