package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/knowledge/rag"
)

// Summary is a knowledge base as --list rags shows it; the JSON form is machine output.
type Summary struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"`
	Documents int       `json:"documents"`
	Chunks    int       `json:"chunks"`
	Bytes     int64     `json:"bytes"`
	Model     string    `json:"embedding_model,omitempty"`
	Built     time.Time `json:"built,omitzero"`
	Error     string    `json:"error,omitempty"` // why it cannot be used

	missing bool // it was not built
}

// Summary describes the knowledge base called name in a file.
func (s *Service) Summary(ctx context.Context, name, file string) Summary {
	b := Summary{Name: name, Path: s.Place(file)}
	stats, err := s.Stats(ctx, name, file)
	if err != nil {
		b.Error, b.missing = err.Error(), fault.CodeOf(err) == fault.NotFound
		return b
	}
	b.Documents, b.Chunks, b.Bytes = stats.Files, stats.Chunks, stats.Bytes
	b.Model, b.Built = stats.Settings.EmbeddingModel, stats.Built
	return b
}

// OfAgent describes the knowledge bases of an agent.
func (s *Service) OfAgent(ctx context.Context, of agent.Agent) (list []Summary, err error) {
	bases, err := s.agentBases(of)
	for _, b := range bases {
		if b.node == nil && len(b.set.Documents) == 0 {
			continue
		}
		one := s.Summary(ctx, b.name, b.file)
		if one.missing {
			one.Error = "not built yet: " + b.rebuild()
		}
		list = append(list, one)
	}
	return list, err
}

// String describes the knowledge base on one line.
func (b Summary) String() string {
	if b.Error != "" {
		return b.Error
	}
	return fmt.Sprintf("%s, %s, built %s with %s: %s", text.Count(b.Documents, "document"), text.Count(b.Chunks, "chunk"), b.Built.UTC().Format(time.RFC3339), b.Model, b.Path)
}

// Place returns where the knowledge base in file is: the file, which need not exist, or the database.
func (s *Service) Place(file string) string {
	if store := s.Config.RAGStore; store != nil && *store != "" {
		return s.Hide(*store)
	}
	return file
}

// Stats describes the knowledge base called name in a file.
func (s *Service) Stats(ctx context.Context, name, file string) (stats rag.Stats, err error) {
	index, err := s.baseIndex(ctx, name, file)
	if err != nil {
		return stats, err
	}
	stats, err = index.Stats(ctx)
	return stats, errors.Join(err, index.Close())
}

// baseIndex opens the index of the knowledge base called name in a file, without what searches need.
func (s *Service) baseIndex(ctx context.Context, name, file string) (rag.Index, error) {
	store, err := s.Library().Store(file)
	if err != nil {
		return nil, err
	}
	index, err := store.Open(ctx)
	if !errors.Is(err, fs.ErrNotExist) {
		return index, err
	}
	if _, _, err = knownBase(ctx, store, file); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.Library().NotBuiltError(name)
	}
	return nil, err
}

// Info describes the knowledge base called name: where it is, its settings, its sources and its files.
func (s *Service) Info(ctx context.Context, name string) (info *value.Object, err error) {
	file, err := s.Library().File(name)
	if err != nil {
		return info, err
	}
	index, err := s.baseIndex(ctx, name, file)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	stats, err := index.Stats(ctx)
	if err != nil {
		return info, err
	}
	var documents, files []value.Value
	for _, source := range stats.Settings.Documents {
		documents = append(documents, value.Of(s.Hide(source)))
	}
	for f, err := range index.Files(ctx) {
		if err != nil {
			return info, err
		}
		file := []value.Member{{Name: "path", Value: value.Of(text.Name(f.Path))}, {Name: "num_chunks", Value: value.Of(f.Chunks)}}
		if f.Unread != "" {
			file = append(file, value.Member{Name: "not_read", Value: value.Of(f.Unread)})
		}
		files = append(files, value.ObjectOf(file...).Value())
	}
	set := stats.Settings
	return value.ObjectOf(
		value.Member{Name: "path", Value: value.Of(s.Place(file))},
		value.Member{Name: "embedding_model", Value: value.Of(set.EmbeddingModel)},
		value.Member{Name: "chunk_size", Value: value.Of(set.ChunkSize)},
		value.Member{Name: "chunk_overlap", Value: value.Of(set.ChunkOverlap)},
		value.Member{Name: "reranker_model", Value: value.OrNull(set.RerankerModel)},
		value.Member{Name: "top_k", Value: value.Of(set.TopK)},
		value.Member{Name: "threshold", Value: value.Of(set.Threshold)},
		value.Member{Name: "built", Value: value.Of(stats.Built.UTC().Format(time.RFC3339))},
		value.Member{Name: "chunks", Value: value.Of(stats.Chunks)},
		value.Member{Name: "dimensions", Value: value.Of(stats.Dimensions)},
		value.Member{Name: "bytes", Value: value.Of(int(stats.Bytes))},
		value.Member{Name: "document_paths", Value: value.ListOf(documents...).Value()},
		value.Member{Name: "files", Value: value.ListOf(files...).Value()},
	), nil
}
