// Package openai is the client of the OpenAI wire formats, for OpenAI itself ([New]),
// for Azure ([NewAzure]) and for the many servers and gateways that speak a dialect
// of them ([NewCompatible]). Chats are held in one of two formats: chat completions,
// which all servers speak, and responses, whose models continue their own reasoning from one call
// of a tool to the next. See [New].
//
// # Requests
//
// A client is one configured connection. A request names a model as the
// configuration does; [client.Options].Model returns the real name and the model's own
// patch. Package wire applies the patches and sends.
//
// A round of tool use is one assistant message, text and calls together, followed
// by its tool messages. Images that a tool returned follow in a user message,
// since tool messages hold only text. Reasoning is sent back inside a tool loop
// only, under the name the server gave it; a leading <think> block of an earlier
// answer is left out. Tools are always declared with an object schema, arguments
// that are not a JSON object are wrapped into one, and call ids longer than 40
// characters are shortened, because servers reject whole conversations for these.
//
// In the responses format the server is asked to store nothing. Each block of
// reasoning comes with an encrypted form of itself, the signature of its part, and
// goes back with it at its place between texts and calls: a call's signature names
// the block that led to it. Summaries of the reasoning are asked for along with an
// effort.
//
// Some models reason with tools only in the responses format, and say so when they are
// asked otherwise. Requests with tools go there as long as the model reasons; where the
// server has no such format, the model does not reason. A client or a model that is
// configured for one format keeps to it.
//
// An effort that a request asks for comes before the one of the model's patch.
//
// Signatures of compatible servers are kept and go back as they came: the
// reasoning_details of OpenRouter with the messages of a tool loop, Google's
// thought_signature with its call.
//
// What one server demands another rejects: stream_options, max_tokens against
// max_completion_tokens, reasoning_content, an effort, temperature and top_p, encrypted
// reasoning, a cache key, the form of tool-call ids. Where a rejection names one of these the request is sent
// again without it, and if that works the client remembers it for the model.
//
// The form of a reply is asked for as a strict JSON schema, of OpenAI, Azure and the
// platforms that are known to take it.
//
// # Replies
//
// What came is read as what it looks like: server-sent events or one JSON
// document, whatever was asked for and whatever the content type says. Texts follow on
// each other as they came. Reasoning
// comes from reasoning_content, from reasoning, from thinking parts, and from a
// <think> block at the very start of the text. Tool calls are assembled across
// chunks from any mix of ids and indexes; calls without an id of their own get
// call_1, call_2 and so on, counted through the conversation. A call beyond three
// equal ones in a row is dropped.
//
// A reply is complete with a finish reason, with [DONE], or with the event that ends
// a response. A connection that ends
// before is a [provider.Transient] failure and yields no tool call. An error object
// inside a reply fails the request after the text before it. Usage that the server
// does not report is estimated.
//
// # Failures
//
// Failures are those of package wire. Nothing is retried, except for the adaptation
// above.
//
// A client is safe for concurrent use.
package openai

import (
	"cmp"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

const (
	openAIBase   = "https://api.openai.com/v1"
	responsesAPI = "responses"
)

// Client is a connection to a server. It implements [provider.Chat] and
// [provider.Embedder].
type Client struct {
	kind     kind
	frame    *client.Frame
	api      string                   // the format in which all chats are held; empty leaves it to the model
	dialects client.Dialects[dialect] // by the name of the configuration
}

// Compatible is a connection to a server with a rerank API. It implements
// [provider.Chat], [provider.Embedder] and [provider.Reranker].
type Compatible struct{ *Client }

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
	_ provider.Reranker = Compatible{}
)

type kind int

const (
	kindOpenAI kind = iota + 1
	kindCompatible
	kindAzure
)

// New returns a client of OpenAI, or of a server at o.APIBase that is treated in the same way.
//
// Here and below, o.API is "chat_completions" or "responses". Empty means chat
// completions, except for what a model needs the other format for. The patches of both
// are those for chat completions. Errors have the code [fault.Config].
func New(o client.Options) (*Client, error) {
	o.APIBase = cmp.Or(o.APIBase, openAIBase)
	return newClient(kindOpenAI, o)
}

// NewCompatible returns a client of a compatible server, which may be asked without
// a key.
func NewCompatible(o client.Options) (Compatible, error) {
	c, err := newClient(kindCompatible, o)
	return Compatible{c}, err
}

// NewAzure returns a client of an Azure OpenAI resource. o.APIBase is the
// resource's URL and a model's real name the name of its deployment.
func NewAzure(o client.Options) (*Client, error) {
	if resource, rest, ok := strings.Cut(o.APIBase, "/openai/deployments/"); ok { // the address of a deployment
		_, query, _ := strings.Cut(rest, "?")
		o.APIBase = strings.TrimSuffix(resource+"?"+query, "?")
	}
	return newClient(kindAzure, o)
}

func newClient(k kind, o client.Options) (*Client, error) {
	if o.API != "" && o.API != string(wire.ChatCompletions) && o.API != responsesAPI {
		return nil, fault.New(fault.Config, "client %q cannot speak the api %q", o.Name, o.API).
			WithHint("leave api out, or set it to %s or %s", wire.ChatCompletions, responsesAPI)
	}
	frame, err := client.New(o, openAIBase, "/chat/completions", "/responses", "/embeddings", "/rerank", "/completions")
	if err != nil {
		return nil, err
	}
	frame.KeyOptional = k == kindCompatible
	if k == kindAzure {
		frame.KeyField = "Api-Key"
	}
	return &Client{kind: k, frame: frame, api: o.API, dialects: client.Dialects[dialect]{Lasting: dialect.withoutConversation}}, nil
}
