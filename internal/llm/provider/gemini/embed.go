package gemini

import (
	"context"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

// maxTexts is how many texts the Gemini API takes in one request, and maxInstances
// Vertex AI; its newer models take one.
const (
	maxTexts     = 100
	maxInstances = 250
)

// Embed implements [provider.Embedder]. Texts beyond what the API takes at once are sent
// in further requests, one after the other.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	ctx, m := c.frame.Call(ctx, wire.Embeddings, req.Model)
	return c.frame.Embed(ctx, req.Texts, client.Batches{Size: c.batchSize(m.RealName)}, func(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
		method, payload := c.embedRequest(m.RealName, texts, req.Query)
		target, err := c.target(m.RealName, method)
		if err != nil {
			return nil, 0, err
		}
		err = c.frame.Ask(ctx, target, payload, func(data []byte) error {
			var reply embedReply
			if err := decode(data, &reply, "the reply"); err != nil {
				return err
			}
			tokens = max(int(reply.UsageMetadata.PromptTokenCount), 0)
			for _, v := range reply.vectors() {
				vectors = append(vectors, v.Values)
				tokens += max(int(v.Statistics.TokenCount), 0)
			}
			return nil
		})
		return vectors, tokens, err
	})
}

// batchSize returns how many texts a model takes in one request.
func (c *Client) batchSize(model string) int {
	switch {
	case c.place == "":
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

// embedRequest returns the method that embeds texts with a model, and what it is sent.
func (c *Client) embedRequest(model string, texts []string, query bool) (method string, payload any) {
	task := "RETRIEVAL_DOCUMENT"
	if query {
		task = "RETRIEVAL_QUERY"
	}
	body := func(text string) content { return content{Parts: []part{{Text: text}}, Role: userRole} }
	switch {
	case c.place == "":
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

// vector is a vector with what the API reports about its text.
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
