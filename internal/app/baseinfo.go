package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"loki/internal/agent"
	"loki/internal/fault"
	"loki/internal/rag"
	"loki/internal/text"
	"loki/internal/value"
)

// BaseSummary is a knowledge base as --list-rags shows it; the JSON form is machine output.
type BaseSummary struct {
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

// BaseSummary describes the knowledge base called name in a file.
func (a *App) BaseSummary(ctx context.Context, name, file string) BaseSummary {
	b := BaseSummary{Name: name, Path: a.BasePlace(file)}
	stats, err := a.BaseStats(ctx, name, file)
	if err != nil {
		b.Error, b.missing = err.Error(), fault.CodeOf(err) == fault.NotFound
		return b
	}
	b.Documents, b.Chunks, b.Bytes = stats.Files, stats.Chunks, stats.Bytes
	b.Model, b.Built = stats.Settings.EmbeddingModel, stats.Built
	return b
}

// AgentBaseSummaries describes the knowledge bases of an agent.
func (a *App) AgentBaseSummaries(ctx context.Context, of agent.Agent) ([]BaseSummary, error) {
	names, files, err := a.AgentBases(of)
	list := make([]BaseSummary, len(names))
	for i, name := range names {
		list[i] = a.BaseSummary(ctx, name, files[i])
		if list[i].missing {
			list[i].Error = "not built yet: loki -a " + text.Word(of.Arg) + " --rebuild-rag"
		}
	}
	return list, err
}

// String describes the knowledge base on one line.
func (b BaseSummary) String() string {
	if b.Error != "" {
		return b.Error
	}
	return fmt.Sprintf("%s, %s, built %s with %s: %s", text.Count(b.Documents, "document"), text.Count(b.Chunks, "chunk"), b.Built.UTC().Format(time.RFC3339), b.Model, b.Path)
}

// BasePlace returns where the knowledge base in file is: the file, which need not exist, or the database.
func (a *App) BasePlace(file string) string {
	if store := a.Config.RAGStore; store != nil && *store != "" {
		return a.Hide(*store)
	}
	return file
}

// BaseStats describes the knowledge base called name in a file.
func (a *App) BaseStats(ctx context.Context, name, file string) (stats rag.Stats, err error) {
	index, err := a.baseIndex(ctx, name, file)
	if err != nil {
		return stats, err
	}
	stats, err = index.Stats(ctx)
	return stats, errors.Join(err, index.Close())
}

// baseIndex opens the index of the knowledge base called name in a file, without what searches need.
func (a *App) baseIndex(ctx context.Context, name, file string) (rag.Index, error) {
	store, err := a.Library().Store(file)
	if err != nil {
		return nil, err
	}
	index, err := store.Open(ctx)
	if !errors.Is(err, fs.ErrNotExist) {
		return index, err
	}
	if _, _, err = knownBase(ctx, store, file); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = a.Library().Missing(name)
	}
	return nil, err
}

// BaseInfo describes the knowledge base called name: where it is, its settings, its sources and its files.
func (a *App) BaseInfo(ctx context.Context, name string) (info *value.Object, err error) {
	file, err := a.Library().File(name)
	if err != nil {
		return info, err
	}
	index, err := a.baseIndex(ctx, name, file)
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
		documents = append(documents, value.Of(a.Hide(source)))
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
		value.Member{Name: "path", Value: value.Of(a.BasePlace(file))},
		value.Member{Name: "embedding_model", Value: value.Of(set.EmbeddingModel)},
		value.Member{Name: "chunk_size", Value: value.Of(set.ChunkSize)},
		value.Member{Name: "chunk_overlap", Value: value.Of(set.ChunkOverlap)},
		value.Member{Name: "reranker_model", Value: orNull(set.RerankerModel)},
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

// orNull returns s, or null if it is empty.
func orNull(s string) value.Value {
	if s == "" {
		return value.Value{}
	}
	return value.Of(s)
}
