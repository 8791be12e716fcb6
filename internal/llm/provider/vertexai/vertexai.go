// Package vertexai is the client of Google's Vertex AI, which serves the models of
// several makers, each in its maker's format.
//
// The real name of a model decides: gemini models are those of the gemini package,
// claude models those of the anthropic package, mistral and codestral models speak the
// format of the openai package at URLs of their own. Embeddings are Google's. All are
// found below one URL, /projects/{project}/locations/{location}/publishers, and bear an
// access token of Google Cloud, see the googleauth package.
//
// A client is safe for concurrent use.
package vertexai

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/googleauth"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/wire"
)

// Options configures a client. The zero value of a field is its default.
type Options struct {
	// Options are those of any client. APIBase is the URL, with the version of the API,
	// that /projects/... is appended to; empty means the one of the location. A nil Token
	// means tokens for application default credentials.
	client.Options

	Project  string // the id of the Google Cloud project; required
	Location string // such as europe-west4 or global; required

	// ADCFile is the file with application default credentials. Empty means that they
	// are looked for. It has no effect with Token.
	ADCFile string

	// TokenHTTP asks for the tokens, see googleauth.Options.HTTP. Nil means a client
	// with the defaults.
	TokenHTTP *http.Client
}

// Client is a connection to a location. It implements [provider.Chat] and
// [provider.Embedder].
type Client struct {
	model   func(name string) wire.Model
	gemini  *gemini.Client
	claude  *anthropic.Client
	mistral *mistral
}

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
)

// New returns a client. Errors have the code [fault.Config]. Credentials are not looked
// for before the first request.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		return nil, fault.New(fault.Config, "a client needs a name")
	}
	if o.Project == "" || o.Location == "" {
		return nil, fault.New(fault.Config, "client %q needs a project_id and a location", o.Name)
	}
	base, err := wire.BaseURL(o.Name, cmp.Or(o.APIBase, host(o.Location)+"/v1"), "https://europe-west4-aiplatform.googleapis.com/v1")
	if err != nil {
		return nil, err
	}
	if o.Token == nil {
		source, err := googleauth.New(googleauth.Options{Client: o.Name, File: o.ADCFile, HTTP: o.TokenHTTP})
		if err != nil {
			return nil, err
		}
		o.Token = source.Token
	}
	if o.HTTP == nil {
		if o.HTTP, err = wire.NewClient(wire.Options{Client: o.Name}); err != nil {
			return nil, err
		}
	}
	place := "projects/" + url.PathEscape(o.Project) + "/locations/" + url.PathEscape(o.Location)
	at := func(path string) client.Options {
		own := o.Options
		host, query, _ := strings.Cut(base, "?")
		own.APIBase = strings.TrimSuffix(strings.TrimRight(host, "/")+path+"?"+query, "?")
		return own
	}
	c := &Client{model: o.Model}
	if c.gemini, err = gemini.NewVertex(at(""), place); err != nil {
		return nil, err
	}
	if c.claude, err = anthropic.NewVertex(at("/" + place + "/publishers/anthropic/models")); err != nil {
		return nil, err
	}
	if c.mistral, err = newMistral(at("/" + place + "/publishers/mistralai/models")); err != nil {
		return nil, err
	}
	return c, nil
}

// host returns the URL of the host that serves a location.
func host(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	name := wire.Lookup(c.model, req.Model).RealName
	starts := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case starts("gemini"):
		return c.gemini.Chat(ctx, req)
	case starts("claude"):
		return c.claude.Chat(ctx, req)
	case starts("mistral"), starts("codestral"):
		return c.mistral.Chat(ctx, req)
	}
	return func(yield func(provider.Chunk, error) bool) {
		yield(provider.Chunk{}, &provider.Error{
			Kind: provider.Invalid,
			Msg:  fmt.Sprintf("vertex ai model %q is not supported: want a gemini, claude, mistral or codestral model", name),
		})
	}
}

// Embed implements [provider.Embedder].
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	return c.gemini.Embed(ctx, req)
}

// mistral asks the models of Mistral AI: in the format of OpenAI, at the methods
// rawPredict and streamRawPredict of a model. A version in the model's name belongs to
// the URL only.
type mistral struct {
	client openai.Compatible
	model  func(name string) wire.Model
}

func newMistral(o client.Options) (*mistral, error) {
	redirected, model := *o.HTTP, o.Model
	base, _, _ := strings.Cut(o.APIBase, "?")
	redirected.Transport = &rawPredict{next: cmp.Or(o.HTTP.Transport, http.DefaultTransport), base: base + "/"}
	o.HTTP = &redirected
	o.Model = func(name string) wire.Model {
		m := wire.Lookup(model, name)
		m.RealName, _, _ = strings.Cut(m.RealName, "@")
		return m
	}
	c, err := openai.NewCompatible(o)
	return &mistral{client: c, model: model}, err
}

// Chat implements [provider.Chat].
func (m *mistral) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	t := target{method: "rawPredict", model: wire.Lookup(m.model, req.Model).RealName}
	if req.Stream {
		t.method = "streamRawPredict"
	}
	return m.client.Chat(context.WithValue(ctx, targetKey{}, t), req)
}
