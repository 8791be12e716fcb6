// Package cohere is the client of Cohere's API, version 2: conversations,
// embeddings and reranking.
//
// It writes and reads the API's JSON itself, on the connection of package wire.
// Cohere's own library (v2.16.2) is not used: its reader of streams takes a lost
// connection, an event of more than 64 KiB and the letters [DONE] inside a text for
// the end of a complete reply, and its retries sleep through a cancellation.
//
// # Requests
//
// The text that came with tool calls goes back as the tool plan. Reasoning goes back
// inside a tool loop only, and none that another provider has signed; a leading
// <think> block of an earlier answer is left out. Images that a tool returned follow
// in a user message, since tool messages hold only text. Image URLs may be of any
// kind. Tools are always declared with an object schema, and arguments that are not
// a JSON object are wrapped into one. An effort becomes a budget of thinking tokens
// for the models whose name says that they reason.
//
// # Replies
//
// The tool plan is text of the answer. A blank line separates blocks of text. Tool
// calls come at the end, when the reply is known to be complete: without the event
// message-end, or [DONE], it is a [provider.Transient] failure. A call without an id, or with
// one that is taken, gets the next free of call_1, call_2 and so on, counted through
// the conversation; a call beyond three equal ones in a row is dropped. Usage is
// what is billed, or else what the model read and wrote.
//
// Failures are [*provider.Error] or wrap the context's error; an error inside a
// stream fails the request after the text before it. Nothing is retried. A client is
// safe for concurrent use.
package cohere

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"

	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// DefaultAPIBase is the URL of Cohere's own service.
const DefaultAPIBase = "https://api.cohere.ai/v2"

// Options configures a client. The zero value of a field is its default.
type Options struct {
	Name    string // the client's name in the configuration; required
	APIBase string // what /chat, /embed and /rerank are appended to; empty means DefaultAPIBase

	// APIKey returns the key. It is called for each request.
	APIKey func() (string, error)

	// HTTP sends the requests. It is a client of [wire.NewClient], whose patches then
	// apply; nil means one with its defaults.
	HTTP *http.Client

	// Model tells what the configuration says about a model. Nil means nothing.
	Model func(name string) wire.Model
}

// Client is a connection to Cohere. It implements [provider.Chat],
// [provider.Embedder] and [provider.Reranker].
type Client struct {
	name  string
	base  string // without a trailing slash
	key   func() (string, error)
	http  *http.Client
	model func(name string) wire.Model

	refusals wire.Refusals // by real name: models that take no form of the reply
}

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
	_ provider.Reranker = (*Client)(nil)
)

// New returns a client. Errors are configuration errors.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		return nil, fault.New(fault.Config, "a client needs a name")
	}
	base, err := wire.BaseURL(o.Name, cmp.Or(o.APIBase, DefaultAPIBase), DefaultAPIBase)
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		if o.HTTP, err = wire.NewClient(wire.Options{Client: o.Name}); err != nil {
			return nil, err
		}
	}
	return &Client{name: o.Name, base: base, key: o.APIKey, http: o.HTTP, model: o.Model}, nil
}

func (c *Client) asking() string  { return "asking " + c.name }
func (c *Client) reading() string { return "reading the reply of " + c.name }

// post sends payload to path. The caller closes the body of the response. ctx has
// the call. The error is ready for the consumer.
func (c *Client) post(ctx context.Context, path string, payload any, stream bool) (*http.Response, error) {
	key, err := wire.Key(c.name, c.key, true)
	if err != nil {
		return nil, err
	}
	data, err := wire.Encode(payload)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be written as JSON", Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(data))
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "client " + c.name + ": api_base is malformed"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if stream {
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Cache-Control", "no-store")
		req.Header.Set("Accept-Encoding", "identity") // compression makes proxies hold chunks back
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, wire.Failure(ctx, c.asking(), err)
	}
	return resp, nil
}

// ask sends payload to path and returns the whole reply.
func (c *Client) ask(ctx context.Context, path string, payload any) ([]byte, error) {
	resp, err := c.post(ctx, path, payload, false)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, wire.Failure(ctx, c.reading(), err)
	}
	return data, nil
}
