package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/vector"
)

// index is a file that is read.
type index struct {
	path  string
	info  os.FileInfo
	db    *sql.DB
	stats rag.Stats

	statements statements

	version   int64
	hasUnread bool

	documents lazy[documents]
	vectors   lazy[vector.Index]
	lengths   lazy[lengths]
	renewed   lazy[index] // has the words of a file of version oldVersion
}

// lazy is a value that is loaded when it is needed first.
type lazy[T any] struct {
	mu    sync.Mutex
	value *T
}

func (l *lazy[T]) get(load func() (*T, error)) (*T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.value == nil {
		v, err := load()
		if err != nil {
			return nil, err
		}
		l.value = v
	}
	return l.value, nil
}

// openIndex opens the file at path, which must not change as long as it is open.
func openIndex(ctx context.Context, path string) (x *index, err error) {
	db, info, err := openFile(path, "mode=ro&immutable=1&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	version, err := verify(ctx, db)
	if err != nil {
		return nil, err
	}
	var size int64
	if err := readRow(ctx, db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &size); err != nil {
		return nil, err
	}
	if info.Size() < size {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", errDamaged, info.Size(), size)
	}
	x = &index{path: path, info: info, db: db, version: version, statements: statements{on: db}}
	if x.stats, err = readStats(ctx, db); err == nil {
		x.hasUnread, err = hasUnread(ctx, db)
	}
	if err != nil {
		return nil, err
	}
	x.stats.Bytes = info.Size()
	return x, nil
}

func readStats(ctx context.Context, db querier) (s rag.Stats, err error) {
	var set string
	var built int64
	err = readRow(ctx, db, "SELECT settings, built, dimensions FROM base", &set, &built, &s.Dimensions)
	if err == nil {
		err = json.Unmarshal([]byte(set), &s.Settings)
	}
	if err == nil {
		err = readRow(ctx, db, "SELECT count(*), coalesce(sum(chunks), 0) FROM files", &s.Files, &s.Chunks)
	}
	if s.Chunks == 0 {
		s.Dimensions = 0
	}
	s.Built = time.UnixMilli(built)
	return s, err
}

func (x *index) Stats(context.Context) (rag.Stats, error) { return x.stats, nil }

// Close releases the file.
func (x *index) Close() error {
	err := errors.Join(x.statements.close(), x.db.Close())
	if x.renewed.value != nil {
		err = errors.Join(err, x.renewed.value.Close())
	}
	return err
}

func (x *index) Files(ctx context.Context) iter.Seq2[rag.File, error] {
	return func(yield func(rag.File, error) bool) {
		err := eachFile(ctx, x.db, x.unread(), func(f rag.File) error {
			if !yield(f, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(rag.File{}, explain(x.path, err))
		}
	}
}

var errEnough = errors.New("no more files are wanted")

// eachFile does something for each file, ascending by id. unread is the column of what was not read of it.
func eachFile(ctx context.Context, db querier, unread string, do func(f rag.File) error) error {
	var f rag.File
	return eachRow(ctx, db, func() error { return do(f) }, "SELECT id, path, hash, source, chunks, "+unread+" FROM files ORDER BY id", nil,
		&f.ID, &f.Path, &f.Hash, &f.Source, &f.Chunks, &f.Unread)
}

// unread is the column of what was not read, which old files do not have.
func (x *index) unread() string {
	if x.hasUnread {
		return "unread"
	}
	return "''"
}

// Chunks returns the chunks that exist.
func (x *index) Chunks(ctx context.Context, ids []rag.ID, vectors bool) ([]rag.Chunk, error) {
	list := make([]rag.Chunk, 0, len(ids))
	for _, id := range ids {
		c := rag.Chunk{ID: id}
		var packed []byte
		ok, err := x.statements.row(ctx, `SELECT path, `+x.unread()+`, heading, start, finish, text FROM files JOIN chunks ON number = first + ?1
			WHERE id = ?2 AND ?1 >= 0 AND ?1 < files.chunks`, []any{id.Seq, id.File}, &c.Path, &c.Unread, &c.Heading, &c.Start, &c.End, &packed)
		if err == nil && !ok {
			continue
		}
		if err == nil {
			c.Text, err = unpack(packed)
		}
		if err == nil && vectors && x.stats.Dimensions > 0 {
			c.Vector, err = x.vector(ctx, id)
		}
		if err != nil {
			return nil, explain(x.path, err)
		}
		list = append(list, c)
	}
	return list, nil
}
