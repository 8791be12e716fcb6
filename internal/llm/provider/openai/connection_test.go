package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

const (
	hello  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n"
	finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	done   = "data: [DONE]\n\n"
)

// pacedBody gives its pieces one by one, each after a pause. Behind the last one it
// is silent until the request ends.
type pacedBody struct {
	ctx    context.Context
	pause  time.Duration
	pieces []string
}

func (b *pacedBody) Read(p []byte) (int, error) {
	pause := b.pause
	if len(b.pieces) == 0 {
		pause = 1000 * time.Hour
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(pause):
	}
	if len(b.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.pieces[0])
	b.pieces = b.pieces[1:]
	return n, nil
}

func (b *pacedBody) Close() error { return nil }

// paced answers with a paced body after a wait.
type paced struct {
	wait, pause time.Duration
	pieces      []string
}

func (p paced) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(p.wait):
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
		Body: &pacedBody{ctx: r.Context(), pause: p.pause, pieces: p.pieces},
	}, nil
}

// cut gives the reply and then cuts the connection.
func cut(r wiretest.Reply) wiretest.Reply { return wiretest.Then(r, wiretest.Drop) }

// TestSilence counts the time in which nothing comes from the server, and no other.
func TestSilence(t *testing.T) {
	const minute = time.Minute
	for _, tt := range []struct {
		name    string
		limit   time.Duration
		p       paced
		reading time.Duration // what the consumer takes for a chunk
		text    string
		failed  bool
		took    time.Duration
	}{
		{"steady", minute, paced{50 * time.Second, 50 * time.Second, []string{hello, hello, finish, done}}, 0, "HelloHello", false, 210 * time.Second},
		{"before_the_header", minute, paced{2 * minute, 0, []string{hello, finish, done}}, 0, "", true, minute},
		{"in_the_middle", minute, paced{0, time.Second, []string{hello}}, 0, "Hello", true, minute + time.Second},
		{"slow_consumer", minute, paced{0, 0, []string{hello, hello, finish, done}}, time.Hour, "HelloHello", false, 3 * time.Hour},
		{"default", 0, paced{0, 0, []string{hello}}, 0, "Hello", true, wire.DefaultReadTimeout},
		{"no_limit", -1, paced{100 * time.Hour, 100 * time.Hour, []string{hello, finish, done}}, 0, "Hello", false, 300*time.Hour + 10*time.Second},
		{"complete_but_left_open", minute, paced{0, 0, []string{hello, finish}}, 0, "Hello", false, 10 * time.Second},
		{"open_after_done", minute, paced{0, 0, []string{hello, finish, done}}, 0, "Hello", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := openai.NewCompatible(client.Options{
					Name: "test", APIBase: "http://server.test",
					HTTP: wired(t, wire.Options{Transport: tt.p, ReadTimeout: tt.limit}),
				})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				r := providertest.Collect(t, func(yield func(provider.Chunk, error) bool) {
					for chunk, err := range c.Chat(t.Context(), question()) {
						time.Sleep(tt.reading) // of the bubble's clock
						if !yield(chunk, err) {
							return
						}
					}
				})
				if r.Text != tt.text || (r.Err != nil) != tt.failed {
					t.Errorf("text %q, error %v", r.Text, r.Err)
				}
				if tt.failed {
					e, ok := errors.AsType[*provider.Error](r.Err)
					if !ok || e.Kind != provider.Transient || !strings.Contains(e.Msg, "no data for") || fault.CodeOf(r.Err) == fault.Canceled {
						t.Errorf("error = %+v", r.Err)
					}
				}
				// A connection that stays open after the reply is given a moment to end.
				if took := time.Since(start); took < tt.took || took > tt.took+100*time.Millisecond {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

func TestDroppedConnections(t *testing.T) {
	raw := func(pieces ...string) wiretest.Reply { return wiretest.Body("text/event-stream", pieces...) }
	for _, tt := range []struct {
		name string
		re   wiretest.Reply
		text string
		kind provider.ErrorKind // empty for a complete reply
	}{
		{"at_once", cut(func(*wiretest.Call) {}), "", provider.Transient},
		{"after_text", cut(raw(hello)), "Hello", provider.Transient},
		{"in_an_event", cut(raw(hello, "data: {\"choi")), "Hello", provider.Transient},
		{"after_finish", cut(raw(hello, finish)), "Hello", ""},
		{"after_done", cut(raw(hello, done)), "Hello", ""},
		{"end_without_finish", raw(hello), "Hello", provider.Transient},
		{"empty_stream", raw(), "", provider.Transient},
		{"in_a_document", cut(wiretest.Body("application/json", `{"choices":[{"message":{"content":"Hel`)), "", provider.Transient},
		{"page", raw("<html>Sign in</html>"), "", provider.BadReply},
		{"empty_document", wiretest.Body("application/json"), "", provider.BadReply},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := newClient(t, client.Options{}, tt.re)
			r := collect(t, c, question())
			if r.Text != tt.text || (r.Err == nil) != (tt.kind == "") {
				t.Fatalf("text %q, error %v", r.Text, r.Err)
			}
			if e, ok := errors.AsType[*provider.Error](r.Err); tt.kind != "" && (!ok || e.Kind != tt.kind) {
				t.Errorf("error = %+v, want %s", r.Err, tt.kind)
			}
		})
	}
}

// TestConnectionIsUsedAgain: a tool loop should not pay for a handshake per turn.
func TestConnectionIsUsedAgain(t *testing.T) {
	c, server := newClient(t, client.Options{},
		openaitest.Text("a", "b"), wiretest.Status(400, `{"error":"no"}`),
		openaitest.ToolCalls("", chat.ToolCall{ID: "c", Name: "f", Arguments: "{}"}), openaitest.Text("c"))
	for i := range 4 {
		req := question()
		req.Stream = i%2 == 0
		collect(t, c, req)
	}
	requests := server.Requests()
	for _, r := range requests {
		if r.Remote != requests[0].Remote {
			t.Errorf("connections %s and %s", requests[0].Remote, r.Remote)
		}
	}
}

// TestSecretsStayOut has servers repeat what they were sent, in every place where
// an error can come from.
func TestSecretsStayOut(t *testing.T) {
	const key, token, password = "sk-1234567890abcdef", "tok-abcdef", "pa55word"
	echo := `{"error":{"message":"Incorrect API key provided: ` + key + `, token Custom ` + token + `","type":"t ` + key + `"}}`
	for name, re := range map[string]wiretest.Reply{
		"status":       wiretest.Status(401, echo),
		"plain_text":   wiretest.Status(500, "header was: Bearer "+key+" "+token),
		"document":     wiretest.Body("application/json", echo),
		"mid_stream":   wiretest.Body("text/event-stream", hello+"data: "+echo+"\n\n"),
		"bad_document": wiretest.Body("application/json", `{"`+key+token),
		"bad_stream":   wiretest.Body("text/event-stream", "data: "+key+token+"\n\n"),
		"page":         wiretest.Body("text/html", "<b>"+key+"</b>"+token),
		"redirection":  wiretest.Status(302, "", "Location", "http://x.invalid/"+key),
	} {
		t.Run(name, func(t *testing.T) {
			server := openaitest.New(t)
			server.Always(re)
			c, _ := newClient(t, client.Options{
				APIBase: strings.Replace(server.URL(), "http://", "http://user:"+password+"@", 1),
				APIKey:  wiretest.Key(key),
				Model: func(string) wire.Model {
					return wire.Model{Patch: wire.Patch{Headers: []wire.Header{{Name: "X-Auth", Value: new("Custom " + token)}}}}
				},
			})
			_, _, embedErr := c.Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: []string{"a"}})
			_, _, rerankErr := c.Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q", Documents: []string{"a"}})
			for _, err := range []error{collect(t, c, question()).Err, embedErr, rerankErr} {
				if err == nil {
					t.Error("no error")
					continue
				}
				for _, secret := range []string{key, token, password} {
					if text := fmt.Sprintf("%+v %v", err, errors.Unwrap(err)); strings.Contains(text, secret) {
						t.Errorf("%q in %s", secret, text)
					}
				}
			}
		})
	}
}
