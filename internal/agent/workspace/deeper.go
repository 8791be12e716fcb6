package workspace

import (
	"context"
	"crypto/rand"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/tool/builtin/tree"
)

// Bounds of what comes while a model works, in bytes.
const (
	maxDeeper    = 8 << 10  // of a file
	maxAllDeeper = 32 << 10 // of a conversation
)

// Tracker finds the files with instructions of the directories in which a model works, below those of [Reader.Read]: each once in a
// conversation. Its methods may be called from several goroutines; a nil Tracker finds nothing.
type Tracker struct {
	reader Reader
	dir    string // that Read was called with
	root   string
	nonce  string // in the marks, so that no file can imitate them

	mu   sync.Mutex
	done map[string]bool // directories
	left int             // bytes
}

// Track returns a tracker for a conversation with these instructions.
func (in Instructions) Track() *Tracker {
	t := &Tracker{reader: in.reader, dir: in.dir, root: in.Root, nonce: strings.ToLower(rand.Text()[:8])}
	t.Reset()
	return t
}

// Reset has all files come again, as after a compression, which may have dropped them.
func (t *Tracker) Reset() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.left = make(map[string]bool), maxAllDeeper
	for _, dir := range chain(t.root, t.dir) {
		t.done[dir] = true
	}
}

// All returns the files, and those of all directories of the workspace, which are [Deeper] if the user trusts them. What .gitignore
// leaves out is not looked into.
func (in Instructions) All(ctx context.Context) ([]File, error) {
	var mu sync.Mutex
	dirs := make(map[string]bool)
	skip := func(name string) bool { return name == ".git" || name == "node_modules" }
	_, err := tree.Walker{SkipDir: skip, Links: true}.Walk(ctx, in.Root, func(_ int, f tree.File) {
		if slices.Contains(in.reader.Names, filepath.Base(f.Full)) {
			mu.Lock()
			defer mu.Unlock()
			dir := filepath.Dir(f.Full)
			if dirs[dir] = true; filepath.Base(f.Full) == claudeFile && filepath.Base(dir) == claudeDir {
				dirs[filepath.Dir(dir)] = true
			}
		}
	})
	all, seen := slices.Clone(in.Files), make(map[string]bool)
	for _, f := range all {
		seen[ResolvePath(f.Path)] = true
	}
	for _, dir := range chain(in.Root, in.dir) {
		delete(dirs, dir)
	}
	trusts := in.reader.trusts(in.Root)
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		for _, f := range in.reader.of(dir, in.Root, trusts, seen) {
			if f.State == Used {
				f.State = Deeper
			}
			all = append(all, f)
		}
	}
	return all, err
}

// Touch returns what the model has to know of the directories of these paths, "" for nothing new. Relative paths are those of the
// working directory.
func (t *Tracker) Touch(paths []string) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var blocks []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.dir, path)
		}
		path = ResolvePath(path)
		if _, ok := below(t.root, path); !ok {
			continue
		}
		for _, dir := range chain(t.root, path) {
			if t.done[dir] {
				continue
			}
			t.done[dir] = true
			blocks = append(blocks, t.read(dir)...)
		}
	}
	return strings.Join(blocks, "\n\n")
}

// read returns the trusted files of a directory as models get them.
func (t *Tracker) read(dir string) (blocks []string) {
	for _, f := range t.reader.of(dir, t.root, t.reader.trusts(t.root), make(map[string]bool)) {
		if f.State != Used {
			continue
		}
		if n := min(maxDeeper, t.left); len(f.text) > n {
			f.text, f.State = firstLines(f.text, n), Cut
		}
		if t.left -= len(f.text); f.counts() {
			blocks = append(blocks, f.block(t.nonce))
		}
	}
	return blocks
}
