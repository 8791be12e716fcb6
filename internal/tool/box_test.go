package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/tool"
	"loki/internal/tool/tooltest"
)

var _ engine.Tools = (*tool.Box)(nil)

// returning is a tool that always gives the same.
func returning(r tool.Result, err error) fake {
	return fake{name: "fake", call: func(context.Context, tool.Call) (tool.Result, error) { return r, err }}
}

func callFake(args string) chat.ToolCall {
	return chat.ToolCall{ID: "1", Name: "fake", Arguments: args}
}

func TestResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		result tool.Result
		err    error
		want   string
		failed bool
	}{
		{name: "nothing"},
		{name: "text", result: tool.Result{Output: "a <b>\n"}, want: `{"output":"a <b>\n"}`},
		{name: "object", result: tool.Result{Output: "{ \"a\": [1,\n 2] }\n"}, want: `{"a":[1,2]}`},
		{name: "number_keeps_its_digits", result: tool.Result{Output: "12345678901234567890.10"}, want: `12345678901234567890.10`},
		{name: "json_null_is_silence", result: tool.Result{Output: "null\n"}, want: ``},
		{name: "blank", result: tool.Result{Output: "\n"}, want: `{"output":"\n"}`},
		{name: "stderr", result: tool.Result{Stderr: " careful\n"}, want: `{"output":"","stderr":"careful"}`},
		{name: "text_and_stderr", result: tool.Result{Output: "x", Stderr: "y"}, want: `{"output":"x","stderr":"y"}`},
		{name: "object_and_stderr", result: tool.Result{Output: `{"a": 1}`, Stderr: "y"}, want: `{"output":{"a":1},"stderr":"y"}`},
		{name: "invalid_utf8", result: tool.Result{Output: "a\xffb"}, want: `{"output":"a` + "\uFFFD" + `b"}`},
		{name: "failure", err: errors.New("no such file"), want: `{"tool_call_error":"no such file"}`, failed: true},
		{name: "exit", err: &tool.ExitError{Tool: "my_tool", Code: 1}, result: tool.Result{Stderr: "Error: file not found: config.json\n"}, want: `{"tool_call_error":"Tool call 'my_tool' exited with code 1","stderr":"Error: file not found: config.json"}`, failed: true},
		{name: "signal", err: &tool.ExitError{Tool: "my_tool", Code: -1, Signal: "SIGKILL"}, want: `{"tool_call_error":"Tool call 'my_tool' was ended by SIGKILL"}`, failed: true},
		{name: "failure_with_output", err: errors.New("no"), result: tool.Result{Output: "half"}, want: `{"tool_call_error":"no","output":"half"}`, failed: true},
		{name: "somebody_elses_cancellation", err: context.Canceled, want: `{"tool_call_error":"context canceled"}`, failed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, failed, err := newBox(t, tool.Options{}, returning(tt.result, tt.err)).Call(t.Context(), callFake("{}"), steps.Steps{})
			if err != nil || text != tt.want || failed != tt.failed {
				t.Errorf("got %s, failed %v, error %v; want %s, failed %v", text, failed, err, tt.want, tt.failed)
			}
		})
	}
}

func TestLongOutputIsCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		limit  int
		result tool.Result
		err    error
		want   string
	}{
		{"exact", 10, tool.Result{Output: "abcdefghi\n"}, nil, `{"output":"abcdefghi\n"}`},
		{"one_more", 10, tool.Result{Output: "abcdefghijk"}, nil, `{"output":"abcde\n[1 of 11 bytes left out here]\nghijk"}`},
		{"json_is_text_then", 10, tool.Result{Output: `{"a":12345}`}, nil, `{"output":"{\"a\":\n[1 of 11 bytes left out here]\n2345}"}`},
		{"runes_stay_whole", 4, tool.Result{Output: "aéxxéa"}, nil, `{"output":"a\n[6 of 8 bytes left out here]\na"}`},
		{"stderr_too", 8, tool.Result{Output: "abcdefg", Stderr: "123456"}, nil, ""},
		{"error_too", 8, tool.Result{Output: "abcdefghijkl"}, errors.New("a long error"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := returning(tt.result, tt.err)
			subject.hints.MaxOutput = tt.limit
			text, _, err := newBox(t, tool.Options{MaxOutput: 1 << 20}, subject).Call(t.Context(), callFake("{}"), steps.Steps{})
			if err != nil || !utf8.ValidString(text) || tt.want != "" && text != tt.want {
				t.Errorf("got %s, %v, want %s", text, err, tt.want)
			}
			if tt.want == "" && strings.Count(text, "left out here") != 2 {
				t.Errorf("two texts were to be cut: %s", text)
			}
		})
	}
	long := returning(tool.Result{Output: strings.Repeat("x", tool.DefaultMaxOutput+1000)}, nil)
	text, _, err := newBox(t, tool.Options{}, long).Call(t.Context(), callFake("{}"), steps.Steps{})
	if err != nil || len(text) > tool.DefaultMaxOutput+100 || !strings.Contains(text, "[1000 of 66536 bytes left out here]") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestCallsThatAreNotMade(t *testing.T) {
	t.Parallel()
	made := false
	subject := fake{name: "fake", call: func(context.Context, tool.Call) (tool.Result, error) {
		made = true
		return tool.Result{}, nil
	}}
	box := newBox(t, tool.Options{}, subject, fake{name: "another"})
	for _, tt := range []struct {
		name, tool, args string
		want             []string
	}{
		{"unknown_tool", "fakes", "{}", []string{`no tool "fakes"`, "available: another, fake"}},
		{"bad_arguments", "fake", `{"a": "b`, []string{"fake was not run", "unexpected end of JSON input"}},
		{"no_object", "fake", `[1]`, []string{"JSON object"}},
	} {
		text, failed, err := box.Call(t.Context(), chat.ToolCall{Name: tt.tool, Arguments: tt.args}, steps.Steps{})
		if err != nil || !failed || made {
			t.Errorf("%s: failed %v, error %v, made %v", tt.name, failed, err, made)
		}
		for _, want := range tt.want {
			if got := mustTold(t, text).Error; !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", tt.name, got, want)
			}
		}
	}
}

func TestWhatAToolIsGiven(t *testing.T) {
	t.Parallel()
	var got tool.Call
	subject := fake{name: "fake", call: func(_ context.Context, c tool.Call) (tool.Result, error) {
		got = c
		return tool.Result{}, nil
	}}
	st := steps.New(new(stepstest.Recorder)).At("tool/1/2")
	for _, tt := range []struct {
		name, run, task, key string
	}{
		{"run_and_task", "r1", "3/write", "r1/3/write/tool/1/2/call"},
		{"run", "r2", "", "r2/tool/1/2/call"},
		{"nothing_durable", "", "3/write", ""},
	} {
		// A tool may be called by its file's name too; it is told the declared one.
		call := chat.ToolCall{Name: "fake.sh", Arguments: `{"a": 1,}`}
		if _, _, err := newBox(t, tool.Options{Run: tt.run, Task: tt.task}, subject).Call(t.Context(), call, st); err != nil {
			t.Fatal(err)
		}
		key := path.Join(tt.task, "tool/1/2/call")
		if got.Name != "fake" || string(got.Arguments) != `{"a": 1}` || got.RunID != tt.run || got.IdempotencyKey != tt.key || got.Key != key {
			t.Errorf("%s: %+v %s", tt.name, got, got.Arguments)
		}
		st = steps.New(new(stepstest.Recorder)).At("tool/1/2")
	}
}

func TestPanicIsAResult(t *testing.T) {
	t.Parallel()
	var stack string
	box := newBox(t, tool.Options{OnPanic: func(name string, v any, s []byte) { stack = fmt.Sprint(name, v, string(s)) }},
		fake{name: "fake", call: func(context.Context, tool.Call) (tool.Result, error) { panic("index 7") }})
	text, failed, err := box.Call(t.Context(), callFake("{}"), steps.Steps{})
	if err != nil || !failed || !strings.Contains(mustTold(t, text).Error, "index 7") || strings.Contains(text, "goroutine") {
		t.Errorf("got %s, failed %v, error %v", text, failed, err)
	}
	if !strings.Contains(stack, "TestPanicIsAResult") {
		t.Errorf("the stack does not lead to the panic: %s", stack)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	forever := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{Output: "half"}, ctx.Err()
	}
	for _, tt := range []struct {
		name  string
		hints tool.Hints
		box   time.Duration
		want  time.Duration // 0 for none
	}{
		{"default", tool.Hints{}, 0, tool.DefaultTimeout},
		{"of_the_box", tool.Hints{}, time.Minute, time.Minute},
		{"of_the_tool", tool.Hints{Timeout: time.Hour}, time.Minute, time.Hour},
		{"interactive", tool.Hints{Interactive: true}, time.Minute, 0},
		{"unlimited", tool.Hints{Timeout: tool.Unlimited}, time.Minute, 0},
		{"interactive_with_its_own", tool.Hints{Interactive: true, Timeout: time.Hour}, time.Minute, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				box := newBox(t, tool.Options{Timeout: tt.box}, fake{name: "fake", hints: tt.hints, call: forever})
				text, failed, err := box.Call(ctx, callFake("{}"), steps.Steps{})
				took := time.Since(began)
				if tt.want == 0 {
					if !errors.Is(err, context.DeadlineExceeded) || took != 24*time.Hour {
						t.Errorf("%s, %v after %v, want the request's own end", text, err, took)
					}
					return
				}
				want := told{Error: "fake timed out after " + tt.want.String(), Output: "half"}
				if err != nil || !failed || took != tt.want || mustTold(t, text) != want {
					t.Errorf("%s, failed %v, error %v after %v; want %+v", text, failed, err, took, want)
				}
			})
		})
	}
}

func TestCancellationIsAnError(t *testing.T) {
	t.Parallel()
	why := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	box := newBox(t, tool.Options{}, fake{name: "fake", call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		cancel(why)
		<-ctx.Done()
		return tool.Result{}, errors.New("was killed")
	}})
	rec := new(stepstest.Recorder)
	_, _, err := box.Call(ctx, callFake("{}"), steps.New(rec))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v", err)
	}
	if r := rec.Keys()["call"]; !r.Begun || r.Done {
		t.Errorf("the call is recorded as %+v, want begun only", r)
	}
}

func TestSuspensionIsAnError(t *testing.T) {
	t.Parallel()
	rec := new(stepstest.Recorder)
	box := newBox(t, tool.Options{}, returning(tool.Result{}, fault.New(fault.Suspended, "nobody there")))
	if text, _, err := box.Call(t.Context(), callFake("{}"), steps.New(rec)); fault.CodeOf(err) != fault.Suspended {
		t.Errorf("result %s, error %v", text, err)
	}
	if len(rec.Keys()) != 0 {
		t.Errorf("recorded %v, want nothing, so that the call is made anew", rec.Keys())
	}
}

func TestInteractiveCallsRunOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most, calls atomic.Int32
		talk := func(context.Context) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Minute) // the bubble's time, which costs none
			now.Add(-1)
			calls.Add(1)
		}
		box := newBox(t, tool.Options{Asker: ask.Func(func(ctx context.Context, _ ask.Question) (string, error) { talk(ctx); return "yes", nil })},
			fake{name: "fake", hints: tool.Hints{Interactive: true}, call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				talk(ctx)
				return tool.Result{}, nil
			}},
			fake{name: "danger", hints: tool.Hints{Destructive: true}})
		for i := range 6 {
			name := []string{"fake", "danger"}[i%2]
			go func() {
				if text, failed, err := box.Call(t.Context(), chat.ToolCall{Name: name}, steps.Steps{}); failed || err != nil {
					t.Error(text, err)
				}
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := box.Call(ctx, callFake("{}"), steps.Steps{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for the turn was not given up: %v", err)
		}
		time.Sleep(time.Hour)
		if most.Load() != 1 || calls.Load() != 6 {
			t.Errorf("%d at once, %d talks; want 1 and 6", most.Load(), calls.Load())
		}
	})
}

// TestStatefulCallsKeepTheirOrder makes calls of one reply, of which some take longer than those
// behind them.
func TestStatefulCallsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []string // guarded by the order itself: the race detector would see another
		var free atomic.Int32
		box := newBox(t, tool.Options{},
			fake{name: "fake", hints: tool.Hints{Stateful: true}, call: func(_ context.Context, c tool.Call) (tool.Result, error) {
				time.Sleep(time.Duration(9-len(order)) * time.Second)
				order = append(order, c.Key)
				return tool.Result{}, nil
			}},
			fake{name: "free", call: func(context.Context, tool.Call) (tool.Result, error) {
				free.Add(1)
				return tool.Result{}, nil
			}})
		names := []string{"fake", "free", "fake", "unknown", "fake", "free"}
		var wg sync.WaitGroup
		for i, call := range box.InOrder(len(names)) {
			wg.Go(func() {
				st := steps.Steps{}.At(strconv.Itoa(i))
				if _, _, err := call(t.Context(), chat.ToolCall{Name: names[i]}, st); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if free.Load() != 2 {
			t.Errorf("%d calls of a tool without a state were made, want 2", free.Load())
		}
		wg.Wait()
		if want := []string{"0/call", "2/call", "4/call"}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}

func TestConsent(t *testing.T) {
	t.Parallel()
	waits := fault.Wrap(fault.Suspended, ask.ErrUnavailable, "the run waits")
	broken := fmt.Errorf("broken off: %w", context.Canceled)
	destructive := func(*testing.T) tool.Tool { return fake{name: "fake", hints: tool.Hints{Destructive: true}} }
	asks := func(q string) func(*testing.T) tool.Tool {
		return func(*testing.T) tool.Tool {
			return guarded{fake{name: "fake", hints: tool.Hints{Destructive: true}}, q}
		}
	}
	answer := func(text string, err error) ask.Asker {
		return ask.Func(func(context.Context, ask.Question) (string, error) { return text, err })
	}
	for _, tt := range []struct {
		name     string
		tool     func(*testing.T) tool.Tool
		o        tool.Options
		question string // part of it, if one is asked
		refused  string // part of the result
		err      error
	}{
		{name: "harmless", tool: func(*testing.T) tool.Tool { return fake{name: "fake"} }},
		{name: "yes", tool: destructive, o: tool.Options{Asker: answer("yes", nil)}, question: `{"a":"\u202e"}`},
		{name: "no", tool: destructive, o: tool.Options{Asker: answer("no", nil)}, question: "fake", refused: "the user did not consent"},
		{name: "nobody", tool: destructive, o: tool.Options{Asker: answer("", ask.ErrUnavailable)}, question: "fake", refused: "AUTO_CONFIRM"},
		{name: "no_way_to_ask", tool: destructive, refused: "AUTO_CONFIRM"},
		{name: "the_run_waits", tool: destructive, o: tool.Options{Asker: answer("", waits)}, question: "fake", err: waits},
		{name: "broken_off", tool: destructive, o: tool.Options{Asker: answer("", broken)}, question: "fake", err: broken},
		{name: "consent_in_advance", tool: destructive, o: tool.Options{AutoConfirm: true, Asker: answer("no", nil)}},
		{name: "own_question", tool: asks("Really?"), o: tool.Options{Asker: answer("yes", nil)}, question: "Really?"},
		{name: "own_judgement", tool: asks(""), o: tool.Options{Asker: answer("no", nil)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			o := tt.o
			if asker := o.Asker; asker != nil {
				o.Asker = ask.Func(func(ctx context.Context, q ask.Question) (string, error) {
					asked = q.Text
					return asker.Ask(ctx, q)
				})
			}
			text, failed, err := newBox(t, o, tt.tool(t)).Call(t.Context(), callFake("{\"a\":\"\u202e\"}"), steps.Steps{})
			if !errors.Is(err, tt.err) || failed != (tt.refused != "") {
				t.Fatalf("got %s, failed %v, error %v", text, failed, err)
			}
			if !strings.Contains(asked, tt.question) || (asked == "") != (tt.question == "") {
				t.Errorf("asked %q, want %q", asked, tt.question)
			}
			if failed && !strings.Contains(mustTold(t, text).Error, tt.refused) {
				t.Errorf("told %s, want %q", text, tt.refused)
			}
		})
	}
}

func TestQuestionSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"yes": true, " Y ": true, "no": false, "": false, "yes, but not there": false} {
		var got ask.Question
		box := newBox(t, tool.Options{
			Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
				got = q
				return answer, nil
			}),
			From: ask.Question{Node: "write", Agent: "coder"},
		}, fake{name: "fake", hints: tool.Hints{Destructive: true}})
		_, failed, err := box.Call(t.Context(), callFake("{}"), steps.Steps{}.At("tool/1/1"))
		if failed == want || err != nil {
			t.Errorf("%q: failed %v, %v", answer, failed, err)
		}
		if got.ID != "tool/1/1/consent" || got.Node != "write" || got.Agent != "coder" || got.Kind != ask.Choice || !got.Consent {
			t.Errorf("asked %+v", got)
		}
	}
}

// changing needs consent from the second time on that it is looked at.
type changing struct {
	fake
	looked *int
}

func (c changing) Consent(tool.Call) string {
	if *c.looked++; *c.looked > 1 {
		return "Overwrite it?"
	}
	return ""
}

// TestTargetChangedMeanwhile: a call that needed no consent is not made if it needs one by then.
func TestTargetChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, yes := range []bool{false, true} {
		looked := 0
		text, failed, err := newBox(t, tool.Options{AutoConfirm: yes}, changing{fake{name: "fake"}, &looked}).Call(t.Context(), callFake("{}"), steps.Steps{})
		if err != nil || failed == yes || failed && !strings.Contains(text, "Repeat the call") {
			t.Errorf("consent in advance %v: %s, failed %v, %v", yes, text, failed, err)
		}
	}
}

func TestAutoConfirm(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]bool{
		"":                             false,
		"AUTO_CONFIRM=1":               true,
		"AUTO_CONFIRM=true":            true,
		"AUTO_CONFIRM=":                false,
		"AUTO_CONFIRM=False":           false,
		"AUTO_CONFIRM=n":               false,
		"AUTO_CONFIRM=None":            false,
		"AUTO_CONFIRM=disabled":        false,
		"AUTO_CONFIRM=1 AUTO_CONFIRM=": false,
		"NO_AUTO_CONFIRM=1":            false,
		"LLM_AGENT_VAR_AUTO_CONFIRM=1": true,
		"AUTO_CONFIRM=0 LLM_AGENT_VAR_AUTO_CONFIRM=yes": true,
	} {
		if got := tool.AutoConfirm(strings.Fields(environ)); got != want {
			t.Errorf("%s: %v, want %v", environ, got, want)
		}
	}
}

func TestConformance(t *testing.T) {
	type args struct {
		Text string `json:"text"`
		N    int    `json:"n"`
	}
	tooltest.Run(t, tooltest.Case{
		New: func(testing.TB) tool.Tool {
			return declared{fake{name: "fake", call: func(ctx context.Context, c tool.Call) (tool.Result, error) {
				a, err := tool.Decode[args](c)
				if err != nil || ctx.Err() != nil {
					return tool.Result{}, errors.Join(err, ctx.Err())
				}
				if a.Text == "" {
					return tool.Result{}, errors.New("text is missing")
				}
				if a.N > 1 {
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}
				return tool.Result{Output: a.Text}, nil
			}}}
		},
		Good: []string{`{"text": "a"}`, `{"text": "a", "n": 1}`},
		Bad:  []string{`{"text": 1}`, `{"text": "a", "n": "x"}`, `{"text": "a", "n": 1.5}`},
		Slow: `{"text": "a", "n": 2}`,
	})
}

// declared is a fake with parameters.
type declared struct{ fake }

func (d declared) Declaration() chat.Tool {
	c := d.fake.Declaration()
	c.Parameters = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"A text."},"n":{"type":"integer","description":"A number."}},"required":["text"]}`)
	return c
}

func TestDecodeNamesTheArgument(t *testing.T) {
	t.Parallel()
	type args struct {
		S string         `json:"s"`
		B bool           `json:"b"`
		I int            `json:"i"`
		F float64        `json:"f"`
		L []string       `json:"l"`
		O map[string]any `json:"o"`
	}
	for in, want := range map[string]string{
		`{"s": 1}`:   `argument "s" must be of type string, not number`,
		`{"b": "x"}`: `argument "b" must be of type boolean, not string`,
		`{"i": "1"}`: `argument "i" must be of type integer, not string`,
		`{"f": []}`:  `argument "f" must be of type number, not array`,
		`{"l": "x"}`: `argument "l" must be of type array, not string`,
		`{"o": "x"}`: `argument "o" must be of type object, not string`,
	} {
		if _, err := tool.Decode[args](tool.Call{Arguments: json.RawMessage(in)}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	box := newBox(b, tool.Options{}, returning(tool.Result{Output: strings.Repeat("a line of text\n", 100)}, nil))
	call := callFake(`{"path": "README.md", "limit": 100}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := box.Call(b.Context(), call, steps.Steps{}); err != nil {
			b.Fatal(err)
		}
	}
}
