package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"loki/internal/knowledge/rag"
)

// Commit completes the build.
func (b *build) Commit(ctx context.Context, keep func(rag.File) (string, bool)) (rag.Stats, error) {
	if b.failed != nil {
		return rag.Stats{}, b.failed
	}
	gone, moved, err := b.judge(ctx, keep)
	if err != nil {
		return rag.Stats{}, explain(b.store.path, err)
	}
	if b.use != nil && len(gone)+len(moved) == 0 && sameSettings(b.settings, b.use.stats.Settings) {
		return b.use.stats, nil // nothing has changed
	}
	if err := b.change(ctx); err != nil {
		return rag.Stats{}, explain(b.store.path, err)
	}
	stats, err := b.finish(ctx, gone, moved)
	return stats, b.fail(err)
}

func sameSettings(a, b rag.Settings) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// judge returns the files that do not stay, and the new sources of others by their ids.
func (b *build) judge(ctx context.Context, keep func(rag.File) (string, bool)) (gone []int64, moved map[int64]string, err error) {
	moved = make(map[int64]string)
	err = eachFile(ctx, b.queries(), "''", func(f rag.File) error {
		switch source, stays := keep(f); {
		case !stays:
			gone = append(gone, f.ID)
		case source != f.Source:
			moved[f.ID] = source
		}
		return nil
	})
	return gone, moved, err
}

func (b *build) finish(ctx context.Context, gone []int64, moved map[int64]string) (rag.Stats, error) {
	// What was put is safe even if the rest fails.
	if err := b.flush(); err != nil {
		return rag.Stats{}, err
	}
	if err := b.c.begin(); err != nil {
		return rag.Stats{}, err
	}
	for _, id := range gone {
		if err := b.remove(id); err != nil {
			return rag.Stats{}, err
		}
	}
	for id, source := range moved {
		if err := b.c.exec("UPDATE files SET source = ? WHERE id = ?", source, id); err != nil {
			return rag.Stats{}, err
		}
	}
	if b.remembers {
		if err := b.c.run("DROP TABLE remembered"); err != nil {
			return rag.Stats{}, err
		}
	}
	if err := errors.Join(b.c.setSettings(b.settings), b.c.exec("UPDATE base SET built = ?", time.Now().UnixMilli())); err != nil {
		return rag.Stats{}, err
	}
	if err := b.flush(); err != nil {
		return rag.Stats{}, err
	}
	if err := b.compact(); err != nil {
		return rag.Stats{}, err
	}
	stats, err := readStats(ctx, b.c.c)
	if err != nil {
		return rag.Stats{}, err
	}
	c := b.c
	b.c = nil
	err = c.close()
	if err == nil {
		err = replace(b.store.buildPath(), b.store.path)
	}
	if err != nil {
		return rag.Stats{}, err
	}
	if info, err := os.Stat(b.store.path); err == nil {
		stats.Bytes = info.Size()
	}
	b.failed = errors.New("the build has ended")
	return stats, nil
}

// compact gives back unused space if that is a third of the file.
func (b *build) compact() error {
	var free, pages int64
	if _, err := b.c.row(context.Background(), "SELECT * FROM pragma_freelist_count, pragma_page_count", nil, &free, &pages); err != nil {
		return err
	}
	if free < 128 || free*3 < pages {
		return nil
	}
	return b.c.run("VACUUM")
}
