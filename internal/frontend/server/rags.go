package server

import (
	"context"
	"encoding/json"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/render/highlight"
	"loki/internal/frontend/server/rest"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/event"
)

// ragRequest names a knowledge base.
type ragRequest struct {
	Name string `path:"name" maxLength:"256" doc:"as in the list"`
}

// rag describes a knowledge base.
func (s *Server) rag(ctx context.Context, in *ragRequest) (*api.RAGDetail, error) {
	info, err := s.o.App.Knowledge().Info(ctx, in.Name)
	if err != nil {
		return nil, ragMissing(in.Name, err)
	}
	d := &api.RAGDetail{Name: in.Name}
	data, err := json.Marshal(info.Value())
	if err == nil {
		err = json.Unmarshal(data, d)
	}
	return d, err
}

// query searches in a knowledge base, as a question to it does.
func (s *Server) query(ctx context.Context, in *struct {
	ragRequest
	Body api.RAGQuery
},
) (*api.List[api.RAGPassage], error) {
	events := s.o.App.Events(event.Discard)
	bases := s.o.App.Knowledge()
	base, release, err := bases.Open(ctx, events, in.Name)
	if err != nil {
		return nil, ragMissing(in.Name, err)
	}
	defer release()
	found, err := base.Search(ctx, rag.Query{Text: in.Body.Query, Retry: bases.Builder(events, nil).Retry})
	if err != nil {
		return nil, err
	}
	list := make([]api.RAGPassage, len(found.Hits))
	for i, h := range found.Hits {
		list[i] = api.RAGPassage{Source: s.o.App.Hide(h.Source()), Heading: h.Heading, Text: s.o.App.Hide(h.Text), Score: h.Score}
	}
	return api.NewList(list, ""), nil
}

// ragMissing returns err as an answer with status 404, if it says that there is no such knowledge base.
func ragMissing(name string, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return rest.NotFound("rag", name).WithHint("GET /v1/rags lists them")
}

// highlight finds the tokens of code, as the terminal colors them.
func (s *Server) highlight(_ context.Context, in *struct{ Body api.Code }) (*api.List[api.Token], error) {
	lexer := highlight.Find(in.Body.Language)
	if lexer == nil || len(in.Body.Text) > maxHighlighted {
		return api.NewList([]api.Token{{Text: in.Body.Text}}, ""), nil
	}
	text := []byte(in.Body.Text + "\n") // what has no end yet may be part of a token
	spans, _ := lexer.Lex(nil, text, len(text), new(highlight.State))
	list := make([]api.Token, 0, len(spans))
	for i, at := 0, 0; i < len(spans) && at < len(in.Body.Text); i++ {
		end := min(spans[i].End, len(in.Body.Text))
		list = append(list, api.Token{Text: in.Body.Text[at:end], Kind: spans[i].Kind.Scopes()})
		at = end
	}
	return api.NewList(list, ""), nil
}

// maxHighlighted is how long a code may be that is colored, in bytes: the time that grammars take can grow with the square of it.
const maxHighlighted = 16 << 10
