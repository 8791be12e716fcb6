package openai

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/frontend/server/rest"
	"loki/internal/llm/catalog"
	"loki/internal/llm/provider"
)

// rerankRequest is the body of a request to order documents, as Jina and Cohere have it.
type rerankRequest struct {
	Model           string          `json:"model" minLength:"1"`
	Query           string          `json:"query" minLength:"1"`
	Documents       []documentShape `json:"documents" minItems:"1" maxItems:"2048" nullable:"false"`
	TopN            int             `json:"top_n,omitempty" minimum:"1"`
	ReturnDocuments *bool           `json:"return_documents,omitempty"`
}

// documentShape is a document: a text, or an object with one.
type documentShape struct{ document }

// UnmarshalJSON implements [json.Unmarshaler].
func (d *documentShape) UnmarshalJSON(data []byte) error {
	return orText(data, &d.document, func(text string) { d.Text = text })
}

// Schema implements [huma.SchemaProvider].
func (documentShape) Schema(r huma.Registry) *huma.Schema { return textOr[document](r) }

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
	Body rerankRequest
}

// rerank answers POST /v1/rerank.
func (s *service) rerank(ctx context.Context, in *rerankInput) (*ranking, error) {
	b := &in.Body
	id, err := s.modelID(b.Model, catalog.Reranker)
	if err != nil {
		return nil, err
	}
	model, err := s.app.Models.Reranker(ctx, id)
	if err != nil {
		return nil, notFound(b.Model, err)
	}
	req := provider.RerankRequest{Model: model.Name, Query: b.Query, TopN: b.TopN}
	for _, d := range b.Documents {
		req.Documents = append(req.Documents, d.Text)
	}
	list, used, err := model.Rerank(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &ranking{ID: rest.RequestID(ctx), Object: "list", Model: b.Model, Results: []ranked{}, Usage: rerankUsage{used.Total()}}
	for _, r := range list {
		entry := ranked{Index: r.Index, Score: r.Score}
		if b.ReturnDocuments == nil || *b.ReturnDocuments {
			entry.Document = &b.Documents[r.Index].document
		}
		out.Results = append(out.Results, entry)
	}
	return out, nil
}
