// Package anthropic is the client of Anthropic's Messages API, for Claude at
// Anthropic, at servers that speak the same format, and on Google's Vertex AI.
//
// # Terms
//
// A conversation is a list of messages of the user and the assistant in turn, and a
// message is a list of blocks: text, image, thinking, tool use, tool result. A tool loop
// is what follows the last words of the user: calls, their results, more calls. The
// signature of a thinking block is the API's proof that the block is its own; a redacted
// thinking block has nothing but such a proof.
//
// # Requests
//
// A round of tool use is one message of the assistant with its text and calls, and one
// of the user with the results. Neighboring messages of the same role are merged, and
// blocks without a word left out, since the API rejects them. Thinking blocks go back
// unchanged within the tool loop that they are part of; of older answers only the words
// are sent, without a leading <think> block that another provider may have left there.
//
// The ends of tools and system prompt and of the last two messages of the user are
// marked for the prompt cache, so that each request of a loop reads what the one before
// has written. A single question without tools is not marked, since writing to the cache
// costs more than a plain read.
//
// The API has to know how long a reply may be: [DefaultMaxTokens] if the request
// does not say. An effort becomes adaptive thinking for models from Claude 4.6 on and a
// budget of tokens for others. Models that think by themselves, as from Claude 5 on, are
// asked for the words of their thoughts even without an effort, because what they say
// between calls is among them. The thinking of a model's patch counts unless the request
// has an effort. The budget is added to that default, or takes at most three
// quarters of the length that a request asks for. Temperature and top_p are left out
// where a model thinks.
//
// What one model demands another rejects: budgets, adaptive thinking, sampling
// parameters, lengths of replies. Where a rejection names one of these the request is
// sent again without it, and if that works the client remembers it for the model.
// Thinking blocks that a model does not accept for its own are left out of that one
// conversation.
//
// # Replies
//
// What came is read as what it looks like: server-sent events or one JSON document,
// whatever was asked for. Texts follow on each other as they came. Tool calls are yielded when the reply is complete; without an id of
// their own they get call_1, call_2 and so on, counted through the conversation. A call
// beyond three equal ones in a row is dropped. A stream is complete with the event message_stop.
//
// A client is safe for concurrent use.
package anthropic

import (
	"cmp"
	"context"
	"net/url"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
)

// DefaultBase is the base URL of Anthropic's API.
const DefaultBase = "https://api.anthropic.com/v1"

// DefaultMaxTokens is how long a reply may be, in tokens, if a request does not say. The
// budget of an effort comes on top.
const DefaultMaxTokens = 8192

// Client is a connection to the API. It implements [provider.Chat].
type Client struct {
	frame    *client.Frame
	vertex   bool
	dialects client.Dialects[dialect] // by real name
}

var _ provider.Chat = (*Client)(nil)

// New returns a client. o.APIBase is the URL, with the version of the API, that /messages
// is appended to; empty means [DefaultBase]. Errors have the code [fault.Config].
func New(o client.Options) (*Client, error) {
	o.APIBase = cmp.Or(o.APIBase, DefaultBase)
	return newClient(o, false)
}

// NewVertex returns a client of Google's Vertex AI. o.APIBase is the URL that the name of a
// model is appended to, and o.Token returns access tokens of Google Cloud. Errors have the
// code [fault.Config].
func NewVertex(o client.Options) (*Client, error) { return newClient(o, true) }

func newClient(o client.Options, vertex bool) (*Client, error) {
	frame, err := client.New(o, DefaultBase, "/messages")
	if err != nil {
		return nil, err
	}
	frame.KeyField = "X-Api-Key"
	frame.KeySources = " or ANTHROPIC_API_KEY, or api_key in its configuration, or auth: oauth there and log in with loki --authenticate " + o.Name
	return &Client{frame: frame, vertex: vertex, dialects: client.Dialects[dialect]{Lasting: dialect.withoutConversation}}, nil
}

// apiVersion is the version of the API that the messages are of.
const apiVersion = "2023-06-01"

// vertexVersion replaces the header anthropic-version on Vertex AI.
const vertexVersion = "vertex-2023-10-16"

// endpoint returns the URL of a request.
func (c *Client) endpoint(model string, stream bool) string {
	switch {
	case !c.vertex:
		return c.frame.URL("/messages")
	case stream:
		return c.frame.URL("/" + url.PathEscape(model) + ":streamRawPredict")
	}
	return c.frame.URL("/" + url.PathEscape(model) + ":rawPredict")
}

// ListModels implements [provider.Lister] for a client of [New].
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	return c.frame.List(ctx, c.frame.URL("/models?limit=1000"), "Anthropic-Version", apiVersion)
}
