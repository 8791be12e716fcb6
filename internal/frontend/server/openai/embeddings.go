package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"loki/internal/frontend/server/rest"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// embeddingsRequest is the body of a request for embeddings.
type embeddingsRequest struct {
	Model          string          `json:"model" minLength:"1"`
	Input          textsShape      `json:"input" doc:"a text, or up to 2048; not tokens"`
	EncodingFormat string          `json:"encoding_format,omitempty" enum:"float,base64"`
	InputType      string          `json:"input_type,omitempty" enum:"query,search_query,document,passage,search_document"`
	Dimensions     int             `json:"dimensions,omitempty" minimum:"1" doc:"numbers in a vector, where the model lets the caller choose"`
	User           json.RawMessage `json:"user,omitempty"`
}

// embeddings is the answer.
type embeddings struct {
	Object string      `json:"object" enum:"list"`
	Model  string      `json:"model" doc:"as the request names it"`
	Data   []embedding `json:"data" nullable:"false"`
	Usage  embedUsage  `json:"usage"`
}

type embedding struct {
	Object    string `json:"object" enum:"embedding"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding" doc:"a list of numbers, or base64 of 32-bit little-endian floats"`
}

type embedUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

type embeddingsInput struct {
	Body embeddingsRequest
}

// builtins begins the ids of the models of the program itself.
const builtins = "builtin:"

// mostInputs is how many texts a request for embeddings may have.
const mostInputs = 2048

// check refuses what no model embeds.
func (b *embeddingsRequest) check() error {
	if len(b.Input) == 0 || len(b.Input) > mostInputs || slices.Contains(b.Input, "") {
		return invalid("input", "input may have 1 to %d texts, none empty", mostInputs)
	}
	return nil
}

// embed answers POST /v1/embeddings.
func (s *service) embed(ctx context.Context, in *embeddingsInput) (*embeddings, error) {
	b := &in.Body
	if err := b.check(); err != nil {
		return nil, err
	}
	id, err := s.modelID(b.Model, catalog.Embedding)
	if err != nil {
		return nil, err
	}
	model, err := s.app.Models.Embedder(ctx, id)
	if err != nil {
		return nil, notFound(b.Model, err)
	}
	size := len(b.Input)
	if model.MaxBatch > 0 {
		size = model.MaxBatch
	}
	out := &embeddings{Object: "list", Model: b.Model, Data: make([]embedding, 0, len(b.Input))}
	var used chat.Usage
	query := strings.HasSuffix(b.InputType, "query")
	if b.InputType == "" && strings.HasPrefix(id, builtins) { // clients compare all vectors with each other, and those of its documents have an offset
		query = true
	}
	req := provider.EmbedRequest{Model: model.Name, Query: query, Dimensions: b.Dimensions}
	for batch := range slices.Chunk(b.Input, size) {
		req.Texts = batch
		vectors, u, err := model.Embed(ctx, req)
		if err != nil {
			return nil, err
		}
		rest.Progress(ctx)
		used = used.Add(u)
		if n := len(vectors[0]); req.Dimensions != 0 && n != req.Dimensions {
			return nil, unsupportedError("dimensions", fmt.Sprintf("another length of the vectors of %s than %d", b.Model, n))
		}
		for _, v := range vectors {
			e := embedding{Object: "embedding", Index: len(out.Data), Embedding: v}
			if b.EncodingFormat == "base64" {
				e.Embedding = encodeVector(v)
			}
			out.Data = append(out.Data, e)
		}
	}
	out.Usage = embedUsage{used.InputTokens, used.Total()}
	return out, nil
}

// encodeVector returns a vector as 32-bit little-endian floats in base64.
func encodeVector(v []float32) string {
	data := make([]byte, 0, 4*len(v))
	for _, f := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(data)
}
