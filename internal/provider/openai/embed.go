package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

type embedRequest struct {
	Model     string   `json:"model"`
	Input     []string `json:"input"`
	InputType string   `json:"input_type,omitempty"` // Voyage
	Task      string   `json:"task,omitempty"`       // Jina
}

// Embed implements [provider.Embedder]. Without texts it asks nobody.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	if len(req.Texts) == 0 {
		return nil, chat.Usage{}, nil
	}
	m := wire.Lookup(c.model, req.Model)
	ctx = wire.WithCall(ctx, wire.Call{API: wire.Embeddings, Model: req.Model, Patch: m.Patch})
	payload := embedRequest{Model: m.RealName, Input: req.Texts}
	payload.distinguish(c.name, req.Query)
	var vectors [][]float32
	var usage chat.Usage
	err := c.postJSON(ctx, c.endpoint(wire.Embeddings, m.RealName), payload, func(data []byte) (err error) {
		vectors, usage, err = readVectors(data, req.Texts)
		return err
	})
	return vectors, usage, err
}

func readVectors(data []byte, texts []string) ([][]float32, chat.Usage, error) {
	var reply struct {
		Data []struct {
			Index     *wire.Int
			Embedding vector
		}
		Usage *wireUsage
	}
	if err := json.Unmarshal(data, &reply); err != nil || len(reply.Data) == 0 {
		return nil, chat.Usage{}, wire.Lacking("embeddings", data)
	}
	bad := func(format string, args ...any) ([][]float32, chat.Usage, error) {
		return nil, chat.Usage{}, &provider.Error{Kind: provider.BadReply, Msg: fmt.Sprintf(format, args...)}
	}
	if len(reply.Data) != len(texts) {
		return bad("%d embeddings for %d texts", len(reply.Data), len(texts))
	}
	vectors := make([][]float32, len(texts))
	for i, d := range reply.Data {
		if d.Index != nil {
			i = int(*d.Index)
		}
		if i < 0 || i >= len(vectors) || vectors[i] != nil {
			return bad("embedding with the index %d, which is taken or out of range", i)
		}
		if len(d.Embedding) == 0 || len(d.Embedding) != len(reply.Data[0].Embedding) {
			return bad("embeddings that are empty or differ in length")
		}
		vectors[i] = d.Embedding
	}
	return vectors, reply.Usage.inputUsage(texts...), nil
}

// distinguish tells the two platforms whose models embed queries and documents
// differently which of them it has.
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
