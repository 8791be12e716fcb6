package line

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/file/atomicfile"
)

// HistoryLimit is how many entries a [History] keeps.
const HistoryLimit = 1000

// History holds earlier submissions, the oldest first, at most [HistoryLimit]. The zero value is
// empty and in memory only. Its methods may be called by several goroutines.
//
// A file has an entry on each line, as a JSON string, so that entries of several lines stay whole.
// Only its owner can read it. Several programs may add to it at once.
type History struct {
	// Mask returns what the file gets of an entry. Nil means all of it.
	Mask func(entry string) string

	file string

	mu      sync.Mutex
	entries []string
	lines   int   // of the file, as far as known
	err     error // why the latest entry could not be written
}

// OpenHistory returns the history that is kept in file, which need not exist. Lines that cannot be
// read are left out. The error is that of the file system.
func OpenHistory(ctx context.Context, file string) (*History, error) {
	h := &History{file: file}
	if err := h.load(); err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	return h, ctx.Err()
}

// load reads the file. Callers hold its lock, if there are others.
func (h *History) load() error {
	h.entries, h.lines = nil, 0
	data, err := os.ReadFile(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range bytes.Lines(data) {
		h.lines++
		var entry string
		if json.Unmarshal(line, &entry) == nil {
			h.keep(entry)
		}
	}
	return err
}

// keep adds an entry in memory, and reports whether it is new.
func (h *History) keep(entry string) bool {
	if strings.TrimSpace(entry) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return false
	}
	h.entries = append(h.entries, entry)
	if over := len(h.entries) - HistoryLimit; over > 0 {
		h.entries = slices.Delete(h.entries, 0, over)
	}
	return true
}

// Add adds an entry, unless it is blank or equals the one before. An error of the file is kept for
// [History.Err].
func (h *History) Add(ctx context.Context, entry string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keep(entry) && h.file != "" {
		h.err = h.write(ctx, entry)
	}
}

// write appends an entry to the file, and now and then drops the oldest ones.
func (h *History) write(ctx context.Context, entry string) error {
	unlock, err := atomicfile.Lock(ctx, h.file+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if h.Mask != nil {
		entry = h.Mask(entry)
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if err := atomicfile.Append(h.file, append(line, '\n')); err != nil {
		return err
	}
	if h.lines++; h.lines < 2*HistoryLimit {
		return nil
	}
	ours := h.entries
	err = h.load() // what other programs added, too
	var all bytes.Buffer
	for _, entry := range h.entries {
		line, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		all.Write(append(line, '\n'))
	}
	if err == nil {
		err = atomicfile.Write(h.file, all.Bytes(), atomicfile.Options{Mode: atomicfile.Private})
	}
	h.entries, h.lines = ours, HistoryLimit
	return err
}

// Err returns why the latest entry could not be written, or nil.
func (h *History) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Entries returns the entries, the oldest first.
func (h *History) Entries() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entries)
}
