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

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/catalog"
	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/server/rest"
)

// embeddingsRequest is the body of a request for embeddings.
type embeddingsRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	EncodingFormat string          `json:"encoding_format"`
	InputType      string          `json:"input_type"`
	Dimensions     *int            `json:"dimensions"`
	User           json.RawMessage `json:"user"`
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
	Body embeddingsBody `required:"true"`
}

type embeddingsBody struct {
	embeddingsRequest
	texts []string
}

// mostInputs is how many texts a request for embeddings may have.
const mostInputs = 2048

// UnmarshalJSON implements [json.Unmarshaler].
func (b *embeddingsBody) UnmarshalJSON(data []byte) error {
	if err := decode(data, "", &b.embeddingsRequest); err != nil {
		return err
	}
	if err := needs("model", b.Model != ""); err != nil {
		return err
	}
	switch text, ok := isString(b.Input); {
	case absent(b.Input):
		return needs("input", false)
	case ok:
		b.texts = []string{text}
	case json.Unmarshal(b.Input, &b.texts) != nil:
		return invalid("input", "input has to be a text or a list of texts; lists of tokens are not supported")
	}
	switch {
	case len(b.texts) == 0 || len(b.texts) > mostInputs || slices.Contains(b.texts, ""):
		return invalid("input", "input may have 1 to %d texts, none of them empty", mostInputs)
	case b.Dimensions != nil && *b.Dimensions < 1:
		return invalid("dimensions", "dimensions has to be at least 1")
	case !slices.Contains([]string{"", "float", "base64"}, b.EncodingFormat):
		return unsupported("encoding_format", b.EncodingFormat)
	case !slices.Contains([]string{"", "query", "search_query", "document", "passage", "search_document"}, b.InputType):
		return unsupported("input_type", b.InputType)
	}
	return nil
}

// Schema implements [huma.SchemaProvider].
func (embeddingsBody) Schema(r huma.Registry) *huma.Schema {
	return loose[embeddingsRequest](r, "model", "input")
}

// embed answers POST /v1/embeddings.
func (s *service) embed(ctx context.Context, in *embeddingsInput) (*embeddings, error) {
	b := &in.Body
	id, err := s.listed(b.Model, catalog.Embedding)
	if err != nil {
		return nil, err
	}
	model, err := s.app.Embedder(ctx, id)
	if err != nil {
		return nil, notFound(b.Model, err)
	}
	size := len(b.texts)
	if model.MaxBatch > 0 {
		size = model.MaxBatch
	}
	out := &embeddings{Object: "list", Model: b.Model, Data: make([]embedding, 0, len(b.texts))}
	var used chat.Usage
	req := provider.EmbedRequest{Model: model.Name, Query: strings.HasSuffix(b.InputType, "query")}
	if b.Dimensions != nil {
		req.Dimensions = *b.Dimensions
	}
	for batch := range slices.Chunk(b.texts, size) {
		req.Texts = batch
		vectors, u, err := model.Embed(ctx, req)
		if err != nil {
			return nil, err
		}
		rest.Progress(ctx)
		used = used.Add(u)
		if n := len(vectors[0]); req.Dimensions != 0 && n != req.Dimensions {
			return nil, unsupported("dimensions", fmt.Sprintf("another length of the vectors of %s than %d", b.Model, n))
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
