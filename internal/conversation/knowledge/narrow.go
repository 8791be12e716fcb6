package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
	"loki/internal/knowledge/rag/source"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/llm/event"
)

// Limits of the passages that take the place of attached texts.
const (
	maxPassages = 50
	maxPassage  = 2000 // characters
	minPassage  = 200  // characters
)

// Narrow returns what is attached to a question as the chat model called id can take it: if the texts
// exceed its input limit, the passages that fit the question best take their place, in the order of
// the texts, with a warning to events. They fill half of the limit at most. They are found in a
// knowledge base in memory, without a request to another model. What was not read of documents is a warning, too.
func (s *Service) Narrow(ctx context.Context, events event.Scope, id string, attached input.Attachments, question string) (input.Attachments, error) {
	for _, text := range attached.Unread {
		if err := events.Emit(ctx, event.Warning{Text: text}); err != nil {
			return attached, err
		}
	}
	model, err := s.Catalog.Resolve(id, catalog.Chat)
	limit := model.MaxInputTokens
	if err != nil || limit == 0 || len(attached.Documents) == 0 || strings.TrimSpace(question) == "" {
		return attached, nil // what is wrong with the model is reported when it is asked
	}
	size := chat.EstimateTokens(attached.Text(question))
	message := []chat.Message{attached.Message(question)}
	if size < limit/3 || token.For(model.Name).Fit(message, limit) == nil {
		return attached, nil
	}
	found, err := s.searchTexts(ctx, attached.Documents, question, limit/2)
	if err != nil || len(found.Hits) == 0 {
		return attached, err
	}
	kinds, before := make(map[string]input.Kind), len(attached.Documents)
	for _, d := range attached.Documents {
		kinds[d.Name] = cmp.Or(kinds[d.Name], d.Kind)
	}
	attached.Documents = nil
	slices.SortFunc(found.Hits, func(a, b rag.Hit) int {
		return cmp.Or(cmp.Compare(a.ID.File, b.ID.File), cmp.Compare(a.ID.Seq, b.ID.Seq))
	})
	for _, h := range found.Hits {
		attached.Documents = append(attached.Documents, input.Document{Kind: kinds[h.Path], Name: h.Source(), Text: h.Text})
	}
	warning := fmt.Sprintf(
		"the attached texts (%s, about %d tokens) are longer than the input of %s (%d tokens): it gets %s, chosen by the question. "+
			"A knowledge base is for texts of this size: loki --rag NAME --rag-add FILE",
		text.Count(before, "document"), size, model.ID(), limit, text.Count(len(found.Hits), "passage"))
	return attached, events.Emit(ctx, event.Warning{Text: warning})
}

// searchTexts searches for a question in texts. The passages take room tokens at most, or nearly so.
func (s *Service) searchTexts(ctx context.Context, texts []input.Document, question string, room int) (rag.Found, error) {
	const perToken = 4 // characters
	set := rag.Settings{EmbeddingModel: rag.HashModel, ChunkSize: min(max(room*perToken/5, minPassage), maxPassage)}
	set.TopK = min(max(room*perToken/set.ChunkSize, 1), maxPassages)
	for _, d := range texts {
		set.Documents = append(set.Documents, d.Name)
	}
	store := new(memstore.Store)
	builder := rag.Builder{Models: s.Models, Source: source.Texts(texts)}
	if _, err := builder.Build(ctx, "of the attached texts", store, set); err != nil {
		return rag.Found{}, err
	}
	base, err := rag.Open(ctx, "of the attached texts", store, s.Models)
	if err != nil {
		return rag.Found{}, err
	}
	found, err := base.Search(ctx, rag.Query{Text: question})
	return found, errors.Join(err, base.Close())
}
