package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"loki/internal/chat"
	"loki/internal/provider"
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
	vectors := make([][]float32, 0, len(req.Texts))
	var used chat.Usage
	for texts := range slices.Chunk(req.Texts, c.batchSize(m.RealName)) {
		batch, u, err := c.embed(ctx, req, m, texts)
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
	case !c.vertex:
		return maxTexts
	case strings.Contains(model, "gemini") || strings.Contains(model, "maas"):
		return 1
	}
	return maxInstances
}

func (c *Client) embed(ctx context.Context, req provider.EmbedRequest, m wire.Model, texts []string) ([][]float32, chat.Usage, error) {
	ctx, cl, err := c.call(ctx, wire.Embeddings, req.Model, m)
	if err != nil {
		return nil, chat.Usage{}, err
	}
	cl.shield = shieldVectors
	contents := make([]*genai.Content, len(texts))
	for i, text := range texts {
		contents[i] = genai.NewContentFromText(text, genai.RoleUser)
	}
	config := &genai.EmbedContentConfig{TaskType: "RETRIEVAL_DOCUMENT"}
	if req.Query {
		config.TaskType = "RETRIEVAL_QUERY"
	}
	r, err := c.models.EmbedContent(ctx, m.RealName, contents, config)
	if err := cl.failure(ctx, doingEmbed, err); err != nil {
		return nil, chat.Usage{}, err
	}
	if len(r.Embeddings) != len(texts) {
		return nil, chat.Usage{}, wire.BadReply(fmt.Sprintf("the reply has %d vectors for %d texts", len(r.Embeddings), len(texts)), nil)
	}
	vectors := make([][]float32, len(texts))
	var used chat.Usage
	for i, e := range r.Embeddings {
		if e == nil || len(e.Values) == 0 {
			return nil, chat.Usage{}, wire.BadReply("a vector of the reply is empty", nil)
		}
		vectors[i] = e.Values
		if e.Statistics != nil {
			used.InputTokens += int(e.Statistics.TokenCount)
		}
	}
	if used.InputTokens == 0 {
		used.Estimated = true
		for _, text := range texts {
			used.InputTokens += chat.EstimateTokens(text)
		}
	}
	return vectors, used, nil
}

// vector is a vector with what the API tells about its text.
type vector struct {
	Values     []float32 `json:"values"`
	Statistics *struct {
		TokenCount float32 `json:"token_count"`
	} `json:"statistics,omitempty"`
}

// shieldVectors is [shield] for the replies of the three embedding methods.
func shieldVectors(doc []byte) ([]byte, error) {
	var reply struct {
		Embeddings  []vector `json:"embeddings,omitempty"` // batchEmbedContents
		Predictions []struct {
			Embeddings vector `json:"embeddings"`
		} `json:"predictions,omitempty"` // predict
		Embedding *vector `json:"embedding,omitempty"` // embedContent
		Usage     *struct {
			PromptTokenCount int32 `json:"promptTokenCount"`
		} `json:"usageMetadata,omitempty"`
	}
	if err := json.Unmarshal(doc, &reply); err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}
