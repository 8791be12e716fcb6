package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// TestClientTools: a reply that calls a tool of the caller ends the request, when what else it calls has
// been run.
func TestClientTools(t *testing.T) {
	t.Parallel()
	call := func(id, name string) chat.ToolCall { return chat.ToolCall{ID: id, Name: name, Arguments: "{}"} }
	own := tools{"fast": func(context.Context, string) (string, bool, error) { return "was fast", false, nil }}
	for _, tt := range []struct {
		name     string
		tools    Tools
		replies  [][]provider.Chunk
		declared []string
		open     []string // ids
		stop     chat.StopReason
		messages []string // role, id of the call, text
		text     string
	}{
		{
			name: "only_the_callers", replies: [][]provider.Chunk{calls("Look:", call("1", "show"), call("2", "show"))},
			declared: []string{"show", "slow"}, open: []string{"1", "2"}, stop: chat.StopToolCalls, text: "Look:",
			messages: []string{"assistant  Look:"},
		},
		{
			name: "both", tools: own, replies: [][]provider.Chunk{calls("", call("1", "fast"), call("2", "show"), call("3", "fast"))},
			declared: []string{"fast", "show", "slow"}, open: []string{"2"}, stop: chat.StopToolCalls,
			messages: []string{"assistant  ", "tool 1 was fast", "tool 3 was fast"},
		},
		{
			name: "rounds_before", tools: own, replies: [][]provider.Chunk{calls("", call("1", "fast")), calls("Now.", call("2", "slow"))},
			declared: []string{"fast", "show", "slow"}, open: []string{"2"}, stop: chat.StopToolCalls, text: "Now.",
			messages: []string{"assistant  ", "tool 1 was fast", "assistant  Now."},
		},
		{
			name: "none_is_called", tools: own, replies: [][]provider.Chunk{calls("", call("1", "fast")), says("Done.")},
			declared: []string{"fast", "show", "slow"}, stop: chat.StopEnd, text: "Done.",
			messages: []string{"assistant  ", "tool 1 was fast", "assistant  Done."},
		},
		{
			name: "made_up_without_own_tools", replies: [][]provider.Chunk{calls("", call("1", "nothing"))},
			declared: []string{"show", "slow"}, open: []string{"1"}, stop: chat.StopToolCalls, messages: []string{"assistant  "},
		},
		{
			name: "cut_off", replies: [][]provider.Chunk{
				{{Kind: provider.ToolCall, ToolCall: call("1", "show")}, end(chat.StopLength)}, calls("", call("2", "show")),
			},
			declared: []string{"show", "slow"}, open: []string{"2"}, stop: chat.StopToolCalls,
			messages: []string{"assistant  ", "tool 1 show was not run: your reply reached the output limit and was cut off, so the call may be incomplete. " +
				"Nothing of it was done. Make the call again, with shorter arguments or in several smaller calls.", "assistant  "},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{replies: tt.replies}
			rc, events := newContext()
			req := user("hi")
			req.Tools, req.Client = tt.tools, []chat.Tool{{Name: "show"}, {Name: "slow"}}
			reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
			if err != nil {
				t.Fatal(err)
			}
			var declared, open, messages []string
			for _, d := range f.requests[0].Tools {
				declared = append(declared, d.Name)
			}
			for _, c := range reply.Calls {
				open = append(open, c.ID)
			}
			for _, m := range reply.Messages {
				messages = append(messages, string(m.Role)+" "+m.ToolCallID+" "+m.Text())
			}
			if diff := cmp.Diff(tt.declared, declared); diff != "" {
				t.Errorf("declared:\n%s", diff)
			}
			if diff := cmp.Diff(tt.open, open); diff != "" {
				t.Errorf("open calls:\n%s", diff)
			}
			if diff := cmp.Diff(tt.messages, messages); diff != "" {
				t.Errorf("messages:\n%s", diff)
			}
			if reply.Stop != tt.stop || reply.Text != tt.text {
				t.Errorf("stop %s, text %q", reply.Stop, reply.Text)
			}
			all := 0
			for _, r := range tt.replies {
				for _, chunk := range r {
					if chunk.Kind == provider.ToolCall {
						all++
					}
				}
			}
			if n := len(eventtest.Bodies[event.ToolCall](events)); n != all {
				t.Errorf("%d calls were announced, want %d", n, all)
			}
		})
	}
}
