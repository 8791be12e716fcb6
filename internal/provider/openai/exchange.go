package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// post sends payload to target and returns the response, which succeeded. The
// caller closes its body. The error may be a [*wire.Rejection].
func (c *Client) post(ctx context.Context, target string, payload any, stream bool, fields ...headerField) (*http.Response, error) {
	header, err := c.headers(ctx, stream)
	if err != nil {
		return nil, err
	}
	data, err := wire.Encode(payload)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be written as JSON", Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header = header
	for _, f := range fields {
		if f.value != "" {
			req.Header.Set(f.name, f.value)
		}
	}
	return c.http.Do(req)
}

// headerField is a field that only some requests have. It is not sent without a value.
type headerField struct{ name, value string }

// postJSON sends payload and gives the body of the response to read. ctx is one of
// [wire.WithCall].
func (c *Client) postJSON(ctx context.Context, target string, payload any, read func([]byte) error) error {
	resp, err := c.post(ctx, target, payload, false)
	if err != nil {
		return wire.Failure(ctx, "asking "+c.name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil {
		err = read(data)
	}
	return wire.Failure(ctx, "reading the reply of "+c.name, err)
}

// API versions of Azure OpenAI.
const (
	azureChatVersion       = "2024-12-01-preview"
	azureEmbeddingsVersion = "2024-10-21"
)

// endpoint returns the URL of an API for a model.
func (c *Client) endpoint(api wire.API, realName string) string {
	path := map[wire.API]string{wire.ChatCompletions: "/chat/completions", wire.Embeddings: "/embeddings", wire.Rerank: "/rerank"}[api]
	switch {
	case c.kind == kindAzure && strings.HasSuffix(c.base, azureV1):
	case c.kind == kindAzure:
		version := azureChatVersion
		if api == wire.Embeddings {
			version = azureEmbeddingsVersion
		}
		return c.base + "/openai/deployments/" + url.PathEscape(realName) + path + "?api-version=" + version
	case api == wire.Rerank && strings.HasPrefix(c.name, "ernie"):
		path = "/rerankers"
	}
	return c.base + path
}

// azureV1 ends the base of Azure's API that has no versions, in which a request names its
// deployment as the model.
const azureV1 = "/openai/v1"

// responsesURL returns the URL of the responses API. Azure has it in the API without
// versions only.
func (c *Client) responsesURL() string {
	if c.kind == kindAzure && !strings.HasSuffix(c.base, azureV1) {
		return c.base + azureV1 + "/responses"
	}
	return c.base + "/responses"
}

// credential returns the access token or the key of a request, "" for none.
func (c *Client) credential(ctx context.Context) (string, error) {
	if c.token == nil {
		return wire.Key(c.name, c.key, c.kind != kindCompatible)
	}
	token, err := c.token(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", &provider.Error{Kind: provider.Authentication, Msg: "access token of client " + c.name, Err: err}
	case token == "":
		return "", &provider.Error{Kind: provider.Authentication, Msg: "the access token of client " + c.name + " is empty"}
	}
	return token, nil
}

func (c *Client) headers(ctx context.Context, stream bool) (http.Header, error) {
	key, err := c.credential(ctx)
	if err != nil {
		return nil, err
	}
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if stream {
		h.Set("Accept", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("Accept-Encoding", "identity") // compression makes proxies hold chunks back
	}
	switch {
	case key == "":
	case c.kind == kindAzure && c.token == nil:
		h.Set("Api-Key", key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
	if c.org != "" {
		h.Set("OpenAI-Organization", c.org)
	}
	return h, nil
}
