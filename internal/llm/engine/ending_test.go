package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// cut is a reply that ends at the output limit, with a text and calls.
func cut(text string, stop chat.StopReason, made ...chat.ToolCall) []provider.Chunk {
	reply := calls(text, made...)
	reply[len(reply)-1].Stop = stop
	return reply
}

func TestHowAReplyEndsIsJudged(t *testing.T) {
	t.Parallel()
	body := end(chat.StopEnd)
	body.Body = `{"choices":[]}`
	lost := cut("I call", chat.StopToolCalls)
	lost[1].Body = `{"tool_calls":"?"}`
	limited := cut("Hel", chat.StopLength)
	limited[1].Limit = 8192
	window := cut("Hel", chat.StopLength)
	window[1].Limit, window[1].Window = 8192, true
	for _, tt := range []struct {
		name     string
		reply    []provider.Chunk
		model    Model
		asked    int // output tokens that the request is limited to
		whole    bool
		code     fault.Code
		says     []string // of the error, with its hint
		warnings []string // what is in the warnings
	}{
		{name: "cut_off", reply: cut("Hel", chat.StopLength), warnings: []string{"c:m was cut off at the server's own output limit (after 1 tokens)", "max_output_tokens"}},
		{name: "cut_off_at_our_limit", reply: cut("Hel", chat.StopLength), model: Model{MaxOutputTokens: 64}, warnings: []string{"(max_tokens of 64)"}},
		{name: "cut_off_at_the_providers_limit", reply: limited, warnings: []string{"(max_tokens of 8192)"}},
		{name: "cut_off_at_the_models_limit", reply: cut("Hel", chat.StopLength), model: Model{OutputLimit: 99}, warnings: []string{"own output limit (99 tokens)"}},
		{name: "cut_off_where_the_user_asked", reply: cut("Hel", chat.StopLength), asked: 3, warnings: []string{"(max_tokens of 3); --max-output, .set max_output_tokens or the request asks for it"}},
		{name: "cut_off_and_no_more_to_have", reply: cut("Hel", chat.StopLength), model: Model{MaxOutputTokens: 64, OutputLimit: 64}, warnings: []string{"writes no more at once"}},
		{name: "cut_off_where_all_is_needed", reply: cut("Hel", chat.StopLength), whole: true, code: fault.Provider, says: []string{"c:m was cut off", "max_output_tokens"}},
		{name: "cut_off_before_a_word", reply: cut("", chat.StopLength), code: fault.Provider, says: []string{"c:m wrote nothing", "reasoning"}},
		{name: "window_is_full", reply: window, model: Model{MaxInputTokens: 1000}, warnings: []string{"the context window of the model is full (1000 tokens)", ".compress session"}},
		{name: "filtered", reply: cut("Hel", chat.StopFiltered), code: fault.Refused, says: []string{"c:m", "content_filter"}},
		{name: "filtered_call", reply: cut("Hel", chat.StopFiltered, chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}), code: fault.Refused},
		{name: "empty", reply: says(), code: fault.Provider, says: []string{"c:m", "empty", "stop reason stop"}},
		{name: "only_white_space", reply: says(" \n"), code: fault.Provider, says: []string{"empty"}},
		{name: "empty_with_body", reply: []provider.Chunk{body}, code: fault.Provider, says: []string{`{"choices":[]}`}},
		{name: "only_reasoning", reply: []provider.Chunk{{Kind: provider.Reasoning, Text: "hm"}, end(chat.StopEnd)}, code: fault.Provider, says: []string{"only reasoning", ": hm"}},
		{name: "call_that_is_lost", reply: cut("I call", chat.StopToolCalls), code: fault.Provider, says: []string{"none that can be read"}},
		{name: "call_that_is_lost_with_body", reply: lost, code: fault.Provider, says: []string{`can be read: {"tool_calls":"?"}`}},
		{name: "other_reason", reply: cut("Hello", chat.StopOther)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ran := false
			f := &fake{replies: [][]provider.Chunk{tt.reply}}
			tt.model.Provider, tt.model.SupportsTools = f, true
			rc, events := newContext()
			rc.MaxOutputTokens = tt.asked
			req := user("hi")
			req.Whole, req.Tools = tt.whole, toolFunc(func(chat.ToolCall) string { ran = true; return "" })
			reply, err := newEngine(t, tt.model).Run(t.Context(), rc, req)
			if fault.CodeOf(err) != tt.code {
				t.Fatalf("error %v, want code %q", err, tt.code)
			}
			if err != nil {
				contains(t, err.Error()+" / "+fault.HintOf(err), tt.says)
			}
			var warnings []string
			for _, w := range eventtest.Bodies[event.Warning](events) {
				warnings = append(warnings, w.Text)
			}
			if len(warnings) > 1 || len(warnings) == 0 != (len(tt.warnings) == 0) {
				t.Errorf("warnings %q", warnings)
			}
			contains(t, strings.Join(warnings, "\n"), tt.warnings)
			// What came is kept, whatever it is called.
			text := ""
			for _, c := range tt.reply {
				if c.Kind == provider.Text {
					text += c.Text
				}
			}
			if reply.Text != text || reply.Stop != tt.reply[len(tt.reply)-1].Stop {
				t.Errorf("reply %+v", reply)
			}
			kept := ""
			for _, m := range reply.Messages {
				if len(m.ToolCalls) > 0 {
					t.Errorf("a call without result is kept: %+v", m)
				}
				if len(m.Parts) == 0 {
					t.Error("a message without content is kept")
				}
				kept += m.Text()
			}
			if kept != text {
				t.Errorf("the conversation keeps %q of %q", kept, text)
			}
			if ran || len(f.requests) != 1 {
				t.Errorf("ran %v, %d requests", ran, len(f.requests))
			}
		})
	}
}

func contains(t *testing.T, text string, want []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q lacks %q", text, w)
		}
	}
}

// TestCallOfACutOffReplyIsNotRun: not even one that looks complete, or that the repair of
// arguments could complete.
func TestCallOfACutOffReplyIsNotRun(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{`{"path": "build"`, `{"path": "build"}`, `{"path": "bu`, ""} {
		var ran []string
		f := &fake{replies: [][]provider.Chunk{
			cut("I delete it.", chat.StopLength, chat.ToolCall{ID: "1", Name: "list", Arguments: "{}"}, chat.ToolCall{ID: "2", Name: "del", Arguments: arguments}),
			calls("", chat.ToolCall{ID: "3", Name: "del", Arguments: `{"path": "build", "pattern": "*.o",}`}),
			says("Done."),
		}}
		rc, events := newContext()
		req := user("hi")
		req.Whole = true // about the answer
		req.Tools = toolFunc(func(c chat.ToolCall) string { ran = append(ran, c.Arguments); return "deleted" })
		reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
		if err != nil || reply.Text != "I delete it.\nDone." {
			t.Fatalf("%q: %q, %v", arguments, reply.Text, err)
		}
		// What ran is what the history says, in the reply and in the next request.
		repaired := `{"path": "build", "pattern": "*.o"}`
		if diff := cmp.Diff([]string{repaired}, ran); diff != "" {
			t.Errorf("%q: ran\n%s", arguments, diff)
		}
		if got := reply.Messages[3].ToolCalls[0].Arguments; got != repaired || f.requests[2].Messages[4].ToolCalls[0].Arguments != repaired {
			t.Errorf("the history says %s", got)
		}
		if got := reply.Messages[0].ToolCalls[1].Arguments; got != arguments {
			t.Errorf("a call that was cut off became %q", got)
		}
		for _, m := range f.requests[1].Messages[2:] {
			if !m.Failed || !strings.Contains(m.Text(), m.ToolName+" was not run") || !strings.Contains(m.Text(), "cut off") {
				t.Errorf("result %+v", m)
			}
		}
		if w := eventtest.Bodies[event.Warning](events); len(w) != 1 || !strings.Contains(w[0].Text, "a tool call of c:m was cut off") {
			t.Errorf("warnings %v", w)
		}
	}
}

func TestCallsThatAreCutOffAgainAndAgainEndTheRequest(t *testing.T) {
	t.Parallel()
	f := &fake{}
	for range 20 {
		f.replies = append(f.replies, cut("", chat.StopLength, chat.ToolCall{ID: "1", Name: "write", Arguments: `{"text": "on and on`}))
	}
	rc, _ := newContext()
	req := user("hi")
	req.Tools = toolFunc(func(chat.ToolCall) string { t.Error("it was run"); return "" })
	_, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
	if fault.CodeOf(err) != fault.Provider || !strings.Contains(err.Error(), "cut off") || len(f.requests) != maxRefusals {
		t.Errorf("error %v after %d requests", err, len(f.requests))
	}
}

// TestEmptyReplyAfterText: a model may have said all there is before its last tool call.
func TestEmptyReplyAfterText(t *testing.T) {
	t.Parallel()
	look := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}
	for text, code := range map[string]fault.Code{"I look.": "", "": fault.Provider} {
		f := &fake{replies: [][]provider.Chunk{calls(text, look), says()}}
		rc, _ := newContext()
		req := user("hi")
		req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
		reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
		if fault.CodeOf(err) != code || reply.Text != text {
			t.Errorf("%q: %q, %v", text, reply.Text, err)
		}
	}
}

// TestCallsAreAnnouncedInTheirOrder: whichever runs first.
func TestCallsAreAnnouncedInTheirOrder(t *testing.T) {
	t.Parallel()
	var made []chat.ToolCall
	var want []string
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		made = append(made, chat.ToolCall{ID: id, Name: "look", Arguments: `{"at":"` + id + `"}`})
		want = append(want, id)
	}
	for range 20 {
		f := &fake{replies: [][]provider.Chunk{calls("", made...), says("done")}}
		rc, events := newContext()
		req := user("hi")
		req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
		if _, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range eventtest.Bodies[event.ToolCall](events) {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestManyCallsOfOneReply makes more calls in a reply than are made.
func TestManyCallsOfOneReply(t *testing.T) {
	t.Parallel()
	for _, n := range []int{maxCalls, maxCalls + 1, 8000} {
		var made []chat.ToolCall
		for i := range n {
			made = append(made, chat.ToolCall{ID: fmt.Sprint(i), Name: "look", Arguments: fmt.Sprintf(`{"at":%d}`, i)})
		}
		f := &fake{replies: [][]provider.Chunk{calls("", made...), says("done")}}
		rc, events := newContext()
		req := user("hi")
		req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
		reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
		if err != nil || len(reply.Messages) != 1+maxCalls+1 || len(reply.Messages[0].ToolCalls) != maxCalls {
			t.Fatalf("%d calls: %v, %d messages", n, err, len(reply.Messages))
		}
		last, want := reply.Messages[maxCalls].Text(), fmt.Sprintf("seen\n\nYour reply had %d calls. Only the first 128 were made", n)
		if n == maxCalls {
			want = "seen"
		}
		if warned := len(eventtest.Bodies[event.Warning](events)); !strings.HasPrefix(last, want) || (warned == 1) != (n > maxCalls) || len(eventtest.Bodies[event.ToolCall](events)) != maxCalls {
			t.Errorf("%d calls: the last result is %q, %d warnings", n, last, warned)
		}
	}
}

// TestHalfAnAnswerIsAskedForAgain: where it is of no use. The pieces that came are void.
func TestHalfAnAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		lost := &provider.Error{Kind: provider.Transient, Msg: "connection lost"}
		f := &flaky{errors: []error{lost}, partial: "Hel", text: "Hello"}
		e, err := New(Options{
			Models: one(Model{ID: "c:m", Name: "m", Provider: f, Retry: retry.Policy{Attempts: 3}}),
			Sleep:  func(context.Context, time.Duration) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		rc, events := newContext()
		req := user("hi")
		req.Whole = whole
		reply, err := e.Run(t.Context(), rc, req)
		if whole {
			if err != nil || reply.Text != "Hello" || len(eventtest.Bodies[event.Retry](events)) != 1 || len(eventtest.Bodies[event.Warning](events)) != 0 {
				t.Errorf("%q, %v, %v", reply.Text, err, types(events))
			}
			continue
		}
		if err == nil || reply.Text != "Hel" || len(f.requests) != 1 {
			t.Errorf("%q, %v after %d requests", reply.Text, err, len(f.requests))
		}
	}
}

// TestBrokenReply: no call of a reply is run if a piece of it could not be placed, and the model can make them again.
func TestBrokenReply(t *testing.T) {
	t.Parallel()
	broken := cut("", chat.StopToolCalls, chat.ToolCall{ID: "1", Name: "look", Arguments: `{"a":1`}, chat.ToolCall{ID: "2", Name: "call_without_a_name", Arguments: "{}"})
	broken[len(broken)-1].Broken = true
	ran := false
	f := &fake{replies: [][]provider.Chunk{broken, says("done")}}
	rc, _ := newContext()
	req := user("hi")
	req.Tools = toolFunc(func(chat.ToolCall) string { ran = true; return "" })
	reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
	if err != nil || ran || len(reply.Messages) != 4 {
		t.Fatalf("error %v, ran %v, messages %+v", err, ran, reply.Messages)
	}
	for _, m := range reply.Messages[1:3] {
		contains(t, m.Text(), []string{"was not run", "arrived broken"})
	}
	if got := reply.Messages[0].ToolCalls[0].Arguments; got != `{"a":1` {
		t.Errorf("arguments of a broken reply were repaired: %s", got)
	}
	f.replies = [][]provider.Chunk{broken, broken, broken}
	_, err = newEngine(t, Model{Provider: &fake{replies: f.replies}, SupportsTools: true}).Run(t.Context(), rc, req)
	if fault.CodeOf(err) != fault.Provider || ran {
		t.Errorf("error %v, ran %v", err, ran)
	}
}
