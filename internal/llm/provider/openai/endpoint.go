package openai

import (
	"context"
	"net/url"
	"strings"

	"loki/internal/llm/provider/wire"
)

// API versions of Azure OpenAI.
const (
	azureChatVersion       = "2024-12-01-preview"
	azureEmbeddingsVersion = "2024-10-21"
)

// endpoint returns the URL of an API for a model.
func (c *Client) endpoint(api wire.API, realName string) string {
	path := map[wire.API]string{wire.ChatCompletions: "/chat/completions", wire.Embeddings: "/embeddings", wire.Rerank: "/rerank"}[api]
	switch {
	case c.kind == kindAzure && strings.HasSuffix(c.frame.Base, azureV1):
	case c.kind == kindAzure:
		version := azureChatVersion
		if api == wire.Embeddings {
			version = azureEmbeddingsVersion
		}
		return c.frame.URL("/openai/deployments/" + url.PathEscape(realName) + path + "?api-version=" + version)
	case api == wire.Rerank && strings.HasPrefix(c.frame.Name, "ernie"):
		path = "/rerankers"
	}
	return c.frame.URL(path)
}

// ListModels implements [provider.Lister].
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	if c.kind == kindAzure && !strings.HasSuffix(c.frame.Base, azureV1) {
		return c.frame.List(ctx, c.frame.URL("/openai/models?api-version="+azureEmbeddingsVersion))
	}
	return c.frame.List(ctx, c.frame.URL("/models"))
}

// azureV1 ends the base of Azure's API that has no versions, in which a request names its
// deployment as the model.
const azureV1 = "/openai/v1"

// responsesURL returns the URL of the responses API. Azure has it in the API without
// versions only.
func (c *Client) responsesURL() string {
	if c.kind == kindAzure && !strings.HasSuffix(c.frame.Base, azureV1) {
		return c.frame.URL(azureV1 + "/responses")
	}
	return c.frame.URL("/responses")
}
