package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
)

// chunks returns the pieces of a streamed reply to req.
func chunks(t *testing.T, p *Provider, req provider.Request) []provider.Chunk {
	t.Helper()
	var out []provider.Chunk
	req.Stream = true
	for c, err := range p.Chat(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func collect(t *testing.T, p *Provider, req provider.Request) providertest.Reply {
	t.Helper()
	return providertest.Collect(t, p.Chat(t.Context(), req))
}

func user(text string) []chat.Message { return []chat.Message{chat.Text(chat.User, text)} }

func texts(chunks []provider.Chunk) []string {
	var out []string
	for _, c := range chunks {
		if c.Kind == provider.Text || c.Kind == provider.Reasoning {
			out = append(out, c.Text)
		}
	}
	return out
}

// TestPiecesShareText streams texts of many words: what a reply costs does not depend on the number of its pieces.
func TestPiecesShareText(t *testing.T) {
	p := New(Options{ScriptFile: writeScript(t, "default: {reply: '"+strings.Repeat("word ", 20_000)+"'}")})
	for _, req := range []provider.Request{
		{Model: Echo, Messages: user(strings.Repeat("x ", 500_000))},
		{Model: Echo, Messages: user(strings.Repeat("x ", 500_000)), MaxOutputTokens: 200_000},
		{Model: Script, Messages: user("hello")},
	} {
		for _, req.Stream = range []bool{false, true} {
			n := testing.AllocsPerRun(1, func() {
				for _, err := range p.Chat(t.Context(), req) {
					if err != nil {
						t.Fatal(err)
					}
				}
			})
			if n > 500 {
				t.Errorf("%s, stream %v: %.0f allocations", req.Model, req.Stream, n)
			}
		}
	}
}

func TestModels(t *testing.T) {
	p := New(Options{ScriptFile: writeScript(t, "default: {reply: hi}")})
	for _, m := range p.Models() {
		if m.Summary == "" {
			t.Errorf("model %s has no summary", m.Name)
		}
		if r := collect(t, p, provider.Request{Model: m.Name, Messages: user("Hello there.")}); r.Err != nil {
			t.Errorf("model %s: %v", m.Name, r.Err)
		}
	}
}

func TestErrors(t *testing.T) {
	good := writeScript(t, "rules:\n  - match: {text: yes}\n    reply: hi\n")
	bad := writeScript(t, "default:\n  replay: hi\n")
	large := writeScript(t, strings.Repeat("# 45678901234567\n", 1<<16))
	for _, tt := range []struct {
		name, model string
		options     Options
		want        []string
	}{
		{name: "unknown_model", model: "gpt", want: []string{`unknown model "gpt"`, "extract, echo, script and script/PATH"}},
		{name: "model_with_suffix", model: "echo/x", want: []string{`unknown model "echo/x"`}},
		{name: "no_script_file", model: "script", want: []string{"LOKI_SCRIPT_FILE", "script/PATH"}},
		{name: "no_path", model: "script/", want: []string{"has no rule file"}},
		{name: "missing_file", model: "script/no/such.yaml", want: []string{"model script/no/such.yaml", "no such file"}},
		{name: "mistake", model: "script/" + bad, want: []string{bad + ":2:3: default.replay: unknown key; did you mean \"reply\"?"}},
		{name: "too_large", model: "script/" + large, want: []string{large, "larger than 1048576 bytes"}},
		{name: "no_rule", model: "script", options: Options{ScriptFile: good}, want: []string{good, "no rule applies to text \"no\""}},
		{name: "paths_refused", model: "script/" + good, options: Options{OnlyScriptFile: true}, want: []string{"not allowed here"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := collect(t, New(tt.options), provider.Request{Model: tt.model, Messages: user("no")})
			e, ok := errors.AsType[*provider.Error](r.Err)
			if !ok || e.Kind != provider.Invalid || r.Chunks != 0 {
				t.Fatalf("%d chunks and the error %v, want an invalid request", r.Chunks, r.Err)
			}
			for _, want := range tt.want {
				if !strings.Contains(e.Error(), want) {
					t.Errorf("error %q does not say %q", e, want)
				}
			}
		})
	}
}

func TestUnknownEmbeddingModel(t *testing.T) {
	_, _, err := New(Options{}).Embed(t.Context(), provider.EmbedRequest{Model: Echo, Texts: []string{"x"}})
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != provider.Invalid || !strings.Contains(e.Msg, `"echo"; the built-in one is hash`) {
		t.Errorf("got %v, want an invalid request", err)
	}
}

func TestEcho(t *testing.T) {
	text := func(s string) chat.Part { return chat.Part{Type: chat.TextPart, Text: s} }
	image := chat.Part{Type: chat.ImagePart, URL: "https://x.org/a.png"}
	for _, tt := range []struct {
		name  string
		parts []chat.Part
		want  []string
	}{
		{name: "empty"},
		{name: "words", parts: []chat.Part{text("one  two\nthree ")}, want: []string{"one  ", "two\n", "three "}},
		{name: "space_first", parts: []chat.Part{text(" one")}, want: []string{" ", "one"}},
		{name: "parts_joined", parts: []chat.Part{text("on"), text("e")}, want: []string{"one"}},
		{name: "images", parts: []chat.Part{text("look"), image, image, text("nice")}, want: []string{"look\n", "[image]\n", "[image]\n", "nice"}},
		{name: "image_only", parts: []chat.Part{image}, want: []string{"[image]"}},
		{name: "broken_utf8", parts: []chat.Part{text("a\xff b")}, want: []string{"a\xff ", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := provider.Request{Model: Echo, Messages: []chat.Message{
				chat.Text(chat.System, "s"),
				chat.Text(chat.User, "earlier"),
				{Role: chat.User, Parts: tt.parts},
				chat.Text(chat.Assistant, "later"),
			}}
			if got := texts(chunks(t, New(Options{}), req)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutputLimit(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		limit      int
		want       string
		stop       chat.StopReason
	}{
		{name: "none", text: "one two three", want: "one two three", stop: chat.StopEnd},
		{name: "fits", text: "one two three four", limit: 5, want: "one two three four", stop: chat.StopEnd},
		{name: "fits_exactly", text: "12345678", limit: 2, want: "12345678", stop: chat.StopEnd},
		{name: "cut", text: "one two three four", limit: 3, want: "one two thre", stop: chat.StopLength},
		{name: "cut_other_script", text: "灯塔的光", limit: 1, want: "灯塔", stop: chat.StopLength},
		{name: "cut_between_words", text: "123 567 9", limit: 2, want: "123 567 ", stop: chat.StopLength},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := collect(t, New(Options{}), provider.Request{Model: Echo, Messages: user(tt.text), MaxOutputTokens: tt.limit, Stream: true})
			if r.Text != tt.want || r.Stop != tt.stop {
				t.Errorf("got %q (%s), want %q (%s)", r.Text, r.Stop, tt.want, tt.stop)
			}
			if tt.limit > 0 && r.Usage.OutputTokens > tt.limit {
				t.Errorf("%d tokens are more than %d", r.Usage.OutputTokens, tt.limit)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	req := provider.Request{
		Model: "script/" + writeScript(t, `default: {reasoning: 12345678, reply: 12345, tool_calls: [{name: abcd, arguments: {}}]}`),
		Messages: []chat.Message{
			chat.Text(chat.System, "12345"), // 2
			{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "1234"}, {Type: chat.ImagePart, URL: "data:x"}}},          // 1
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "call_1", Name: "1234", Arguments: "12345678"}}},                    // 3
			{Role: chat.ToolRole, ToolCallID: "call_1", Parts: []chat.Part{{Type: chat.TextPart, Text: "é"}}, ToolName: "not counted"}, // 1
		},
		Tools: []chat.Tool{{Name: "1234", Description: "1234", Parameters: []byte(`{"a":1}`)}}, // 4
	}
	want := chat.Usage{InputTokens: 11, OutputTokens: 2 + 2 + 2, ReasoningTokens: 2}
	for _, stream := range []bool{true, false} {
		req.Stream = stream
		r := collect(t, New(Options{}), req)
		if r.Usage != want {
			t.Errorf("stream %v: usage %+v, want %+v", stream, r.Usage, want)
		}
		if r.ToolCalls[0].ID != "call_2" {
			t.Errorf("id %q, want one that is new in the conversation", r.ToolCalls[0].ID)
		}
	}
}

func TestScriptedUsageAndStop(t *testing.T) {
	for _, tt := range []struct {
		name, rule string
		want       chat.Usage
		stop       chat.StopReason
	}{
		{name: "counted", rule: "reply: word", want: chat.Usage{InputTokens: 1, OutputTokens: 1}, stop: chat.StopEnd},
		{
			name: "given", rule: "reply: word, stop: length, usage: {input_tokens: 9, cached_input_tokens: 8, output_tokens: 7, reasoning_tokens: 6}",
			want: chat.Usage{InputTokens: 9, CachedInputTokens: 8, OutputTokens: 7, ReasoningTokens: 6}, stop: chat.StopLength,
		},
		{name: "zero", rule: "reply: word, usage: {input_tokens: 0, output_tokens: 0}", stop: chat.StopEnd},
		{
			name: "part_of_given", rule: "reasoning: a long thought about it, usage: {output_tokens: 3}",
			want: chat.Usage{InputTokens: 1, OutputTokens: 3, ReasoningTokens: 3}, stop: chat.StopEnd,
		},
		{name: "calls", rule: "tool_calls: [{name: word}]", want: chat.Usage{InputTokens: 1, OutputTokens: 2}, stop: chat.StopToolCalls},
		{name: "calls_with_stop", rule: "tool_calls: [{name: word}], stop: stop", want: chat.Usage{InputTokens: 1, OutputTokens: 2}, stop: chat.StopEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New(Options{ScriptFile: writeScript(t, "default: {"+tt.rule+"}")})
			r := collect(t, p, provider.Request{Model: Script, Messages: user("1234")})
			if r.Usage != tt.want || r.Stop != tt.stop {
				t.Errorf("got %+v (%s), want %+v (%s)", r.Usage, r.Stop, tt.want, tt.stop)
			}
		})
	}
}

func TestScriptStreams(t *testing.T) {
	const content = "reasoning: so so, reply: añb c, tool_calls: [{name: x}]"
	for _, tt := range []struct {
		name, rule string
		stream     bool
		want       []string
		waits      []time.Duration
	}{
		{name: "words", rule: content, stream: true, want: []string{"so ", "so", "añb ", "c"}},
		{name: "characters", rule: content + ", chunk: 2", stream: true, want: []string{"so", " s", "o", "añ", "b ", "c"}},
		{name: "one_piece", rule: content + ", chunk: 2", want: []string{"so so", "añb c"}},
		{
			name: "delays", rule: content + ", delay: 2s, chunk_delay: 1s", stream: true, want: []string{"so ", "so", "añb ", "c"},
			waits: []time.Duration{2 * time.Second, time.Second, time.Second, time.Second, time.Second},
		},
		{
			name: "delay_of_one_piece", rule: content + ", delay: 2s, chunk_delay: 1s", want: []string{"so so", "añb c"},
			waits: []time.Duration{2 * time.Second},
		},
		{name: "delay_of_nothing", rule: "reply: '', delay: 2s", stream: true, waits: []time.Duration{2 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var waits []time.Duration
			p := New(Options{ScriptFile: writeScript(t, "default: {"+tt.rule+"}"), Sleep: noSleep(&waits)})
			var got []provider.Chunk
			for c, err := range p.Chat(t.Context(), provider.Request{Model: Script, Messages: user("hi"), Stream: tt.stream}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, c)
			}
			if !slices.Equal(texts(got), tt.want) {
				t.Errorf("chunks %q, want %q", texts(got), tt.want)
			}
			if !slices.Equal(waits, tt.waits) {
				t.Errorf("waits %v, want %v", waits, tt.waits)
			}
		})
	}
}

func TestScriptedFailures(t *testing.T) {
	for _, tt := range []struct {
		name, rule string
		stream     bool
		text       string
		waits      []time.Duration
	}{
		{name: "at_once", rule: "error: {kind: transient}, delay: 1s", stream: true, waits: []time.Duration{time.Second}},
		{name: "after_one_chunk", rule: "reply: a b c, error: {kind: transient, after_chunks: 1}", stream: true, text: "a "},
		{name: "after_all_chunks", rule: "reply: a b c, error: {kind: transient, after_chunks: 99}", stream: true, text: "a b c"},
		{name: "in_one_piece", rule: "reply: a b c, error: {kind: transient, after_chunks: 2}"},
		{
			name: "with_delays", rule: "reply: a b c, error: {kind: transient, after_chunks: 1}, delay: 1s, chunk_delay: 2s", stream: true,
			text: "a ", waits: []time.Duration{time.Second, 2 * time.Second},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var waits []time.Duration
			p := New(Options{ScriptFile: writeScript(t, "default: {"+tt.rule+"}"), Sleep: noSleep(&waits)})
			r := collect(t, p, provider.Request{Model: Script, Messages: user("hi"), Stream: tt.stream})
			if r.Text != tt.text || !provider.Retryable(r.Err) {
				t.Errorf("text %q and the error %v, want %q and a transient error", r.Text, r.Err, tt.text)
			}
			if !slices.Equal(waits, tt.waits) {
				t.Errorf("waits %v, want %v", waits, tt.waits)
			}
		})
	}
}

// The file is read once; its counts belong to the provider and are shared by all
// ways to name it.
func TestScriptFileIsKept(t *testing.T) {
	path := writeScript(t, "rules:\n  - {times: 1, reply: first}\n  - {times: 1, reply: second}\n")
	p := New(Options{ScriptFile: path})
	if r := collect(t, p, provider.Request{Model: Script}); r.Text != "first" {
		t.Errorf("got %q and %v, want first", r.Text, r.Err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other := filepath.Dir(path) + "/./" + filepath.Base(path)
	if r := collect(t, p, provider.Request{Model: "script/" + other}); r.Text != "second" {
		t.Errorf("got %q and %v, want second", r.Text, r.Err)
	}
	if r := collect(t, New(Options{ScriptFile: path}), provider.Request{Model: Script}); r.Err == nil {
		t.Errorf("another provider answers %q from a file that is gone", r.Text)
	}
}

func TestScriptFileIsTriedAgain(t *testing.T) {
	path := writeScript(t, "oops")
	p := New(Options{ScriptFile: path})
	if r := collect(t, p, provider.Request{Model: Script}); r.Err == nil {
		t.Fatalf("got %q from a broken file", r.Text)
	}
	if err := os.WriteFile(path, []byte("default: {reply: mended}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := collect(t, p, provider.Request{Model: Script}); r.Text != "mended" {
		t.Errorf("got %q and %v, want the reply of the mended file", r.Text, r.Err)
	}
}

func TestRelativePath(t *testing.T) {
	path := writeScript(t, "default: {reply: here}")
	t.Chdir(filepath.Dir(path))
	if r := collect(t, New(Options{}), provider.Request{Model: "script/rules.yaml"}); r.Text != "here" {
		t.Errorf("got %q and %v", r.Text, r.Err)
	}
}

// A request that was cancelled before it began uses no rule up.
func TestCancelledRequestCountsNot(t *testing.T) {
	p := New(Options{ScriptFile: writeScript(t, "rules: [{times: 1, reply: once}]")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range p.Chat(ctx, provider.Request{Model: Script}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", err)
		}
	}
	if r := collect(t, p, provider.Request{Model: Script}); r.Text != "once" {
		t.Errorf("got %q and %v", r.Text, r.Err)
	}
}

func TestRealDelays(t *testing.T) {
	path := writeScript(t, "default: {reply: a b, delay: 3s, chunk_delay: 2s}")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := New(Options{ScriptFile: path})
		chunks(t, p, provider.Request{Model: Script})
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("the reply took %v, want 5s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		for _, err := range p.Chat(ctx, provider.Request{Model: Script}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error = %v, want context.DeadlineExceeded", err)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("the deadline was met after %v, want 1s", d)
		}
	})
}
