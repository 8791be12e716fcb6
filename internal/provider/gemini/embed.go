package gemini

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

const doingEmbed = "calling the embeddings api"

// maxTexts is how many texts the Gemini API takes in one request, and maxInstances
// Vertex AI; its newer models take one.
const (
	maxTexts     = 100
	maxInstances = 250
)

// Embed implements [provider.Embedder]. Texts beyond what the API takes at once are sent
// in further requests, one after the other.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	if err := ctx.Err(); err != nil {
		return nil, chat.Usage{}, wire.Failure(ctx, doingEmbed, err)
	}
	m := wire.Lookup(c.model, req.Model)
	ctx = wire.WithCall(ctx, wire.Call{API: wire.Embeddings, Model: req.Model, Patch: m.Patch})
	vectors := make([][]float32, 0, len(req.Texts))
	var used chat.Usage
	for texts := range slices.Chunk(req.Texts, c.batchSize(m.RealName)) {
		batch, u, err := c.embed(ctx, req, m.RealName, texts)
		if err != nil {
			return nil, used, err
		}
		vectors, used = append(vectors, batch...), used.Add(u)
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) {
			return nil, used, wire.BadReply("the vectors of the reply differ in length", nil)
		}
	}
	return vectors, used, nil
}

// batchSize returns how many texts a model takes in one request.
func (c *Client) batchSize(model string) int {
	switch {
	case c.vertex == nil:
		return maxTexts
	case embedsOne(model):
		return 1
	}
	return maxInstances
}

// embedsOne reports whether a model on Vertex AI takes one text at a time. Those do but
// the first have a method of their own.
func embedsOne(model string) bool {
	return strings.Contains(model, "gemini") || strings.Contains(model, "maas")
}

func (c *Client) embed(ctx context.Context, req provider.EmbedRequest, model string, texts []string) ([][]float32, chat.Usage, error) {
	method, payload := c.embedRequest(model, texts, req.Query)
	var reply embedReply
	if err := c.postJSON(ctx, doingEmbed, model, method, payload, &reply); err != nil {
		return nil, chat.Usage{}, err
	}
	list := reply.vectors()
	if len(list) != len(texts) {
		return nil, chat.Usage{}, wire.BadReply(fmt.Sprintf("the reply has %d vectors for %d texts", len(list), len(texts)), nil)
	}
	vectors := make([][]float32, len(texts))
	tokens := max(int(reply.UsageMetadata.PromptTokenCount), 0)
	for i, v := range list {
		if len(v.Values) == 0 {
			return nil, chat.Usage{}, wire.BadReply("a vector of the reply is empty", nil)
		}
		vectors[i] = v.Values
		tokens += max(int(v.Statistics.TokenCount), 0)
	}
	return vectors, normalize.InputUsage(tokens, texts...), nil
}

// embedRequest returns the method that embeds texts with a model, and what it is sent.
func (c *Client) embedRequest(model string, texts []string, query bool) (method string, payload any) {
	task := "RETRIEVAL_DOCUMENT"
	if query {
		task = "RETRIEVAL_QUERY"
	}
	body := func(text string) content { return content{Parts: []part{{Text: text}}, Role: userRole} }
	switch {
	case c.vertex == nil:
		type request struct {
			Content  content `json:"content"`
			Model    string  `json:"model"`
			TaskType string  `json:"taskType"`
		}
		requests := make([]request, len(texts))
		for i, text := range texts {
			requests[i] = request{Content: body(text), Model: c.resource(model), TaskType: task}
		}
		return batchEmbedContents, map[string]any{"requests": requests}
	case embedsOne(model) && model != "gemini-embedding-001":
		return embedContent, map[string]any{"content": body(texts[0]), "embedContentConfig": map[string]string{"taskType": task}}
	}
	type instance struct {
		Content  string `json:"content"`
		TaskType string `json:"task_type"`
	}
	instances := make([]instance, len(texts))
	for i, text := range texts {
		instances[i] = instance{Content: text, TaskType: task}
	}
	return predict, map[string]any{"instances": instances}
}

// vector is a vector with what the API tells about its text.
type vector struct {
	Values     []float32 `json:"values"`
	Statistics struct {
		TokenCount wire.Int `json:"token_count"`
	} `json:"statistics"`
}

// embedReply is a reply of one of the three methods.
type embedReply struct {
	Embeddings  []vector `json:"embeddings"` // batchEmbedContents
	Embedding   *vector  `json:"embedding"`  // embedContent
	Predictions []struct {
		Embeddings vector `json:"embeddings"`
	} `json:"predictions"` // predict
	UsageMetadata usageMetadata `json:"usageMetadata"`
}

func (r *embedReply) vectors() []vector {
	list := r.Embeddings
	for _, p := range r.Predictions {
		list = append(list, p.Embeddings)
	}
	if r.Embedding != nil {
		list = append(list, *r.Embedding)
	}
	return list
}
