package providertest

import (
	"bytes"
	"testing"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest/wiretest"
)

// FormatCase says how a provider asks for the form of a reply, for [CheckFormat].
type FormatCase struct {
	// New returns a client of the server at url, which has no slash at its end.
	New func(t *testing.T, url string) provider.Chat
	// Request names the model; it is sent with [FormatSchema] and for a reply in one piece.
	Request provider.Request
	// Want is the form as it has to stand in the body of the request, without white space.
	Want string
	// Reply answers a request, and Refusal one with the form.
	Reply, Refusal wiretest.Reply
}

// FormatSchema is the schema of a [FormatCase]. It has a member that need not be there,
// and a keyword that no provider knows.
const FormatSchema = `{"type":"object","properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer"}},"required":["name"]}`

// CheckFormat checks that a provider sends the form of a reply to a server that takes it;
// that it sends the request without, at once, to one that refuses it; and that it does
// not ask that one again.
func CheckFormat(t *testing.T, c FormatCase) {
	t.Helper()
	shape, err := value.ParseJSON([]byte(FormatSchema))
	if err != nil {
		t.Fatal(err)
	}
	plain := c.Request
	plain.Messages = []chat.Message{chat.Text(chat.User, "Who?")}
	formed := plain
	formed.Format = &provider.Format{Schema: shape}
	for _, refuses := range []bool{false, true} {
		has := func(body []byte) bool { return bytes.Contains(body, []byte(c.Want)) }
		server := wiretest.New(t, wiretest.Options{}, func(call *wiretest.Call) {
			if refuses && has(call.Body) {
				c.Refusal(call)
				return
			}
			c.Reply(call)
		})
		chat := c.New(t, server.URL())
		for i, tt := range []struct {
			req  provider.Request
			want []bool
		}{
			{plain, []bool{false}},
			{formed, map[bool][]bool{false: {true}, true: {true, false}}[refuses]},
			{formed, map[bool][]bool{false: {true}, true: {false}}[refuses]},
		} {
			before := len(server.Requests())
			if r := Collect(t, chat.Chat(t.Context(), tt.req)); r.Err != nil {
				t.Errorf("refuses %t, request %d: %v", refuses, i+1, r.Err)
			}
			var with []bool // of each request, whether it had the form
			for _, r := range server.Requests()[before:] {
				with = append(with, has(r.Body))
			}
			if len(with) != len(tt.want) || with[0] != tt.want[0] || with[len(with)-1] != tt.want[len(with)-1] {
				t.Errorf("refuses %t, request %d: the form was sent %v, want %v", refuses, i+1, with, tt.want)
			}
		}
	}
}
