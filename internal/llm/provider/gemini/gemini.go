// Package gemini is the client of Google's Gemini models, on the Gemini API and, for
// the vertexai package, on Vertex AI.
//
// # Terms
//
// A conversation is a list of contents with the roles user and model, a content is a
// list of parts, and a part is text, a thought, an image, a function call or a
// function response. A thought signature is the API's proof of the reasoning that led
// to a part; models from Gemini 3 on reject a function call that comes back without it.
//
// # Requests
//
// A round of tool use is one model content with the calls and one user content with
// the responses, matched by name and order. A response is an object: {"output": value}
// or, of a failed call, {"error": value}. Tools are declared with their JSON Schema as
// it is; a tool without parameters has none. Signatures go back with the part they came
// with. A round of calls that another provider's model made has none: for models that
// insist its first call bears the value that Google names for this.
//
// An effort becomes a thinking level for models from Gemini 3 on and a budget of tokens
// for 2.5. A model that rejects it, or a signature that is not its own, is asked again without;
// what it rejects of the effort is remembered.
//
// # Replies
//
// Streams are server-sent events, but a stream of JSON documents or an array of them is
// read as well. A text part that follows another in one document is set off by a blank
// line. Thoughts are reasoning; the signature of a part that is not a call is a chunk of
// reasoning of its own. Calls are yielded when the reply is complete: with a finish
// reason. Calls without an id of their own get call_1, call_2 and so on, counted through
// the conversation, and a call beyond three equal ones in a row is dropped.
//
// A client is safe for concurrent use.
package gemini

import (
	"cmp"
	"context"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
)

// DefaultBase is the base URL of the Gemini API.
const DefaultBase = "https://generativelanguage.googleapis.com/v1beta"

// Client is a connection to the API. It implements [provider.Chat] and
// [provider.Embedder].
type Client struct {
	frame    *client.Frame
	place    string                   // on Vertex AI the project and location as a resource; empty on the Gemini API
	dialects client.Dialects[dialect] // by real name
}

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
)

// New returns a client of the Gemini API. o.APIBase is the URL, with the version of the
// API, that paths like /models/gemini-2.5-pro:generateContent are appended to; empty means
// [DefaultBase]. Errors have the code [fault.Config].
func New(o client.Options) (*Client, error) {
	o.APIBase = cmp.Or(o.APIBase, DefaultBase)
	if base, rest, ok := strings.Cut(o.APIBase, "/models/"); ok && strings.Contains(rest, ":") { // the address of a method
		_, query, _ := strings.Cut(rest, "?")
		o.APIBase = strings.TrimSuffix(base+"?"+query, "?")
	}
	return newClient(o, "")
}

// NewVertex returns a client of Vertex AI. o.APIBase is the URL, with the version of the
// API, that place is appended to, the resource projects/{project}/locations/{location};
// o.Token returns access tokens of Google Cloud. Errors have the code [fault.Config].
func NewVertex(o client.Options, place string) (*Client, error) { return newClient(o, place) }

func newClient(o client.Options, place string) (*Client, error) {
	frame, err := client.New(o, DefaultBase)
	if err != nil {
		return nil, err
	}
	frame.KeyField = "X-Goog-Api-Key"
	return &Client{frame: frame, place: place, dialects: client.Dialects[dialect]{Lasting: dialect.withoutConversation}}, nil
}

// ListModels implements [provider.Lister] for a client of [New].
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	return c.frame.List(ctx, c.frame.URL("/models?pageSize=1000"))
}
