package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/atomicfile"
	"loki/internal/rag"
	"loki/internal/rag/sqlite"
)

// Bounds of what [App.PruneScratch] leaves.
const (
	maxScratch    = 1 << 30             // bytes
	maxScratchAge = 30 * 24 * time.Hour // since it was used
)

func (a *App) scratchDir() string { return filepath.Join(a.Paths.CacheDir, "rags") }

// ScratchStore returns a store in the cache for an index that is built to be compared with others.
// Those of the same name and build settings share it. It is a file wherever other knowledge bases are.
// Until release is called, no process prunes it.
func (a *App) ScratchStore(name string, set rag.Settings) (s rag.Store, release func(), err error) {
	set = rag.Settings{EmbeddingModel: set.EmbeddingModel, ChunkSize: set.ChunkSize, ChunkOverlap: set.ChunkOverlap}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v", name, set))
	file := filepath.Join(a.scratchDir(), hex.EncodeToString(sum[:8])+rag.Extension)
	if err := os.MkdirAll(a.scratchDir(), 0o700); err != nil {
		return nil, nil, err
	}
	use, err := os.CreateTemp(a.scratchDir(), filepath.Base(file)+useMark+"*")
	if err != nil {
		return nil, nil, err
	}
	release = func() { _ = errors.Join(use.Close(), os.Remove(use.Name())) } // one that is left is not locked
	if _, err := atomicfile.TryLock(use); err != nil {
		release()
		return nil, nil, err
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // it may not be there yet
	return sqlite.New(file), release, nil
}

// useMark is in the name of a file beside a scratch index that a process locks while it uses the index.
const useMark = ".use-"

// scratch is a scratch index with the files beside it.
type scratch struct {
	size  int64
	used  time.Time
	inUse bool
}

// PruneScratch deletes scratch indexes that were not used for 30 days and, while all take more than 1 GiB, those
// that were used longest ago. Those in use stay.
func (a *App) PruneScratch(ctx context.Context, now time.Time) error {
	entries, err := os.ReadDir(a.scratchDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all, total := make(map[string]*scratch), int64(0)
	for _, e := range entries {
		name, _, ok := strings.Cut(e.Name(), rag.Extension)
		info, err := e.Info()
		if !ok || err != nil {
			continue
		}
		s := all[name]
		if s == nil {
			s = new(scratch)
			all[name] = s
		}
		total, s.size = total+info.Size(), s.size+info.Size()
		if info.ModTime().After(s.used) {
			s.used = info.ModTime()
		}
		if strings.Contains(e.Name(), useMark) {
			s.inUse = s.inUse || locked(filepath.Join(a.scratchDir(), e.Name()))
		}
	}
	names := slices.SortedFunc(func(yield func(string) bool) {
		for name, s := range all {
			if !s.inUse && !yield(name) {
				return
			}
		}
	}, func(x, y string) int { return cmp.Or(all[x].used.Compare(all[y].used), strings.Compare(x, y)) })
	var errs []error
	for _, name := range names {
		if s := all[name]; total > maxScratch || now.Sub(s.used) > maxScratchAge {
			errs = append(errs, sqlite.New(filepath.Join(a.scratchDir(), name+rag.Extension)).Delete(ctx))
			total -= s.size
		}
	}
	return errors.Join(errs...)
}

// locked reports whether a process has locked a file. One that is not locked was left by a process that
// ended early, and is deleted.
func locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	free, err := atomicfile.TryLock(f)
	_ = f.Close() // only the lock mattered
	if err != nil || !free {
		return true
	}
	_ = os.Remove(path)
	return false
}
