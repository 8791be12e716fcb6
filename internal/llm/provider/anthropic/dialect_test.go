package anthropic_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// TestAdaptation has a server reject what it does not take, and expects the next
// request to do without. What has been learned stays.
func TestAdaptation(t *testing.T) {
	half, most := 0.5, 0.9
	get := func(b object, path ...string) any {
		var v any = b
		for _, p := range path {
			m, ok := v.(object)
			if !ok {
				return nil
			}
			v = m[p]
		}
		return v
	}
	loop := question(
		calling(assistant(reasoning("thoughts", "foreign")), call("a")),
		result("a", text("1")),
	).Messages
	for _, tt := range []struct {
		name  string
		model string
		req   provider.Request
		msgs  []string // with which the server declines
		path  []string // what of the bodies is looked at
		want  []any    // there, in the requests of the first question
		once  bool     // it is not remembered
	}{
		{
			"budget_to_adaptive", "new-model",
			provider.Request{Sampling: chat.Sampling{Effort: provider.HighEffort}},
			[]string{`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`},
			[]string{"thinking", "type"},
			[]any{"enabled", "adaptive"},
			false,
		},
		{
			"no_thinking", "claude-3-5-haiku-20241022",
			provider.Request{Sampling: chat.Sampling{Effort: provider.LowEffort, Temperature: &half}},
			[]string{"'claude-3-5-haiku-20241022' does not support thinking."},
			[]string{"thinking", "type"},
			[]any{"enabled", nil},
			false,
		},
		{
			"adaptive_to_budget_to_nothing", "claude-opus-4-6",
			provider.Request{Sampling: chat.Sampling{Effort: provider.LowEffort}},
			[]string{"thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'", "adaptive thinking: budget_tokens not supported"},
			[]string{"thinking", "type"},
			[]any{"adaptive", "enabled", nil},
			false,
		},
		{
			"always_thinking", "claude-fable-5",
			provider.Request{Sampling: chat.Sampling{Effort: provider.NoEffort}},
			[]string{`"thinking.type.disabled" is not supported for this model.`},
			[]string{"thinking", "type"},
			[]any{"disabled", nil},
			false,
		},
		{
			"display", "claude-opus-4-6",
			provider.Request{Sampling: chat.Sampling{Effort: provider.LowEffort}},
			[]string{"thinking.adaptive.display: Extra inputs are not permitted"},
			[]string{"thinking", "display"},
			[]any{"summarized", nil},
			false,
		},
		{
			"effort", "claude-opus-4-6",
			provider.Request{Sampling: chat.Sampling{Effort: provider.LowEffort}},
			[]string{"This model does not support the effort parameter."},
			[]string{"output_config", "effort"},
			[]any{"low", nil},
			false,
		},
		{
			"temperature", "claude-opus-4-7",
			provider.Request{Sampling: chat.Sampling{Temperature: &half}},
			[]string{"`temperature` is deprecated for this model."},
			[]string{"temperature"},
			[]any{0.5, nil},
			false,
		},
		{
			"both", "claude-opus-4-1",
			provider.Request{Sampling: chat.Sampling{Temperature: &half, TopP: &most}},
			[]string{"`temperature` and `top_p` cannot both be specified for this model. Please use only one."},
			[]string{"top_p"},
			[]any{0.9, nil},
			false,
		},
		{
			"max_tokens", "claude-3-haiku-20240307",
			provider.Request{},
			[]string{"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307"},
			[]string{"max_tokens"},
			[]any{8192.0, 4096.0},
			false,
		},
		{
			"foreign_signature", "claude-sonnet-4-5",
			provider.Request{Messages: loop, Sampling: chat.Sampling{Effort: provider.LowEffort}},
			[]string{"messages.1.content.0: Invalid `signature` in `thinking` block"},
			[]string{"thinking", "type"},
			[]any{"enabled", nil},
			true,
		},
		{
			"highest_effort", "claude-opus-5",
			provider.Request{Sampling: chat.Sampling{Effort: provider.MaxEffort}},
			[]string{"output_config.effort: 'max' is not supported for this model."},
			[]string{"output_config", "effort"},
			[]any{"max", "high"},
			false,
		},
		{
			"display_of_a_model_that_thinks_by_itself", "claude-opus-5",
			provider.Request{},
			[]string{"thinking.adaptive.display: Extra inputs are not permitted", "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'"},
			[]string{"thinking", "type"},
			[]any{"adaptive", "adaptive", nil},
			false,
		},
		{
			"cache", "some-model",
			provider.Request{Tools: []chat.Tool{{Name: "f"}}},
			[]string{"messages.0.content.0.cache_control: Extra inputs are not permitted"},
			[]string{"messages"},
			nil,
			false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var script []wiretest.Reply
			for _, msg := range tt.msgs {
				script = append(script, status(400, "invalid_request_error", msg))
			}
			s := newServer(t, append(script, answer([]string{"Hi"}))...)
			c := s.client(nil)
			req := tt.req
			req.Model = tt.model
			if req.Messages == nil {
				req.Messages = question().Messages
			}
			for range 2 {
				if r := collect(t, c, req); r.Err != nil || r.Text != "Hi" {
					t.Fatalf("text %q, error %v", r.Text, r.Err)
				}
			}
			var got []any
			for _, r := range s.Requests() {
				got = append(got, get(r.JSON(), tt.path...))
			}
			want := slices.Clone(tt.want)
			switch {
			case tt.once:
				want = append(want, want[0])
			case want != nil:
				want = append(want, want[len(want)-1])
			default: // the marks for the cache are all over the body
				if len(s.Requests()) != 3 || slices.ContainsFunc(s.Requests()[1:], func(r wiretest.Request) bool { return contains(r, "cache_control") }) || !contains(s.Requests()[0], "cache_control") {
					t.Errorf("%d requests, the last %s", len(s.Requests()), s.Last().Body)
				}
				return
			}
			if !slices.Equal(got, want) {
				t.Errorf("requests with %v, want %v", got, want)
			}
		})
	}
}

// TestRejectionsThatStay sends what no adaptation mends.
func TestRejectionsThatStay(t *testing.T) {
	half := 1.5
	for name, msg := range map[string]string{
		"other":           "messages: roles must alternate",
		"out_of_range":    "temperature: Input should be less than or equal to 1",
		"not_sent":        "`top_k` and `thinking` are not supported",
		"limit_unknown":   "max_tokens: Input should be a valid integer",
		"limit_above":     "max_tokens: 8192 > 99999, which is strange",
		"limit_nonsense":  "max_tokens: 8192 > 99999999999999999999",
		"no_blocks":       "messages.1: Invalid `signature` in `thinking` block",
		"budget_too_high": "`max_tokens` must be greater than `thinking.budget_tokens`",
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, status(400, "invalid_request_error", msg))
			req := question()
			req.Temperature = &half
			wantError(t, collect(t, s.client(nil), req).Err, provider.Invalid)
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// TestStubbornServer rejects everything, whatever is left out.
func TestStubbornServer(t *testing.T) {
	for _, msg := range []string{
		"thinking not supported: signature", "adaptive thinking not supported", "thinking display not supported", "effort not supported",
		"cache_control not supported", "temperature not supported", "max_tokens: 8192 > 1",
	} {
		s := newServer(t, status(400, "invalid_request_error", msg))
		req := question(calling(assistant(reasoning("a", "s")), call("a")), result("a", text("1")))
		req.Effort, req.Model = provider.HighEffort, "claude-opus-4-6"
		wantError(t, collect(t, s.client(nil), req).Err, provider.Invalid)
		if n := len(s.Requests()); n > 5 {
			t.Errorf("%q: %d requests", msg, n)
		}
	}
}

// TestNearestEffort: a model that lacks an effort gets its nearest, and the user is shown
// which. A budget of tokens stands for any effort.
func TestNearestEffort(t *testing.T) {
	for _, tt := range []struct {
		model  string
		list   []provider.Effort
		effort provider.Effort
		want   any // output_config.effort
		note   string
	}{
		{"claude-opus-4-6", nil, "xhigh", "high", "effort xhigh is not available, so high is used"},
		{"claude-opus-4-6", nil, "max", "max", ""},
		{"claude-opus-4-8", nil, "xhigh", "xhigh", ""},
		{"claude-opus-4-8", nil, "minimal", "low", "effort minimal is not available, so low is used"},
		{"claude-opus-5-5", []provider.Effort{"low", "high"}, "max", "high", "effort max is not available, so high is used"},
		{"claude-opus-5-5", []provider.Effort{"low", "high"}, "none", "low", "effort none is not available, so low is used"},
		{"claude-sonnet-4-5", nil, "max", nil, ""},
		{"claude-sonnet-4-5", nil, "none", nil, ""},
		{"claude-opus-5-5", nil, "", nil, ""},
	} {
		s := newServer(t, answer([]string{"Hi"}))
		req := question()
		req.Model, req.Effort = tt.model, tt.effort
		r := collect(t, s.client(func(o *client.Options) {
			o.Model = func(string) wire.Model { return wire.Model{Efforts: tt.list} }
		}), req)
		config, _ := s.Last().JSON()["output_config"].(object)
		if r.Err != nil || config["effort"] != tt.want || strings.Join(r.Notes, "|") != tt.note {
			t.Errorf("%s, effort %q: %v with notes %q, error %v; want %v, %q", tt.model, tt.effort, config["effort"], r.Notes, r.Err, tt.want, tt.note)
		}
	}
}

// TestEffortBeatsPatch: the effort of a request comes before the thinking of a model's
// patch, and without an effort the patch says it all.
func TestEffortBeatsPatch(t *testing.T) {
	for _, tt := range []struct {
		model  string
		effort provider.Effort
		patch  string
		want   string
	}{
		{"claude-haiku-4-5", "", `{"thinking":{"type":"enabled","budget_tokens":16000},"temperature":null}`, `{"budget_tokens":16000,"type":"enabled"}`},
		{"claude-haiku-4-5", "low", `{"thinking":{"type":"enabled","budget_tokens":16000},"temperature":null}`, `{"budget_tokens":2048,"type":"enabled"}`},
		{"claude-opus-5-5", "", `{"thinking":{"type":"disabled"}}`, `{"type":"disabled"}`},
		{"claude-opus-5-5", "max", `{"thinking":{"type":"disabled"},"output_config":{"effort":"low"}}`, `{"display":"summarized","type":"adaptive"}max`},
	} {
		s := newServer(t, answer([]string{"Hi"}))
		req := question()
		req.Model, req.Effort = tt.model, tt.effort
		r := collect(t, s.client(func(o *client.Options) {
			o.Model = func(string) wire.Model {
				return wire.Model{Patch: wire.Patch{Body: providertest.Object(json.RawMessage(tt.patch))}}
			}
		}), req)
		got, err := json.Marshal(s.Last().JSON()["thinking"])
		if err != nil {
			t.Fatal(err)
		}
		config, _ := s.Last().JSON()["output_config"].(object)
		effort, _ := config["effort"].(string)
		if r.Err != nil || string(got)+effort != tt.want {
			t.Errorf("%s, effort %q, patch %s: %s%s, error %v", tt.model, tt.effort, tt.patch, got, effort, r.Err)
		}
	}
}
