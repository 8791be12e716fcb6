package bedrock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// inTurn answers the first requests with validation exceptions and the others as rest does.
func inTurn(messages []string, rest wiretest.Reply) wiretest.Reply {
	return func(c *wiretest.Call) {
		if len(messages) == 0 {
			rest(c)
			return
		}
		msg := messages[0]
		messages = messages[1:]
		wiretest.Status(400, fmt.Sprintf(`{"message":%q}`, msg), "X-Amzn-Errortype", "ValidationException")(c)
	}
}

// TestAdaptation has a model reject what others of its family take: the request is sent
// again without it, and from then on at once.
func TestAdaptation(t *testing.T) {
	for _, tt := range []struct {
		name   string
		req    provider.Request
		msgs   []string
		marks  []string // a word of each body, from the first to the last; with ! it must not be there
		effort string   // the note
	}{
		{
			"cache_points",
			provider.Request{Model: newClaude, Tools: []chat.Tool{{Name: "f"}}},
			[]string{"You invoked an unsupported model or your request did not allow prompt caching."},
			[]string{"cachePoint", "!cachePoint"},
			"",
		},
		{
			"sampling",
			provider.Request{Model: newClaude, Sampling: chat.Sampling{Temperature: number(0.5), TopP: number(0.5)}},
			[]string{"`temperature` is deprecated for this model."},
			[]string{"temperature", "!top"},
			"",
		},
		{
			"display",
			provider.Request{Model: newClaude, Sampling: chat.Sampling{Effort: provider.LowEffort}},
			[]string{"The model returned the following errors: thinking.adaptive.display: Extra inputs are not permitted"},
			[]string{"display", "!display"},
			"",
		},
		{
			"effort",
			provider.Request{Model: newClaude, Sampling: chat.Sampling{Effort: provider.LowEffort}},
			[]string{"output_config: Extra inputs are not permitted"},
			[]string{"output_config", "!output_config"},
			"effort low is not available, so the model reasons as it does by default",
		},
		{
			"thinking",
			provider.Request{Model: "anthropic.claude-opus-5-5"},
			[]string{"display is not supported", "thinking: Input tag 'adaptive' does not match"},
			[]string{"display", "adaptive", "!thinking"},
			"",
		},
		{
			"nearest_effort",
			provider.Request{Model: newClaude, Sampling: chat.Sampling{Effort: provider.XHighEffort}},
			nil,
			[]string{`"effort":"high"`},
			"effort xhigh is not available, so high is used",
		},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s_%v", tt.name, stream), func(t *testing.T) {
				srv := newServer(t, inTurn(tt.msgs, wiretest.Either(streamed(transcript(textStart+textEnd)), wiretest.Status(200, textWhole))))
				c := srv.client(nil)
				req := tt.req
				req.Stream, req.Messages = stream, []chat.Message{user("a")}
				for range 2 {
					r := providertest.Collect(t, c.Chat(t.Context(), req))
					if r.Err != nil || strings.Join(r.Notes, "|") != tt.effort {
						t.Fatalf("notes %q, error %v", r.Notes, r.Err)
					}
				}
				marks := append(slices.Clone(tt.marks), tt.marks[len(tt.marks)-1])
				if len(srv.Requests()) != len(marks) {
					t.Fatalf("%d requests, want %d", len(srv.Requests()), len(marks))
				}
				for i, mark := range marks {
					word, not := strings.CutPrefix(mark, "!")
					if strings.Contains(srv.Requests()[i].Text(), word) == not {
						t.Errorf("request %d: want %s in %s", i+1, mark, srv.Requests()[i].Text())
					}
				}
			})
		}
	}
}

// TestRejectionsThatStay: what is the user's to mend is sent once.
func TestRejectionsThatStay(t *testing.T) {
	for _, msg := range []string{"temperature: range: 0..1", "Malformed input request", "cachePoint is not supported", "thinking is not supported"} {
		srv := newServer(t, inTurn([]string{msg, msg}, wiretest.Hang))
		r := providertest.Collect(t, srv.client(nil).Chat(t.Context(), provider.Request{Model: newClaude, Sampling: chat.Sampling{Temperature: number(3)}, Messages: []chat.Message{user("a")}}))
		if r.Err == nil || len(srv.Requests()) != 1 {
			t.Errorf("%q: error %v after %d requests", msg, r.Err, len(srv.Requests()))
		}
	}
}

// TestModelDecides: no cache points where the configuration says so, and the thinking of a
// model's patch unless the request has an effort.
func TestModelDecides(t *testing.T) {
	const patch = `{"additionalModelRequestFields":{"thinking":{"type":"disabled"}}}`
	model := func(string) wire.Model {
		return wire.Model{NoCache: true, Patch: wire.Patch{Body: providertest.Object(json.RawMessage(patch))}}
	}
	req := provider.Request{Model: "anthropic.claude-opus-5-5", Tools: []chat.Tool{{Name: "f"}}, Messages: []chat.Message{user("a")}}
	got := ask(t, req, func(o *Options) { o.Model = model })
	if strings.Contains(got.Text(), "cachePoint") || strings.Contains(got.Text(), "display") || !strings.Contains(got.Text(), `"disabled"`) {
		t.Errorf("body %s", got.Text())
	}
	req.Effort = provider.HighEffort
	if got = ask(t, req, func(o *Options) { o.Model = model }); strings.Contains(got.Text(), "disabled") || !strings.Contains(got.Text(), `"effort":"high"`) {
		t.Errorf("body %s", got.Text())
	}
}
