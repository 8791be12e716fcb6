package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"loki/internal/knowledge/rag"
)

// build is an index that is being built. As long as nothing is changed it reads the one in use, and
// then continues with a copy.
type build struct {
	store    *Store
	settings rag.Settings
	unlock   func()
	resumed  bool

	use *index // the one in use; nil after the first change, or if there is none to start from
	c   *conn  // of the build's own file; nil before the first change

	files      map[string]rag.File // by path; nil before it is needed
	dimensions int
	nextFile   int64
	nextChunk  int64
	remembers  bool // the file has the table remembered
	words      words
	packer     packer
	failed     error // why the file cannot be written any more
}

// begin finds out where to begin from.
func (b *build) begin(ctx context.Context) error {
	s := b.store
	if err := remove(s.copyPath()); err != nil {
		return err
	}
	use, err := openIndex(ctx, s.path)
	if _, other := errors.AsType[*formatError](err); other || ctx.Err() != nil {
		return err // it is not ours to replace
	}
	if use != nil {
		if err := intact(ctx, use.db); err != nil {
			if err := use.Close(); err != nil || ctx.Err() != nil {
				return cmp.Or(ctx.Err(), err)
			}
			use = nil
		}
	}
	b.use = use // nil if it is missing or damaged
	if _, err := os.Stat(s.buildPath()); err == nil {
		if b.resume(ctx) == nil {
			b.resumed = true
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.drop(); err != nil {
			return err
		}
	}
	if use == nil {
		b.nextFile = 1
		return b.fresh()
	}
	if err := readRow(ctx, use.db, "SELECT next_file FROM base", &b.nextFile); err != nil {
		return err
	}
	if !use.stats.Settings.SameChunks(b.settings) {
		return b.fresh()
	}
	b.dimensions = use.stats.Dimensions
	return nil
}

// intact returns an error if a page of a file is damaged. It reads all of them, which a build may and
// a search may not.
func intact(ctx context.Context, db querier) error {
	var result string
	if err := readRow(ctx, db, "PRAGMA quick_check(1)", &result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, result)
	}
	return nil
}

// fresh begins without files.
func (b *build) fresh() error {
	if err := b.forgetUse(); err != nil {
		return err
	}
	f, err := os.OpenFile(b.store.copyPath(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// Under its name it is a build that has the schema.
	c, err := openWriter(b.store.copyPath(), true)
	if err == nil {
		err = errors.Join(c.setSettings(b.settings), c.exec("UPDATE base SET next_file = ?", b.nextFile), c.close())
	}
	if err == nil {
		err = os.Rename(b.store.copyPath(), b.store.buildPath())
	}
	if err != nil {
		return err
	}
	return b.open()
}

func (b *build) forgetUse() error {
	if b.use == nil {
		return nil
	}
	err := b.use.Close()
	b.use = nil
	return err
}

// resume resumes an interrupted build. It fails if that cannot be done.
func (b *build) resume(ctx context.Context) error {
	err := b.open()
	if err == nil {
		var stats rag.Stats
		stats, err = readStats(ctx, b.c.c)
		if err == nil && !stats.Settings.SameChunks(b.settings) {
			err = errors.New("other settings")
		}
	}
	if err == nil {
		return b.forgetUse()
	}
	if b.c != nil {
		_ = b.c.close()
		b.c = nil
	}
	return err
}

// open opens the build's own file.
func (b *build) open() (err error) {
	if b.c, err = openWriter(b.store.buildPath(), false); err != nil {
		b.c = nil
		return err
	}
	ok, err := b.c.row(context.Background(), "SELECT dimensions, next_file, next_chunk FROM base", nil, &b.dimensions, &b.nextFile, &b.nextChunk)
	if err != nil || !ok {
		return cmp.Or(err, errDamaged)
	}
	b.remembers, err = b.c.row(context.Background(), "SELECT 1 FROM sqlite_master WHERE name = 'remembered'", nil, new(int))
	return err
}

// change makes the build ready to be written.
func (b *build) change(ctx context.Context) error {
	if b.failed != nil {
		return b.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.c == nil {
		s := b.store
		if err := copyFile(ctx, s.path, s.copyPath()); err != nil {
			return err
		}
		if err := os.Rename(s.copyPath(), s.buildPath()); err != nil {
			return err
		}
		if err := errors.Join(b.forgetUse(), b.open()); err != nil {
			return err
		}
	}
	return b.c.begin()
}

// fail keeps an error after which the transaction may be gone.
func (b *build) fail(err error) error {
	if err != nil {
		b.failed = explain(b.store.path, err)
		return b.failed
	}
	return nil
}

func (b *build) Resumed() bool { return b.resumed }

// queries returns where files and chunks are read.
func (b *build) queries() querier {
	if b.c != nil {
		return b.c.c
	}
	return b.use.db
}

func (b *build) statements() *statements {
	if b.c != nil {
		return b.c.statements
	}
	return &b.use.statements
}

func (b *build) File(ctx context.Context, path string) (f rag.File, ok bool, err error) {
	if b.files == nil { // reading all of them takes less than a query for each
		files := make(map[string]rag.File)
		err := eachFile(ctx, b.queries(), "''", func(f rag.File) error {
			files[f.Path] = f
			return nil
		})
		if err != nil {
			return rag.File{}, false, explain(b.store.path, err)
		}
		b.files = files
	}
	f, ok = b.files[path]
	return f, ok, nil
}

// Close ends the build. What cannot be resumed is removed.
func (b *build) Close() error {
	if b.unlock == nil {
		return nil
	}
	defer func() { b.unlock(); b.unlock = nil }()
	err := b.forgetUse()
	if b.c == nil {
		return err
	}
	var flushErr error
	if b.failed == nil {
		flushErr = b.Flush(context.Background())
	}
	stats, statsErr := readStats(context.Background(), b.c.c)
	closeErr := b.c.close()
	b.c = nil
	if damaged(b.failed) || damaged(statsErr) || statsErr == nil && stats.Files == 0 && !b.remembers {
		return errors.Join(err, b.store.drop())
	}
	return errors.Join(err, cmp.Or(flushErr, explain(b.store.path, closeErr)))
}
