package openai

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/catalog"
	"loki/internal/provider"
	"loki/internal/server/rest"
)

// rerankRequest is the body of a request to order documents, as Jina and Cohere have it.
type rerankRequest struct {
	Model           string            `json:"model"`
	Query           string            `json:"query"`
	Documents       []json.RawMessage `json:"documents"`
	TopN            *int              `json:"top_n"`
	ReturnDocuments *bool             `json:"return_documents"`
}

// ranking is the answer, which has the members of both.
type ranking struct {
	ID      string      `json:"id"`
	Object  string      `json:"object" enum:"list"`
	Model   string      `json:"model" doc:"as the request names it"`
	Results []ranked    `json:"results" nullable:"false" doc:"best first"`
	Usage   rerankUsage `json:"usage"`
}

type ranked struct {
	Index    int       `json:"index" doc:"into documents of the request"`
	Score    float64   `json:"relevance_score" doc:"higher is better"`
	Document *document `json:"document,omitempty" doc:"absent if return_documents is false"`
}

type document struct {
	Text string `json:"text"`
}

type rerankUsage struct {
	TotalTokens int `json:"total_tokens"`
}

type rerankInput struct {
	Body rerankBody `required:"true"`
}

type rerankBody struct {
	rerankRequest
	texts []string
}

// mostDocuments is how many documents a request may have.
const mostDocuments = 2048

// UnmarshalJSON implements [json.Unmarshaler].
func (b *rerankBody) UnmarshalJSON(data []byte) error {
	if err := decode(data, "", &b.rerankRequest); err != nil {
		return err
	}
	switch {
	case b.Model == "":
		return needs("model", false)
	case b.Query == "":
		return needs("query", false)
	case len(b.Documents) == 0 || len(b.Documents) > mostDocuments:
		return invalid("documents", "documents may have 1 to %d entries", mostDocuments)
	case b.TopN != nil && *b.TopN < 1:
		return invalid("top_n", "top_n has to be at least 1")
	}
	for i, d := range b.Documents {
		text, ok := isString(d)
		if !ok {
			var doc document
			if err := decode(d, element("documents", i), &doc); err != nil {
				return err
			}
			text = doc.Text
		}
		b.texts = append(b.texts, text)
	}
	return nil
}

// Schema implements [huma.SchemaProvider].
func (rerankBody) Schema(r huma.Registry) *huma.Schema {
	return loose[rerankRequest](r, "model", "query", "documents")
}

// rerank answers POST /v1/rerank.
func (s *service) rerank(ctx context.Context, in *rerankInput) (*ranking, error) {
	b := &in.Body
	id, err := s.listed(b.Model, catalog.Reranker)
	if err != nil {
		return nil, err
	}
	model, err := s.app.Reranker(ctx, id)
	if err != nil {
		return nil, notFound(b.Model, err)
	}
	req := provider.RerankRequest{Model: model.Name, Query: b.Query, Documents: b.texts}
	if b.TopN != nil {
		req.TopN = *b.TopN
	}
	list, used, err := model.Rerank(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &ranking{ID: rest.RequestID(ctx), Object: "list", Model: b.Model, Results: []ranked{}, Usage: rerankUsage{used.Total()}}
	for _, r := range list {
		entry := ranked{Index: r.Index, Score: r.Score}
		if b.ReturnDocuments == nil || *b.ReturnDocuments {
			entry.Document = &document{b.texts[r.Index]}
		}
		out.Results = append(out.Results, entry)
	}
	return out, nil
}
