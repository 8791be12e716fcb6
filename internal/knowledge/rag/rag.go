// Package rag is knowledge: documents that are searched for what belongs to a question, so that a
// model can answer from them.
//
// A [Builder] reads documents from sources, cuts them into chunks, has a model turn each chunk into
// a vector, and puts all of it into a [Store]. A [Base] is a knowledge base in use: it finds the
// chunks that are near to a question by their vectors and by their words, and fuses the two lists.
package rag

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"
)

// Settings say how a knowledge base is built and searched. The names of their fields in JSON are
// those of the settings wherever a user sees them.
type Settings struct {
	// What an index holds depends on these.
	EmbeddingModel string `json:"embedding_model"`
	ChunkSize      int    `json:"chunk_size"`    // characters
	ChunkOverlap   int    `json:"chunk_overlap"` // characters

	// Searches.
	TopK          int     `json:"top_k"` // passages; at least 1
	RerankerModel string  `json:"reranker_model,omitempty"`
	Threshold     float64 `json:"threshold,omitempty"` // least cosine of a vector to that of the question, from 0 to 1

	Documents []string `json:"documents"` // sources as the user lists them, paths absolute
}

// ID names a chunk: its file, and its number in the file from 0. Chunks of a file that follow each
// other have numbers that do.
type ID struct {
	File int64 `json:"file"` // from 1, never used again
	Seq  int   `json:"seq"`
}

// String returns "file-number".
func (id ID) String() string { return fmt.Sprintf("%d-%d", id.File, id.Seq) }

// File is a document in an index.
type File struct {
	ID     int64
	Path   string // absolute path, address, or name:rest
	Hash   string // of the document before it was converted, and of how it was read
	Source string // that led to it, an entry of Settings.Documents without its password
	Unread string // parts of it that were not read, such as "1 chart, 2 pictures"
	Chunks int
}

// Chunk is a part of a document.
type Chunk struct {
	ID      ID
	Path    string // of the document
	Unread  string // likewise, as in [File]
	Text    string
	Heading string // the headings above it, such as "Install > Linux"; "" for none
	Start   int    // first line in the document, from 1; 0 where lines mean nothing
	End     int    // last line

	// Vector has the length 1, or is zero if the text has no direction; such a chunk is near to nothing.
	// An index leaves it out of what it returns, unless it is asked for.
	Vector []float32
}

// full returns the text under its headings, which is what models get to compare.
func (c Chunk) full() string {
	if c.Heading == "" {
		return c.Text
	}
	return c.Heading + "\n\n" + c.Text
}

// Dimensions returns how many dimensions the vectors of chunks have: n, or of n 0 those of the first of them. The error says
// that one has others.
func Dimensions(chunks []Chunk, n int) (int, error) {
	for i, c := range chunks {
		if n = cmp.Or(n, len(c.Vector)); n == 0 || len(c.Vector) != n {
			return 0, fmt.Errorf("%s: chunk %d has a vector with %d dimensions instead of %d", c.Path, i, len(c.Vector), n)
		}
	}
	return n, nil
}

// Match is a chunk that a search found.
type Match struct {
	ID    ID
	Score float64 // the higher, the better
}

// Stats describe an index.
type Stats struct {
	Settings   Settings
	Dimensions int // of the vectors; 0 without chunks
	Files      int
	Chunks     int
	Bytes      int64 // that it takes on disk; 0 if unknown
	Built      time.Time
}

// Index is what a knowledge base is searched in. It does not change: a build makes another one. It
// may be used from several goroutines.
type Index interface {
	// Stats describes the index.
	Stats(ctx context.Context) (Stats, error)
	// Files yields the documents, ascending by id.
	Files(ctx context.Context) iter.Seq2[File, error]
	// Nearest returns the k chunks whose vectors are the nearest to v, which has length 1, by their
	// cosine, best first, among equal ones ascending by id. Only those with a score above 0 count.
	Nearest(ctx context.Context, v []float32, k int) ([]Match, error)
	// Match returns the k chunks that match the words of query best, by BM25 with k1 = 1.5, b = 0.75
	// over the tokens of package rank in heading and text, likewise.
	Match(ctx context.Context, query string, k int) ([]Match, error)
	// Chunks returns the ones that exist, in the order of ids, with Vector if vectors is set.
	Chunks(ctx context.Context, ids []ID, vectors bool) ([]Chunk, error)
	// Close releases the index. Searches must be over.
	Close() error
}

// DamagedError is the error of opening an index that cannot be read. A build replaces such an index.
type DamagedError struct {
	Settings *Settings // with which it was built, nil if they cannot be read either
	Err      error
}

func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// Store is a place for the index of one knowledge base.
type Store interface {
	// Open returns the index in use. The error is a fs.ErrNotExist if there is none, and a
	// [*DamagedError] if it is damaged.
	Open(ctx context.Context) (Index, error)
	// Build begins a build: it has the files of the index in use, or of an interrupted build that it
	// resumes, if they were built with settings that leave what is stored as it is; otherwise it
	// begins without files. The index in use is not touched until Commit. One build is under way at
	// a time: another process that has one is an error with code Usage that names it.
	Build(ctx context.Context, s Settings) (Build, error)
	// Configure changes the settings of the index in use that concern searches only.
	Configure(ctx context.Context, s Settings) error
	// Delete removes the knowledge base, with builds that were interrupted.
	Delete(ctx context.Context) error
}

// Build is an index that is being built. Its methods are called one at a time, from any goroutine.
// What Put and Remember were given is safe after the next Flush, which Commit and Close do as well: the
// next build resumes there.
type Build interface {
	// Resumed reports whether the build resumes an interrupted one.
	Resumed() bool
	// File returns the file at path.
	File(ctx context.Context, path string) (f File, ok bool, err error)
	// Vectors returns the vectors of chunks of the same heading and text that are known already, in
	// the order of chunks, nil for unknown ones.
	Vectors(ctx context.Context, chunks []Chunk) ([][]float32, error)
	// Put adds a file, in place of one at the same path. It sets the ids and the number of chunks.
	Put(ctx context.Context, f File, chunks []Chunk) error
	// Remember keeps the vectors of chunks of a file that is not complete yet: Vectors finds them, also in
	// a build that resumes this one. Commit forgets them.
	Remember(ctx context.Context, chunks []Chunk) error
	// Flush makes what was put and remembered safe.
	Flush(ctx context.Context) error
	// Commit calls keep once for each file. It removes the ones that do not stay, and gives the others the
	// source that keep returns. It puts the build in the place of the index in use. Readers of the old
	// one are not disturbed.
	Commit(ctx context.Context, keep func(f File) (source string, stays bool)) (Stats, error)
	// Close ends the build. If it was not committed, the next one resumes it.
	Close() error
}
