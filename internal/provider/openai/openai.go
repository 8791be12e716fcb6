// Package openai is the client of the OpenAI chat-completions wire format, for
// OpenAI itself ([New]), for Azure ([NewAzure]) and for the many servers and
// gateways that speak a dialect of it ([NewCompatible]).
//
// # Requests
//
// A client is one configured connection. A request names a model as the
// configuration does; [Options].Model tells the real name and the model's own
// patch. A patch changes URL, body or headers of the finished request: first the
// model's, then the first of the client's rules whose pattern matches the whole
// model name.
//
// A round of tool use is one assistant message, text and calls together, followed
// by its tool messages. Images that a tool returned follow in a user message,
// since tool messages hold only text. Reasoning is sent back inside a tool loop
// only, under the name the server gave it; a leading <think> block of an earlier
// answer is left out. Tools are always declared with an object schema, arguments
// that are not a JSON object are wrapped into one, and call ids longer than 40
// characters are shortened, because servers reject whole conversations for these.
//
// What one server demands another rejects: stream_options, max_tokens against
// max_completion_tokens, reasoning_content, the form of tool-call ids. Where a
// rejection names one of these the request is sent once more without it, and if
// that works the client remembers it for the model.
//
// # Replies
//
// What came is read as what it looks like: server-sent events or one JSON
// document, whatever was asked for and whatever the content type says. Reasoning
// comes from reasoning_content, from reasoning, from thinking parts, and from a
// <think> block at the very start of the text. Tool calls are assembled across
// chunks from any mix of ids and indexes; calls without an id of their own get
// call_1, call_2 and so on, counted through the conversation. A call beyond three
// equal ones in a row is dropped.
//
// A reply is complete with a finish reason or with [DONE]. A connection that ends
// before is a [provider.Transient] failure and yields no tool call. An error object
// inside a reply fails the request after the text before it. Usage that the server
// does not tell is estimated.
//
// # Failures
//
// All failures are [*provider.Error] or wrap the context's error. The kind follows
// from the server's error code and wording where these are known, else from the
// HTTP status; an exhausted account is [provider.Authentication] although it comes
// as 429, since waiting does not help. Messages hold neither keys nor headers, and
// show at most a piece of a page that is no JSON. Nothing is retried, except for
// the adaptation above.
//
// A client is safe for concurrent use.
package openai

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"loki/internal/fault"
	"loki/internal/provider"
)

// Defaults of [Options].
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultReadTimeout    = 5 * time.Minute
)

// Options configures a client. The zero value of a field is its default.
type Options struct {
	// Name is the client's name in the configuration. It is required. A compatible
	// client that bears the name of a platform, see [Platforms], has its base URL.
	Name string

	// APIBase is the URL that paths like /chat/completions are appended to. It may
	// be left out for OpenAI and for platforms.
	APIBase string

	// APIKey returns the key, or "" for none. It is called for each request. Nil
	// means no key, which only compatible servers can do without.
	APIKey func() (string, error)

	Organization string // sent as OpenAI-Organization

	// Proxy is the URL of a proxy: http, https, socks5 or socks5h. Nil takes it
	// from the usual environment variables; "" and "-" mean none.
	Proxy *string

	ConnectTimeout time.Duration // for connection and TLS handshake each; 0 means DefaultConnectTimeout
	ReadTimeout    time.Duration // longest silence of the server; 0 means DefaultReadTimeout, negative means any

	UserAgent string // empty leaves it to net/http

	Model   func(name string) Model // what the configuration says about a model; nil means nothing
	Patches Patches

	// Log gets each request at debug level, without its headers, and a warning for
	// each pattern of Patches that is no regular expression. Nil means none.
	Log *slog.Logger

	// Transport sends the requests instead of the client's own transport; Proxy and
	// ConnectTimeout then have no effect.
	Transport http.RoundTripper
}

// Model is what the configuration says about one model name.
type Model struct {
	RealName string // name sent to the server; empty means the name itself
	Patch    Patch  // applied to every request with this model, before the client's rules
}

// StaticKey returns key as the function that [Options] asks for.
func StaticKey(key string) func() (string, error) {
	return func() (string, error) { return key, nil }
}

// Client is a connection to a server. It implements [provider.Chat] and
// [provider.Embedder].
type Client struct {
	kind        kind
	name        string
	base        string // without a trailing slash
	key         func() (string, error)
	org         string
	userAgent   string
	readTimeout time.Duration // 0 means any
	connTimeout time.Duration
	model       func(name string) Model
	patches     patcher
	limits      map[operation]int64 // bytes of a reply
	log         *slog.Logger
	http        *http.Client

	mu       sync.Mutex
	dialects map[string]dialect // by model name: what rejected requests have taught
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

// New returns a client of OpenAI, or of a server at o.APIBase that is to be
// treated in the same way. Errors are configuration errors.
func New(o Options) (*Client, error) {
	if o.APIBase == "" {
		o.APIBase = openAIBase
	}
	return newClient(kindOpenAI, o)
}

// NewCompatible returns a client of a compatible server. Without an o.APIBase the
// client's name has to be that of a platform.
func NewCompatible(o Options) (Compatible, error) {
	if o.APIBase == "" {
		o.APIBase, _ = BaseURL(o.Name)
	}
	c, err := newClient(kindCompatible, o)
	return Compatible{c}, err
}

// NewAzure returns a client of an Azure OpenAI resource. o.APIBase is the
// resource's URL and a model's real name the name of its deployment.
func NewAzure(o Options) (*Client, error) {
	return newClient(kindAzure, o)
}

func newClient(k kind, o Options) (*Client, error) {
	if o.Name == "" {
		return nil, fault.New(fault.Config, "a client needs a name")
	}
	base, err := checkBase(o.Name, o.APIBase)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		kind: k, name: o.Name, base: base, org: o.Organization, userAgent: o.UserAgent,
		key: o.APIKey, model: o.Model, log: o.Log,
		connTimeout: positive(o.ConnectTimeout, DefaultConnectTimeout),
		readTimeout: positive(o.ReadTimeout, DefaultReadTimeout),
		patches:     compile(o.Patches, o.Name, o.Log),
		limits:      replyLimits(),
		dialects:    make(map[string]dialect),
	}
	if o.ReadTimeout < 0 {
		c.readTimeout = 0
	}
	transport := o.Transport
	if transport == nil {
		transport, err = newTransport(o.Name, o.Proxy, c.connTimeout)
		if err != nil {
			return nil, err
		}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: followWithinHost}
	return c, nil
}

func positive(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// lookup returns what the configuration says about the model name.
func (c *Client) lookup(name string) Model {
	var m Model
	if c.model != nil {
		m = c.model(name)
	}
	if m.RealName == "" {
		m.RealName = name
	}
	return m
}
