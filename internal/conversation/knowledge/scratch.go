package knowledge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/sqlite"
)

// Bounds of what [Service.PruneScratch] leaves.
const (
	maxScratch    = 1 << 30             // bytes
	maxScratchAge = 30 * 24 * time.Hour // since it was used
)

func (s *Service) scratchDir() string { return filepath.Join(s.Paths.CacheDir, "rags") }

// ScratchStore returns a store in the cache for an index that is built to be compared with others.
// Those of the same name and build settings share it. It is a file wherever other knowledge bases are.
// Until release is called, no process prunes it.
func (s *Service) ScratchStore(name string, set rag.Settings) (_ rag.Store, release func(), err error) {
	set = rag.Settings{EmbeddingModel: set.EmbeddingModel, ChunkSize: set.ChunkSize, ChunkOverlap: set.ChunkOverlap}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v", name, set))
	file := filepath.Join(s.scratchDir(), hex.EncodeToString(sum[:8])+rag.Extension)
	if err := os.MkdirAll(s.scratchDir(), 0o700); err != nil {
		return nil, nil, err
	}
	use, err := os.CreateTemp(s.scratchDir(), filepath.Base(file)+useMark+"*")
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

// PruneScratch deletes scratch indexes that were not used for 30 days and, while all take more than 1 GiB, the
// least recently used ones. Indexes in use stay.
func (s *Service) PruneScratch(ctx context.Context, now time.Time) error {
	entries, err := os.ReadDir(s.scratchDir())
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
		one := all[name]
		if one == nil {
			one = new(scratch)
			all[name] = one
		}
		total, one.size = total+info.Size(), one.size+info.Size()
		if info.ModTime().After(one.used) {
			one.used = info.ModTime()
		}
		if strings.Contains(e.Name(), useMark) {
			held, err := atomicfile.HeldElseRemoved(filepath.Join(s.scratchDir(), e.Name()))
			one.inUse = one.inUse || held || err != nil
		}
	}
	names := slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		return cmp.Or(all[x].used.Compare(all[y].used), strings.Compare(x, y))
	})
	var errs []error
	for _, name := range names {
		if one := all[name]; !one.inUse && (total > maxScratch || now.Sub(one.used) > maxScratchAge) {
			errs = append(errs, sqlite.New(filepath.Join(s.scratchDir(), name+rag.Extension)).Delete(ctx))
			total -= one.size
		}
	}
	return errors.Join(errs...)
}
