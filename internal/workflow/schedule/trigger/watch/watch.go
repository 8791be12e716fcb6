// Package watch finds files that appear or change.
//
// A file counts once it is quiet: its size and time have been the same for a while. What was found is kept in a file, so that
// a watch that begins again knows what changed while there was none. The system tells when to look; where it cannot, and
// at times in any case, the directories are read without being told.
package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/fsnotify/fsnotify"

	"loki/internal/base/file/atomicfile"
)

// MaxFiles is how many files are watched; further ones are left out.
const MaxFiles = 10_000

// Times between two looks without news.
const (
	everyTold = time.Minute      // where the system tells of changes
	everyElse = 10 * time.Second // where it cannot
	settle    = 50 * time.Millisecond
)

// Options configure Run. All but Debounce, Every, Untold and Log are required.
type Options struct {
	Dir            string   // of patterns that are not absolute
	Paths          []string // patterns, see [doublestar.Match]
	Create, Change bool     // which changes count
	Missed         bool     // what changed while there was no watch counts, too. What was there before the first one does not
	State          string   // file for what was found
	Debounce       time.Duration
	Every          time.Duration // between two looks without news; 0 for the usual times
	Untold         bool          // the system does not tell of changes
	Log            *slog.Logger  // nil for none
}

// File is a file that appeared or changed.
type File struct {
	Path   string // absolute
	Change string // "create" or "change"
	Size   int64
	Time   int64 // when it was changed, in nanoseconds
}

// stamp is what of a file says that it is the same.
type stamp struct {
	Size int64 `json:"size"`
	Time int64 `json:"time"`
}

// pending is a file that is not quiet yet.
type pending struct {
	stamp
	since time.Time
}

// watch is a watch under way. One goroutine has it.
type watch struct {
	Options
	seen    map[string]stamp // by path
	pending map[string]pending
	told    *fsnotify.Watcher // nil if the system does not tell
	watched map[string]bool   // directories of which it tells
	crowded bool              // there were too many files
}

// Run calls found with files that appeared or changed and are quiet now, in the order of their paths, until ctx ends. Files for which found
// returns an error are found again later.
func Run(ctx context.Context, o Options, found func([]File) error) error {
	w := &watch{Options: o, pending: make(map[string]pending), watched: make(map[string]bool)}
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	if err := w.begin(); err != nil {
		return err
	}
	var told chan fsnotify.Event
	var failed chan error
	if !o.Untold {
		watcher, err := fsnotify.NewWatcher()
		if err == nil {
			defer watcher.Close()
			w.told, told, failed = watcher, watcher.Events, watcher.Errors
		} else {
			w.Log.Warn("the system does not tell of changed files, so they are looked for every 10 s", "error", err)
		}
	}
	for {
		next := w.look(time.Now(), found)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-failed: // such as events that were lost
		case <-told:
			drain(told, time.After(settle))
		}
		timer.Stop()
	}
}

// drain takes events that come together.
func drain(told <-chan fsnotify.Event, end <-chan time.Time) {
	for {
		select {
		case <-told:
		case <-end:
			return
		}
	}
}

// begin reads what was found before.
func (w *watch) begin() error {
	data, err := os.ReadFile(w.State)
	if err == nil {
		err = json.Unmarshal(data, &w.seen)
	}
	switch {
	case err == nil && w.seen != nil && w.Missed:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		w.Log.Warn("what was found before cannot be read, so files that are there now are left out", "file", w.State, "error", err)
	}
	w.seen = w.files()
	return w.save()
}

func (w *watch) save() error {
	data, err := json.Marshal(w.seen)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(w.State, data, atomicfile.Options{Mode: atomicfile.Private}); err != nil {
		return fmt.Errorf("what was found cannot be kept: %w", err)
	}
	return nil
}

// look finds files, and returns when to look again.
func (w *watch) look(now time.Time, found func([]File) error) (next time.Duration) {
	next = cmp.Or(w.Every, everyTold)
	if w.told == nil {
		next = cmp.Or(w.Every, everyElse)
	}
	all := w.files()
	var quiet []File
	changed := false
	for _, path := range slices.Sorted(maps.Keys(all)) {
		is := all[path]
		was, known := w.seen[path]
		if known && was == is {
			delete(w.pending, path)
			continue
		}
		p, waits := w.pending[path]
		if !waits || p.stamp != is {
			p = pending{is, now}
			w.pending[path] = p
		}
		if wait := w.Debounce - now.Sub(p.since); wait > 0 {
			next = min(next, wait+time.Millisecond)
			continue
		}
		f := File{path, "create", is.Size, is.Time}
		if known {
			f.Change = "change"
		}
		if known && w.Change || !known && w.Create {
			quiet = append(quiet, f)
			continue
		}
		w.seen[path], changed = is, true
	}
	for path := range w.seen {
		if _, there := all[path]; !there && !w.crowded {
			delete(w.seen, path)
			changed = true
		}
	}
	if len(quiet) > 0 {
		if err := found(quiet); err != nil {
			w.Log.Warn("files start no run now", "files", len(quiet), "error", err)
			next = min(next, everyElse)
		} else {
			for _, f := range quiet {
				w.seen[f.Path], changed = stamp{f.Size, f.Time}, true
				delete(w.pending, f.Path)
			}
		}
	}
	if changed {
		if err := w.save(); err != nil {
			w.Log.Warn(err.Error())
		}
	}
	return next
}

// files returns the files that are there.
func (w *watch) files() map[string]stamp {
	all := make(map[string]stamp)
	for _, pattern := range w.Paths {
		base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
		if !filepath.IsAbs(base) {
			base = filepath.Join(w.Dir, base)
		}
		w.walk(filepath.FromSlash(base), rest, all)
	}
	w.crowded = w.crowded || len(all) >= MaxFiles
	return all
}

// walk adds the files below base that a pattern matches.
func (w *watch) walk(base, pattern string, all map[string]stamp) {
	deep := strings.Count(pattern, "/")
	if strings.Contains(pattern, "**") {
		deep = 1 << 10
	}
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(base, path)
		switch {
		case err != nil || relErr != nil:
			return nil // what cannot be read is not there
		case len(all) >= MaxFiles:
			if !w.crowded {
				w.crowded = true
				w.Log.Warn("too many files to watch, so some are left out", "most", MaxFiles, "below", base)
			}
			return filepath.SkipAll
		case d.IsDir() && path != base && strings.Count(filepath.ToSlash(rel), "/") >= deep:
			return filepath.SkipDir
		case d.IsDir():
			w.tell(path)
			return nil
		}
		if ok, _ := doublestar.Match(pattern, filepath.ToSlash(rel)); !ok {
			return nil
		}
		if info, ok := inside(base, path, d); ok {
			all[path] = stamp{info.Size(), info.ModTime().UnixNano()}
		}
		return nil
	})
}

// inside returns a file, or the one that a link leads to if that is below base.
func inside(base, path string, d fs.DirEntry) (info fs.FileInfo, ok bool) {
	info, err := d.Info()
	if err == nil && d.Type()&fs.ModeSymlink != 0 {
		var real, root string
		if root, err = filepath.EvalSymlinks(base); err == nil {
			real, err = filepath.EvalSymlinks(path)
		}
		if rel, relErr := filepath.Rel(root, real); err != nil || relErr != nil || !filepath.IsLocal(rel) {
			return nil, false
		}
		info, err = os.Stat(real)
	}
	return info, err == nil && info.Mode().IsRegular()
}

// tell has the system tell of changes in a directory.
func (w *watch) tell(dir string) {
	if w.told == nil || w.watched[dir] && slices.Contains(w.told.WatchList(), dir) {
		return
	}
	if err := w.told.Add(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.Log.Warn("the system does not tell of changes in a directory, so files are looked for every 10 s", "dir", dir, "error", err)
			w.Every = cmp.Or(w.Every, everyElse)
		}
		return
	}
	w.watched[dir] = true
}
