package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"loki/internal/knowledge/rag"
)

// hash returns that of the heading and text of a chunk.
func hash(c rag.Chunk) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s%s", len(c.Heading), c.Heading, c.Text)
	return h.Sum(nil)
}

// digest returns a number by which a chunk with that hash is found.
func digest(hash []byte) int64 { return int64(binary.LittleEndian.Uint64(hash)) }

func (b *build) Vectors(ctx context.Context, chunks []rag.Chunk) ([][]float32, error) {
	list := make([][]float32, len(chunks))
	for i, c := range chunks {
		v, err := b.knownVector(ctx, c)
		if err != nil {
			return nil, explain(b.store.path, err)
		}
		list[i] = v
	}
	return list, nil
}

// knownVector returns the vector of a chunk with the heading and text of c, or nil.
func (b *build) knownVector(ctx context.Context, c rag.Chunk) ([]float32, error) {
	if b.dimensions == 0 {
		return nil, ctx.Err()
	}
	var number, row int64
	var packed, data []byte
	sum := hash(c)
	if b.remembers {
		ok, err := b.statements().row(ctx, "SELECT data FROM remembered WHERE hash = ?", []any{sum}, &data)
		if err != nil {
			return nil, err
		}
		if ok {
			return b.vector(data)
		}
	}
	ok, err := b.statements().row(ctx, "SELECT number, text FROM chunks WHERE digest = ? AND heading = ? LIMIT 1",
		[]any{digest(sum), c.Heading}, &number, &packed)
	if !ok {
		return nil, err
	}
	if text, err := unpack(packed); err != nil || text != c.Text {
		return nil, err
	}
	ok, err = b.statements().row(ctx, "SELECT number, data FROM vectors WHERE number <= ? ORDER BY number DESC LIMIT 1", []any{number}, &row, &data)
	if err != nil {
		return nil, err
	}
	at := (number - row) * 4 * int64(b.dimensions)
	if !ok || int64(len(data)) < at {
		return nil, errDamaged
	}
	return b.vector(data[at:])
}

// vector returns the first one in data.
func (b *build) vector(data []byte) ([]float32, error) {
	if len(data) < 4*b.dimensions {
		return nil, errDamaged
	}
	v := make([]float32, b.dimensions)
	decodeVector(v, data)
	return v, nil
}

// prepare makes the build ready to be written with vectors as long as those of chunks.
func (b *build) prepare(ctx context.Context, chunks []rag.Chunk) error {
	dims, err := rag.Dimensions(chunks, b.dimensions)
	if err != nil {
		return err
	}
	if err := b.change(ctx); err != nil {
		return explain(b.store.path, err)
	}
	b.dimensions = dims
	return nil
}

// Remember keeps the vectors in a table that the build has until Commit.
func (b *build) Remember(ctx context.Context, chunks []rag.Chunk) error {
	if err := b.prepare(ctx, chunks); err != nil {
		return err
	}
	return b.fail(b.remember(chunks))
}

func (b *build) remember(chunks []rag.Chunk) error {
	if !b.remembers {
		if err := b.c.run("CREATE TABLE remembered (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID"); err != nil {
			return err
		}
		b.remembers = true
	}
	var data []byte
	for _, c := range chunks {
		data = appendVector(data[:0], c.Vector)
		if err := b.c.exec("INSERT OR REPLACE INTO remembered VALUES (?, ?)", hash(c), data); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) Put(ctx context.Context, f rag.File, chunks []rag.Chunk) error {
	if err := b.prepare(ctx, chunks); err != nil {
		return err
	}
	return b.fail(b.put(f, chunks))
}

func (b *build) put(f rag.File, chunks []rag.Chunk) error {
	var old int64
	ok, err := b.c.row(context.Background(), "SELECT id FROM files WHERE path = ?", []any{f.Path}, &old)
	if err != nil {
		return err
	}
	if ok {
		if err := b.remove(old); err != nil {
			return err
		}
	}
	first := b.nextChunk
	if err := b.c.exec("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", b.nextFile, f.Path, f.Hash, f.Source, first, len(chunks), f.Unread); err != nil {
		return err
	}
	for i, c := range chunks {
		if err := b.c.exec("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)", first+int64(i), c.Heading, c.Start, c.End, digest(hash(c)), b.packer.pack(c.Text)); err != nil {
			return err
		}
		if err := b.words.put(b.c.exec, first+int64(i), c.Heading, c.Text); err != nil {
			return err
		}
	}
	var data []byte
	for i := 0; i < len(chunks); i += vectorRow {
		data = data[:0]
		for _, c := range chunks[i:min(i+vectorRow, len(chunks))] {
			data = appendVector(data, c.Vector)
		}
		if err := b.c.exec("INSERT INTO vectors VALUES (?, ?)", first+int64(i), data); err != nil {
			return err
		}
	}
	if b.files != nil {
		b.files[f.Path] = rag.File{ID: b.nextFile, Path: f.Path, Hash: f.Hash, Source: f.Source, Unread: f.Unread, Chunks: len(chunks)}
	}
	b.nextFile++
	b.nextChunk += int64(len(chunks))
	return nil
}

func (b *build) remove(id int64) error {
	var first, chunks int64
	if _, err := b.c.row(context.Background(), "SELECT first, chunks FROM files WHERE id = ?", []any{id}, &first, &chunks); err != nil {
		return err
	}
	last := first + chunks
	return errors.Join(
		b.c.exec("DELETE FROM files WHERE id = ?", id),
		b.c.exec("DELETE FROM chunks WHERE number >= ? AND number < ?", first, last),
		b.c.exec("DELETE FROM vectors WHERE number >= ? AND number < ?", first, last),
		b.c.exec("DELETE FROM words WHERE rowid >= ? AND rowid < ?", first, last),
	)
}

func (b *build) Flush(context.Context) error {
	if b.failed != nil || b.c == nil || !b.c.open {
		return b.failed
	}
	return b.fail(b.flush())
}

func (b *build) flush() error {
	err := b.c.exec("UPDATE base SET dimensions = ?, next_file = ?, next_chunk = ?", b.dimensions, b.nextFile, b.nextChunk)
	if err != nil {
		return err
	}
	return b.c.commit()
}
