package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

type embedRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	InputType  string   `json:"input_type,omitempty"` // Voyage
	Dimensions int      `json:"dimensions,omitempty"`
	Task       string   `json:"task,omitempty"` // Jina
}

// Embed implements [provider.Embedder].
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	ctx, m := c.frame.Call(ctx, wire.Embeddings, req.Model)
	return c.frame.Embed(ctx, req.Texts, client.Batches{}, func(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
		payload := embedRequest{Model: m.RealName, Input: texts, Dimensions: req.Dimensions}
		payload.distinguish(c.frame.Name, req.Query)
		err = c.frame.Ask(ctx, c.endpoint(wire.Embeddings, m.RealName), payload, func(data []byte) (err error) {
			vectors, tokens, err = readVectors(data)
			return err
		})
		return vectors, tokens, err
	})
}

// readVectors returns the vectors of a reply in the order of their indexes, and the tokens
// that the server counted.
func readVectors(data []byte) ([][]float32, int, error) {
	var reply struct {
		Data []struct {
			Index     *wire.Int
			Embedding vector
		}
		Usage *wireUsage
	}
	if err := json.Unmarshal(data, &reply); err != nil || len(reply.Data) == 0 {
		return nil, 0, wire.MissingError("embeddings", data)
	}
	vectors := make([][]float32, len(reply.Data))
	for i, d := range reply.Data {
		if d.Index != nil {
			i = int(*d.Index)
		}
		if i < 0 || i >= len(vectors) || vectors[i] != nil {
			return nil, 0, wire.BadReply(fmt.Sprintf("embedding with the index %d, which is taken or out of range", i), nil)
		}
		vectors[i] = d.Embedding
	}
	return vectors, reply.Usage.total(), nil
}

// distinguish says, for the two platforms whose models embed queries and documents
// differently, which of them the texts are.
func (r *embedRequest) distinguish(client string, query bool) {
	pick := func(q, d string) string {
		if query {
			return q
		}
		return d
	}
	switch {
	case strings.HasPrefix(client, "voyageai"):
		r.InputType = pick("query", "document")
	case strings.HasPrefix(client, "jina") && (strings.HasPrefix(r.Model, "jina-embeddings-v3") || strings.HasPrefix(r.Model, "jina-embeddings-v4")):
		r.Task = pick("retrieval.query", "retrieval.passage")
	}
}

// vector is a list of numbers, or the base64 form of little-endian float32.
type vector []float32

func (v *vector) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*[]float32)(v))
	}
	raw, err := base64.StdEncoding.DecodeString(wire.Unquote(data))
	if err != nil || len(raw)%4 != 0 {
		return fmt.Errorf("embedding: not the base64 form of numbers")
	}
	*v = make(vector, len(raw)/4)
	for i := range *v {
		(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}
