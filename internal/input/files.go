package input

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"loki/internal/document"
	"loki/internal/fault"
)

// imageTypes are the pictures that models look at, by extension.
var imageTypes = map[string]string{
	".png": "image/png", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
}

// files adds the files that a path or pattern means. Of a directory or pattern that is
// the text files, pictures and documents with a loader below it, ascending by path and
// without hidden directories; other files are passed over. A file that is named must be
// usable.
func (l *Loader) files(ctx context.Context, c *collector, source string) error {
	p, err := ParsePattern(source)
	if err != nil {
		return err
	}
	base, err := l.abs(p.Base)
	if err != nil {
		return err
	}
	info, err := os.Stat(base)
	switch {
	case err != nil:
		return fault.New(fault.NotFound, "no file or directory at %s", p.Base).
			WithHint("%s", patternHint(source))
	case !info.IsDir() && !p.Plain():
		return fault.New(fault.Usage, "%s: %s is a file and has nothing below it", source, p.Base)
	case !info.IsDir():
		_, err := l.file(ctx, c, l.shown(base), true)
		return err
	}
	var files []string
	err = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && path != base:
			return ctx.Err() // it is skipped, with what is below
		case err != nil:
			return err
		case d.IsDir() && path != base && (strings.HasPrefix(d.Name(), ".") || p.tooDeep(base, path)):
			return filepath.SkipDir
		case d.Type().IsRegular() && p.Matches(d.Name()):
			files = append(files, path)
		}
		return ctx.Err()
	})
	if err != nil {
		return fault.Wrap(fault.Usage, err, "%s", source)
	}
	slices.Sort(files)
	found := false
	for _, f := range files {
		used, err := l.file(ctx, c, l.shown(f), false)
		if err != nil {
			return err
		}
		found = found || used
		if !used {
			c.PassedOver = append(c.PassedOver, l.shown(f))
		}
	}
	if !found {
		return fault.New(fault.NotFound, "%s holds no text files or pictures to attach", source)
	}
	return nil
}

func patternHint(source string) string {
	if strings.ContainsAny(source, "*?[{") {
		return "patterns are dir/*.ext, dir/**/*.ext, dir/**/*.{a,b} and dir/**/name.ext"
	}
	return "check the path; a name with a colon may be meant for a document loader that is not configured"
}

// shown is the path by which a file is read and shown: relative where the source was.
func (l *Loader) shown(path string) string {
	if l.Dir == "" {
		return path
	}
	if rel, err := filepath.Rel(l.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// file adds a file. used is false if it was passed over.
func (l *Loader) file(ctx context.Context, c *collector, name string, named bool) (used bool, err error) {
	if !c.first(File, name) {
		return true, nil
	}
	path := name
	if l.Dir != "" && !filepath.IsAbs(name) {
		path = filepath.Join(l.Dir, name)
	}
	ext := strings.ToLower(filepath.Ext(name))
	if kind := strings.TrimPrefix(ext, "."); l.Converts(kind) {
		text, _, err := l.Convert(ctx, kind, path)
		switch {
		case err != nil && !named && !l.HasLoader(kind) && ctx.Err() == nil:
			return false, nil
		case err != nil:
			return false, err
		}
		return true, c.add(Document{Kind: File, Name: name, Text: text})
	}
	data, err := readLimited(ctx, path, MaxFileSize)
	switch {
	case err != nil && !named && (isTooLarge(err) || errors.Is(err, fs.ErrPermission)):
		return false, nil
	case err != nil:
		return false, err
	}
	if mime := imageTypes[ext]; mime != "" {
		return true, c.addImage(Image{Name: name, URL: dataURL(mime, data)})
	}
	text, ok := document.Decode(data, "")
	if !ok {
		if !named {
			return false, nil
		}
		return false, NotText(name, data, strings.TrimPrefix(ext, "."))
	}
	return true, c.add(Document{Kind: File, Name: name, Text: text})
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

type tooLargeError struct {
	name  string
	limit int64 // bytes
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d MiB", e.name, e.limit>>20)
}

func (e *tooLargeError) FaultCode() fault.Code { return fault.Usage }

func isTooLarge(err error) bool {
	_, ok := err.(*tooLargeError)
	return ok
}

// readLimited reads a regular file of at most limit bytes. Reading other things might never end, so they
// are errors, except for a pipe that is open already, such as that of <(command) in a shell.
func readLimited(ctx context.Context, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	switch {
	case info.Mode().IsRegular():
	case info.Mode().Type() == fs.ModeNamedPipe && inherited(path):
		flags |= syscall.O_NONBLOCK // so that the deadline counts
	default:
		return nil, fault.New(fault.Usage, "%s is not a regular file", path)
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A file has no deadlines, and ends.
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, &tooLargeError{path, limit}
	}
	return data, nil
}

// inherited reports whether path names an open file of the process.
func inherited(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}
