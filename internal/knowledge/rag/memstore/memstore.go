// Package memstore keeps the index of a knowledge base in memory. It is for documents that are
// searched once, and for tests.
package memstore

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text/rank"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/vector"
)

// Store is a [rag.Store]. The zero Store is empty. It may be used from several goroutines.
type Store struct {
	Now func() time.Time // of builds; nil means time.Now

	mu       sync.Mutex
	inUse    *index
	begun    *build // interrupted; nil if there is none
	building bool
	last     int64 // id of a file
}

// Open implements [rag.Store].
func (s *Store) Open(context.Context) (rag.Index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		return nil, fs.ErrNotExist
	}
	return s.inUse, nil
}

// Build implements [rag.Store].
func (s *Store) Build(_ context.Context, set rag.Settings) (rag.Build, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.building {
		return nil, fault.New(fault.Usage, "another build is under way in this process")
	}
	b := &build{store: s, set: set, files: make(map[string]file), vectors: make(map[text][]float32)}
	switch {
	case s.begun != nil && s.begun.set.SameChunks(set):
		b.files, b.vectors, b.resumed = s.begun.files, s.begun.vectors, true
	case s.inUse != nil && s.inUse.stats.Settings.SameChunks(set):
		for _, f := range s.inUse.files {
			b.files[f.Path] = f
			b.know(f.chunks)
		}
	}
	s.begun, s.building = nil, true
	return b, nil
}

// Configure implements [rag.Store].
func (s *Store) Configure(_ context.Context, set rag.Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		return fs.ErrNotExist
	}
	changed := *s.inUse
	changed.stats.Settings = set
	s.inUse = &changed
	return nil
}

// Delete implements [rag.Store].
func (s *Store) Delete(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse, s.begun = nil, nil
	return nil
}

// file is a document with its chunks.
type file struct {
	rag.File
	chunks []rag.Chunk
}

// text is what a chunk is recognized by.
type text struct{ heading, text string }

// build is a [rag.Build].
type build struct {
	store   *Store
	set     rag.Settings
	resumed bool
	files   map[string]file // by path
	vectors map[text][]float32
	over    bool
}

func (b *build) Resumed() bool { return b.resumed }

func (b *build) File(_ context.Context, path string) (rag.File, bool, error) {
	f, ok := b.files[path]
	return f.File, ok, nil
}

func (b *build) Vectors(_ context.Context, chunks []rag.Chunk) ([][]float32, error) {
	vectors := make([][]float32, len(chunks))
	for i, c := range chunks {
		vectors[i] = b.vectors[text{c.Heading, c.Text}]
	}
	return vectors, nil
}

func (b *build) know(chunks []rag.Chunk) {
	for _, c := range chunks {
		b.vectors[text{c.Heading, c.Text}] = c.Vector
	}
}

func (b *build) Put(_ context.Context, f rag.File, chunks []rag.Chunk) error {
	if err := b.check(chunks); err != nil {
		return err
	}
	b.store.mu.Lock()
	b.store.last++
	id := b.store.last
	b.store.mu.Unlock()
	chunks = slices.Clone(chunks)
	for i := range chunks {
		chunks[i].ID, chunks[i].Path, chunks[i].Unread = rag.ID{File: id, Seq: i}, f.Path, f.Unread
	}
	f.ID, f.Chunks = id, len(chunks)
	b.files[f.Path] = file{f, chunks}
	b.know(chunks)
	return nil
}

// check returns an error if the vectors of chunks are not as long as the known ones.
func (b *build) check(chunks []rag.Chunk) error {
	length := 0
	for _, v := range b.vectors {
		length = len(v)
		break
	}
	_, err := rag.Dimensions(chunks, length)
	return err
}

func (b *build) Remember(_ context.Context, chunks []rag.Chunk) error {
	err := b.check(chunks)
	if err == nil {
		b.know(chunks)
	}
	return err
}

var errOtherLength = errors.New("the vector has another length than those of the index")

func (b *build) Flush(context.Context) error { return nil }

func (b *build) Commit(ctx context.Context, keep func(rag.File) (string, bool)) (rag.Stats, error) {
	if ctx.Err() != nil {
		return rag.Stats{}, ctx.Err()
	}
	x := &index{stats: rag.Stats{Settings: b.set}}
	for _, f := range b.files {
		source, stays := keep(f.File)
		if f.Source = source; stays {
			x.files = append(x.files, f)
		}
	}
	slices.SortFunc(x.files, func(a, b file) int { return cmp.Compare(a.ID, b.ID) })
	var texts []string
	for _, f := range x.files {
		for _, c := range f.chunks {
			x.chunks = append(x.chunks, c)
			texts = append(texts, c.Heading+"\n"+c.Text)
			x.stats.Dimensions = len(c.Vector)
		}
	}
	x.stats.Files, x.stats.Chunks = len(x.files), len(x.chunks)
	x.words = rank.New(texts)
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	now := time.Now
	if b.store.Now != nil {
		now = b.store.Now
	}
	x.stats.Built = now()
	b.store.inUse = x
	b.end()
	return x.stats, nil
}

// end ends the build. The caller has the lock of the store.
func (b *build) end() { b.over, b.store.building = true, false }

func (b *build) Close() error {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	if !b.over {
		b.end()
		b.store.begun = b
	}
	return nil
}

// index is a [rag.Index].
type index struct {
	stats  rag.Stats
	files  []file
	chunks []rag.Chunk // of all files
	words  *rank.Index // of chunks
}

func (x *index) Stats(context.Context) (rag.Stats, error) { return x.stats, nil }

func (x *index) Files(context.Context) iter.Seq2[rag.File, error] {
	return func(yield func(rag.File, error) bool) {
		for _, f := range x.files {
			if !yield(f.File, nil) {
				return
			}
		}
	}
}

func (x *index) Nearest(ctx context.Context, v []float32, k int) ([]rag.Match, error) {
	var list []rag.Match
	for _, c := range x.chunks {
		if len(c.Vector) != len(v) {
			return nil, errOtherLength
		}
		if score := vector.Dot(c.Vector, v); score > 0 {
			list = append(list, rag.Match{ID: c.ID, Score: float64(score)})
		}
	}
	slices.SortStableFunc(list, func(a, b rag.Match) int { return cmp.Compare(b.Score, a.Score) })
	return list[:min(len(list), k)], ctx.Err()
}

func (x *index) Match(ctx context.Context, query string, k int) ([]rag.Match, error) {
	var list []rag.Match
	for _, s := range x.words.SearchScored(query, rank.K1, k) {
		list = append(list, rag.Match{ID: x.chunks[s.Doc].ID, Score: s.Score})
	}
	return list, ctx.Err()
}

func (x *index) Chunks(ctx context.Context, ids []rag.ID, vectors bool) ([]rag.Chunk, error) {
	var list []rag.Chunk
	for _, id := range ids {
		i, ok := slices.BinarySearchFunc(x.files, id.File, func(f file, id int64) int { return cmp.Compare(f.ID, id) })
		if !ok || id.Seq < 0 || id.Seq >= len(x.files[i].chunks) {
			continue
		}
		c := x.files[i].chunks[id.Seq]
		if !vectors {
			c.Vector = nil
		}
		list = append(list, c)
	}
	return list, ctx.Err()
}

func (x *index) Close() error { return nil }
