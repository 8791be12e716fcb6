// Package client is the frame of the clients of remote providers: how they are
// configured, how they send a request and read its reply, and what they learn from
// rejections. A provider's package adds the format of its API.
//
// # Terms
//
// A rejection is a response by which a server refuses a request as it is. A dialect is
// what of a format a model or its server takes; a [Dialects] remembers it. An [Emit]
// takes the chunks of a reply, in order, and a [Reply] writes them.
//
// # Errors
//
// Errors of requests are ready for the caller of [provider.Chat]: they are
// [*provider.Error] or wrap the context's error, and hold no secrets.
package client

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// Options configures a client. The zero value of a field is its default.
type Options struct {
	Name string // the client's name in the configuration; required

	// APIBase is the URL that the API's paths are appended to. Empty means the
	// provider's own, where it has one.
	APIBase string

	// APIKey returns the key, or "" for none. It is called for each request, unless
	// there is a Token. Nil means no key.
	APIKey func() (string, error)

	// Token returns an OAuth access token, sent instead of a key. It is called for each
	// request. Nil means that a key is used.
	Token func(ctx context.Context) (string, error)

	// API is the format in which chats are held, for a provider with several. Empty
	// leaves it to the provider.
	API string

	Headers map[string]string // sent with every request

	// HTTP sends the requests: a client of [wire.NewClient], which patches requests
	// and turns responses other than 2xx into errors. Nil means one with its defaults.
	HTTP *http.Client

	// Model returns what the configuration says about a model. Nil means nothing.
	Model func(name string) wire.Model
}

// Frame is a connection to a provider. It is not changed after it has been set up and
// may be used from several goroutines.
type Frame struct {
	Name string
	Base string // without query, the path of an endpoint and a slash at its end; see [Frame.URL]
	HTTP *http.Client

	// KeyField is the header field for a key. Empty means Authorization, as a bearer
	// token.
	KeyField    string
	KeyOptional bool   // requests may be sent without a key
	KeySources  string // ways to have a key beside the client's variable, for an error; empty means the usual one

	Tools Tools // declares the tools of requests

	query   string // of the base, which each address gets
	headers map[string]string
	key     func() (string, error)
	token   func(ctx context.Context) (string, error)
	model   func(name string) wire.Model
}

// New returns a frame for o. example is a base URL for the hint of an error. endpoints are the paths that the client
// appends to the base: a base that ends in one of them, as the address of an endpoint does, is taken without it. Errors
// have the code [fault.Config].
func New(o Options, example string, endpoints ...string) (*Frame, error) {
	if o.Name == "" {
		return nil, fault.New(fault.Config, "a client needs a name")
	}
	base, err := wire.BaseURL(o.Name, o.APIBase, example)
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		if o.HTTP, err = wire.NewClient(wire.Options{Client: o.Name}); err != nil {
			return nil, err
		}
	}
	base, query, _ := strings.Cut(base, "?")
	base = strings.TrimRight(base, "/")
	for _, path := range endpoints {
		if rest, ok := strings.CutSuffix(base, path); ok {
			base = strings.TrimRight(rest, "/")
			break
		}
	}
	return &Frame{Name: o.Name, Base: base, query: query, HTTP: o.HTTP, headers: o.Headers, key: o.APIKey, token: o.Token, model: o.Model}, nil
}

// URL returns the address of a path, which may have a query. Of a parameter that the base has as well, the value of the
// base counts.
func (f *Frame) URL(path string) string {
	if f.query == "" {
		return f.Base + path
	}
	path, own, _ := strings.Cut(path, "?")
	query := f.query
	for parameter := range strings.SplitSeq(own, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if parameter != "" && !strings.Contains("&"+f.query, "&"+name+"=") {
			query += "&" + parameter
		}
	}
	return f.Base + path + "?" + query
}

// Model returns what the configuration says about a model, with the real name filled in.
func (f *Frame) Model(name string) wire.Model { return wire.Lookup(f.model, name) }

// Call returns the context of a request to a model, and what the configuration says about
// the model.
func (f *Frame) Call(ctx context.Context, api wire.API, model string) (context.Context, wire.Model) {
	m := f.Model(model)
	return wire.WithCall(ctx, wire.Call{API: api, Model: model, Patch: m.Patch}), m
}

// Authorize sets the header fields by which a request is the user's. They stay unset
// where the key is optional and there is none.
func (f *Frame) Authorize(ctx context.Context, h http.Header) error {
	secret, err := f.secret(ctx)
	switch {
	case err != nil:
		return err
	case secret == "":
	case f.token == nil && f.KeyField != "":
		h.Set(f.KeyField, secret)
	default:
		h.Set("Authorization", "Bearer "+secret)
	}
	for name, value := range f.headers {
		h.Set(name, value)
	}
	return nil
}

// secret returns the access token or the key.
func (f *Frame) secret(ctx context.Context) (string, error) {
	if f.token == nil {
		return f.apiKey()
	}
	token, err := f.token(ctx)
	token = strings.TrimSpace(token)
	switch {
	case err != nil && provider.KindOf(err) != "": // the source of tokens knows whether to try again
		return "", err
	case err != nil && ctx.Err() == nil:
		return "", &provider.Error{Kind: provider.Authentication, Msg: "access token of client " + f.Name, Err: err}
	case err != nil:
		return "", f.RequestError(ctx, err)
	case token == "":
		return "", &provider.Error{Kind: provider.Authentication, Msg: "the access token of client " + f.Name + " is empty"}
	}
	return token, nil
}

// apiKey returns the key without white space around it.
func (f *Frame) apiKey() (string, error) {
	failed := func(msg string, err error) (string, error) {
		return "", &provider.Error{Kind: provider.Authentication, Msg: msg, Err: err}
	}
	key := ""
	if f.key != nil {
		var err error
		if key, err = f.key(); err != nil {
			return failed("API key of client "+f.Name, err)
		}
	}
	key = strings.TrimSpace(key)
	if key == "" && !f.KeyOptional {
		variable := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + "_API_KEY"
		return failed("client "+f.Name+" has no API key: set "+variable+cmp.Or(f.KeySources, ", or api_key in its configuration"), nil)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return failed("the API key of client "+f.Name+" holds characters that no key has", nil)
	}
	return key, nil
}

// RequestError returns the error for a request that failed before its reply. Nil stays nil, and
// so does a [*wire.Rejection].
func (f *Frame) RequestError(ctx context.Context, err error) error {
	return failure(ctx, "asking "+f.Name, err)
}

// ReplyError returns the error for a reply that cannot be read. Nil stays nil, and so does
// the error of an [Emit].
func (f *Frame) ReplyError(ctx context.Context, err error) error {
	return failure(ctx, "reading the reply of "+f.Name, err)
}

func failure(ctx context.Context, doing string, err error) error {
	if _, ok := err.(*wire.Rejection); ok || err == errStopped {
		return err
	}
	return wire.Failure(ctx, doing, err)
}
