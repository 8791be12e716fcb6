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
	"cmp"
	"context"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
)

// DefaultAPIBase is the URL of Cohere's own service.
const DefaultAPIBase = "https://api.cohere.ai/v2"

// Client is a connection to Cohere. It implements [provider.Chat],
// [provider.Embedder] and [provider.Reranker].
type Client struct {
	frame    *client.Frame
	dialects client.Dialects[dialect] // by real name
}

// dialect is what a model does not take of that which others do.
type dialect struct{ noFormat bool }

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
	_ provider.Reranker = (*Client)(nil)
)

// New returns a client. o.APIBase is what /chat, /embed and /rerank are appended to; empty
// means [DefaultAPIBase]. Errors have the code [fault.Config].
func New(o client.Options) (*Client, error) {
	o.APIBase = cmp.Or(o.APIBase, DefaultAPIBase)
	frame, err := client.New(o, DefaultAPIBase, "/chat", "/embed", "/rerank")
	if err != nil {
		return nil, err
	}
	return &Client{frame: frame}, nil
}

// ListModels implements [provider.Lister]. The list is part of the first version of the API only.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	return c.frame.List(ctx, strings.Replace(c.frame.URL("/models?page_size=1000"), "/v2/models?", "/v1/models?", 1))
}
