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
// for 2.5. A model that rejects it, or a signature that is not its own, is asked once
// more without; what it rejects of the effort is remembered.
//
// # Replies
//
// Streams are server-sent events, but a stream of JSON documents or an array of them is
// read as well. A text part that follows another in one document is set off by a blank
// line. Thoughts are reasoning; the signature of a part that is no call is a chunk of
// reasoning of its own. Calls are yielded when the reply is complete: with a finish
// reason. Calls without an id of their own get call_1, call_2 and so on, counted through
// the conversation, and a call beyond three equal ones in a row is dropped.
//
// A client is safe for concurrent use.
package gemini

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// DefaultBase is the base URL of the Gemini API.
const DefaultBase = "https://generativelanguage.googleapis.com/v1beta"

// Options configures a client. The zero value of a field is its default.
type Options struct {
	// Name is the client's name in the configuration. It is required.
	Name string

	// APIBase is the URL, with the version of the API, that paths like
	// /models/gemini-2.5-pro:generateContent are appended to; on Vertex AI they begin
	// with /projects. Empty means [DefaultBase], or the host of the location.
	APIBase string

	// APIKey returns the key. It is called for each request, unless Token is set.
	APIKey func() (string, error)

	// Token returns an OAuth access token, sent instead of a key. It is called for
	// each request and has to be set for Vertex AI.
	Token func(ctx context.Context) (string, error)

	// HTTP sends the requests: a client of [wire.NewClient], which patches requests
	// and turns replies other than 2xx into errors. Nil means one with its defaults.
	HTTP *http.Client

	// Model returns what the configuration says about a model. Nil means nothing.
	Model func(name string) wire.Model

	// Vertex says where on Vertex AI the models are. Nil means the Gemini API.
	Vertex *Vertex
}

// Vertex is a place on Vertex AI.
type Vertex struct {
	Project  string
	Location string // such as europe-west4 or global
}

// VertexHost returns the URL of the Vertex AI host that serves a location, without the
// version of the API.
func VertexHost(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// Client is a connection to the API. It implements [provider.Chat] and
// [provider.Embedder].
type Client struct {
	name   string
	base   string // without a slash at its end
	http   *http.Client
	key    func() (string, error)
	token  func(ctx context.Context) (string, error)
	model  func(name string) wire.Model
	vertex *Vertex // nil on the Gemini API

	refusals wire.Refusals // by real name: models that take no form of the reply

	mu       sync.Mutex
	thinking map[string]limit // by real name: what rejected requests have taught
}

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
)

// New returns a client. Errors are configuration errors.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		return nil, fault.New(fault.Config, "a client needs a name")
	}
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		if o.HTTP, err = wire.NewClient(wire.Options{Client: o.Name}); err != nil {
			return nil, err
		}
	}
	return &Client{
		name: o.Name, base: base, http: o.HTTP, key: o.APIKey, token: o.Token, model: o.Model,
		vertex: o.Vertex, thinking: make(map[string]limit),
	}, nil
}

// base returns the checked base URL.
func (o Options) base() (string, error) {
	base := o.APIBase
	switch {
	case o.Vertex != nil && (o.Vertex.Project == "" || o.Vertex.Location == ""):
		return "", fault.New(fault.Config, "client %q needs a project_id and a location", o.Name)
	case o.Vertex != nil:
		base = cmp.Or(base, VertexHost(o.Vertex.Location)+"/v1")
	}
	return wire.BaseURL(o.Name, cmp.Or(base, DefaultBase), DefaultBase)
}
