package providertest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// fake is a provider that keeps the contract, save for what flaw names.
type fake struct {
	s    Scenario
	flaw string
	open *atomic.Int32
}

var fakeCalls = []chat.ToolCall{{ID: "1", Name: "a", Arguments: "{}"}, {ID: "2", Name: "b", Arguments: "{}"}}

func (f fake) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		f.open.Add(1)
		if f.flaw != "leak" {
			defer f.open.Add(-1)
		}
		if err := ctx.Err(); err != nil && f.flaw != "deaf" {
			yield(provider.Chunk{}, err)
			return
		}
		text := func(s string) bool { return yield(provider.Chunk{Kind: provider.Text, Text: s}, nil) }
		fail := func(kind provider.ErrorKind) {
			yield(provider.Chunk{}, &provider.Error{Kind: kind, RetryAfter: time.Second})
		}
		switch f.s {
		case TextReply:
			f.text(req, yield)
		case ToolCallReply:
			f.calls(yield)
		case CutOffCall:
			f.cutOff(yield)
		case RateLimited:
			fail(provider.RateLimited)
		case DropMidStream:
			if text("Hel") {
				fail(provider.Transient)
			}
		case Garbage:
			if f.flaw == "gullible" {
				yield(end(chat.StopEnd), nil)
				return
			}
			fail(provider.BadReply)
		case Hang, Stall:
			if f.s == Stall && !text("Hel") {
				return
			}
			if f.flaw == "deaf" {
				yield(end(chat.StopEnd), nil)
				return
			}
			<-ctx.Done()
			yield(provider.Chunk{}, ctx.Err())
		}
	}
}

func end(stop chat.StopReason) provider.Chunk {
	return provider.Chunk{Kind: provider.End, Stop: stop, Usage: chat.Usage{InputTokens: 1, OutputTokens: 1}}
}

func (f fake) text(req provider.Request, yield func(provider.Chunk, error) bool) {
	text := "Hello"
	if f.flaw == "stream_differs" && req.Stream {
		text = "Hello!"
	}
	if f.flaw == "empty_chunk" && !yield(provider.Chunk{Kind: provider.Text}, nil) {
		return
	}
	if !yield(provider.Chunk{Kind: provider.Text, Text: text}, nil) || f.flaw == "no_end" {
		return
	}
	e := end(chat.StopEnd)
	if f.flaw == "no_usage" {
		e.Usage = chat.Usage{}
	}
	if !yield(e, nil) {
		return
	}
	if f.flaw == "two_ends" {
		yield(e, nil)
	}
}

func (f fake) calls(yield func(provider.Chunk, error) bool) {
	for _, c := range fakeCalls {
		if f.flaw == "same_ids" {
			c.ID = "1"
		}
		if !yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}, nil) {
			return
		}
	}
	stop := chat.StopToolCalls
	if f.flaw == "wrong_stop" {
		stop = chat.StopEnd
	}
	yield(end(stop), nil)
}

func (f fake) cutOff(yield func(provider.Chunk, error) bool) {
	c, stop := chat.ToolCall{ID: "1", Name: "a", Arguments: `{"a":1`}, chat.StopLength
	switch f.flaw {
	case "completes":
		c.Arguments += "}"
	case "hides_the_limit":
		stop = chat.StopToolCalls
	}
	if f.flaw == "drops" || yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}, nil) {
		yield(end(stop), nil)
	}
}

func subject(s Scenario, flaw string) Subject {
	open := new(atomic.Int32)
	sub := Subject{
		Chat: fake{s: s, flaw: flaw, open: open}, ToolCalls: fakeCalls, RetryAfter: time.Second, Text: "Hel", CutOff: `{"a":1`,
		WaitIdle: func(context.Context) error {
			if open.Load() != 0 {
				return errors.New("open")
			}
			return nil
		},
	}
	if s == TextReply {
		sub.Text = "Hello"
	}
	return sub
}

func TestRunPassesGoodProvider(t *testing.T) {
	Run(t, Case{New: func(_ *testing.T, s Scenario) Subject { return subject(s, "") }})
}

func TestRunSkips(t *testing.T) {
	Run(t, Case{
		New: func(t *testing.T, s Scenario) Subject {
			if s == Hang {
				t.Error("a skipped scenario is run")
			}
			return subject(s, "")
		},
		Skip: map[Scenario]string{Hang: "it always answers"},
	})
}

// recorder notes that a test failed instead of failing.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }
func (r *recorder) Helper()               {}

// TestChecksFindFlaws runs each check against providers that break one rule.
func TestChecksFindFlaws(t *testing.T) {
	for flaw, caught := range map[string][]string{
		"":                nil,
		"stream_differs":  {"text_streamed", "concurrent_requests"},
		"empty_chunk":     {"text_streamed", "text_in_one_piece", "concurrent_requests", "release_after_reply"},
		"no_end":          {"text_streamed", "text_in_one_piece", "concurrent_requests", "release_after_reply"},
		"two_ends":        {"text_streamed", "text_in_one_piece", "concurrent_requests", "release_after_reply"},
		"no_usage":        {"text_streamed", "text_in_one_piece"},
		"same_ids":        {"tool_calls_streamed", "tool_calls_in_one_piece"},
		"wrong_stop":      {"tool_calls_streamed", "tool_calls_in_one_piece"},
		"completes":       {"cut_off_call_streamed"},
		"hides_the_limit": {"cut_off_call_streamed", "cut_off_call_in_one_piece"},
		"drops":           {"cut_off_call_streamed", "cut_off_call_in_one_piece"},
		"gullible":        {"garbage_streamed", "garbage_in_one_piece"},
		"deaf":            {"canceled_before_the_request", "deadline_streamed", "deadline_in_one_piece", "cancel_mid_stream"},
		"leak": {
			"release_after_reply", "rate_limit_streamed", "rate_limit_in_one_piece", "garbage_streamed", "garbage_in_one_piece",
			"deadline_streamed", "deadline_in_one_piece", "cancel_mid_stream", "early_break",
		},
	} {
		t.Run("flaw_"+flaw, func(t *testing.T) {
			want := make(map[string]bool)
			for _, name := range caught {
				want[name] = true
			}
			for _, check := range checks {
				r := &recorder{TB: t}
				check.run(r, subject(check.scenario, flaw))
				if got := r.failed.Load(); got != want[check.name] {
					t.Errorf("%s: failed = %v, want %v", check.name, got, want[check.name])
				}
			}
		})
	}
}

func TestCollectFindsWhatBreaksTheRules(t *testing.T) {
	text := provider.Chunk{Kind: provider.Text, Text: "a"}
	call := provider.Chunk{Kind: provider.ToolCall, ToolCall: chat.ToolCall{ID: "1", Name: "a", Arguments: "{}"}}
	failure := errors.New("failure")
	type step struct {
		c   provider.Chunk
		err error
	}
	for _, tt := range []struct {
		name  string
		steps []step
		ok    bool
	}{
		{"reply", []step{{c: text}, {c: call}, {c: end(chat.StopToolCalls)}}, true},
		{"failure_at_once", []step{{err: failure}}, true},
		{"failure_after_text", []step{{c: text}, {err: failure}}, true},
		{"nothing", nil, false},
		{"text_after_end", []step{{c: end(chat.StopEnd)}, {c: text}}, false},
		{"text_after_error", []step{{err: failure}, {c: text}}, false},
		{"chunk_with_error", []step{{c: text, err: failure}}, false},
		{"no_kind", []step{{c: provider.Chunk{Text: "a"}}, {c: end(chat.StopEnd)}}, false},
		{"unknown_stop_reason", []step{{c: end("because")}}, false},
		{"empty_reasoning", []step{{c: provider.Chunk{Kind: provider.Reasoning}}, {c: end(chat.StopEnd)}}, false},
		{"call_without_name", []step{{c: provider.Chunk{Kind: provider.ToolCall, ToolCall: chat.ToolCall{ID: "1", Arguments: "{}"}}}, {c: end(chat.StopEnd)}}, false},
		{"negative_usage", []step{{c: provider.Chunk{Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: -1}}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			Collect(r, func(yield func(provider.Chunk, error) bool) {
				for _, s := range tt.steps {
					if !yield(s.c, s.err) {
						t.Error("Collect stopped early")
						return
					}
				}
			})
			if r.failed.Load() == tt.ok {
				t.Errorf("ok = %v, want %v", !r.failed.Load(), tt.ok)
			}
		})
	}
}
