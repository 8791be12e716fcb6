// Package anthropic is the client of Anthropic's Messages API, for Claude at
// Anthropic, at servers that speak the same format, and on Google's Vertex AI. It is
// built on Anthropic's own SDK.
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
// of the user with the results. Neighbouring messages of the same role are merged, and
// blocks without a word left out, since the API rejects them. Thinking blocks go back
// unchanged within the tool loop that they are part of; of older answers only the words
// are sent, without a leading <think> block that another provider may have left there.
//
// The ends of tools and system prompt and of the last two messages of the user are
// marked for the prompt cache, so that each request of a loop reads what the one before
// has written. A single question without tools is not marked, since writing to the cache
// costs more than a plain read.
//
// The API wants to be told how long a reply may be: [DefaultMaxTokens] if the request
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
// sent once more without it, and if that works the client remembers it for the model.
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
// # What the SDK is kept from
//
// The SDK takes settings from the environment, prints warnings to standard error,
// refuses long replies in one piece, tells the server about the machine, reports to the
// process's OpenTelemetry provider, and skips events of servers that send only their
// data. Its types and its transport are used, the rest is not.
//
// A client is safe for concurrent use.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// DefaultBase is the base URL of Anthropic's API.
const DefaultBase = "https://api.anthropic.com/v1"

// DefaultMaxTokens is how long a reply may be, in tokens, if a request does not say. The
// budget of an effort comes on top.
const DefaultMaxTokens = 8192

// Options configures a client. The zero value of a field is its default.
type Options struct {
	// Name is the client's name in the configuration. It is required.
	Name string

	// APIBase is the URL, with the version of the API, that /messages is appended to.
	// Empty means [DefaultBase]. It has no effect on Vertex AI.
	APIBase string

	// APIKey returns the key. It is called for each request, unless there is a Token.
	APIKey func() (string, error)

	// Token returns an OAuth access token, sent instead of a key. It is called for each
	// request. Nil means that there is none.
	Token func(ctx context.Context) (string, error)

	// Headers are sent with every request, such as the anthropic-beta that the issuer
	// of a token asks for.
	Headers map[string]string

	// HTTP sends the requests: a client of [wire.NewClient], which patches requests
	// and turns replies other than 2xx into errors. Nil means one with its defaults.
	HTTP *http.Client

	// Model returns what the configuration says about a model. Nil means nothing.
	Model func(name string) wire.Model

	// Vertex says where on Vertex AI the models are. Nil means Anthropic's API.
	Vertex *Vertex
}

// Client is a connection to the API. It implements [provider.Chat].
type Client struct {
	name   string
	base   string // without a trailing slash
	sdk    sdk.Client
	key    func() (string, error)
	token  func(ctx context.Context) (string, error)
	model  func(name string) wire.Model
	vertex bool

	mu       sync.Mutex
	dialects map[string]dialect // by real name: what rejected requests have taught
}

var _ provider.Chat = (*Client)(nil)

// New returns a client. It sends nothing. Errors are of code [fault.Config].
func New(o Options) (*Client, error) {
	if o.Name == "" {
		return nil, fault.New(fault.Config, "a client needs a name")
	}
	c := &Client{name: o.Name, key: o.APIKey, token: o.Token, model: o.Model, dialects: make(map[string]dialect)}
	var err error
	if o.Vertex != nil {
		c.vertex, c.token = true, o.Vertex.Token
		c.base, err = o.Vertex.base(o.Name)
	} else {
		c.base, err = wire.BaseURL(o.Name, cmp.Or(o.APIBase, DefaultBase), DefaultBase)
	}
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		if o.HTTP, err = wire.NewClient(wire.Options{Client: o.Name}); err != nil {
			return nil, err
		}
	}
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithMaxRetries(0),
		option.WithHTTPClient(o.HTTP),
		option.WithMiddleware(withoutStainless),
	}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		options = append(options, option.WithHeader(name, o.Headers[name]))
	}
	c.sdk = sdk.NewClient(options...)
	return c, nil
}

// withoutStainless removes the header fields by which the SDK describes the machine.
func withoutStainless(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Stainless-") {
			delete(r.Header, name)
		}
	}
	return next(r)
}

// credentials returns the option that makes a request the user's.
func (c *Client) credentials(ctx context.Context) (option.RequestOption, error) {
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, c.tokenError(ctx, err)
		}
		if token = strings.TrimSpace(token); token == "" {
			return nil, &provider.Error{Kind: provider.Authentication, Msg: "the access token of client " + c.name + " is empty"}
		}
		return option.WithAuthToken(token), nil
	}
	key, err := wire.Key(c.name, c.key, false)
	if err != nil {
		return nil, err
	}
	if key == "" {
		variable := strings.ToUpper(strings.ReplaceAll(c.name, "-", "_")) + "_API_KEY"
		return nil, &provider.Error{
			Kind: provider.Authentication,
			Msg: "client " + c.name + " has no API key: set " + variable + " or ANTHROPIC_API_KEY, or api_key in its configuration, " +
				"or auth: oauth there and log in with loki --authenticate " + c.name,
		}
	}
	return option.WithAPIKey(key), nil
}

// tokenError returns the error for a token that cannot be had. Whoever fetches tokens
// knows best if trying again may help; otherwise the user has to log in.
func (c *Client) tokenError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := errors.AsType[*provider.Error](err); ok {
		return err
	}
	return &provider.Error{Kind: provider.Authentication, Msg: "access token of client " + c.name, Err: err}
}
