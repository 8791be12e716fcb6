package input

import (
	"cmp"
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

	"loki/internal/base/document"
	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/text"
	"loki/internal/base/text/pattern"
)

// files adds the files that a path or pattern means. Of a directory or pattern that is
// the text files, pictures and documents with a loader below it, ascending by path and
// without hidden directories that the pattern does not name; other files are skipped. A file that is named must be
// usable.
func (l *Loader) files(ctx context.Context, c *collector, source string) error {
	path, err := l.abs(source)
	if err != nil {
		return err
	}
	p, err := ParsePattern(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(p.Base)
	switch {
	case err != nil:
		return fault.New(fault.NotFound, "no file or directory at %s", l.displayPath(p.Base)).
			WithHint("%s", PathHint(source))
	case !info.IsDir() && !p.Plain():
		return fault.New(fault.Usage, "%s: %s is a file and has nothing below it", source, l.displayPath(p.Base))
	case !info.IsDir():
		_, err := l.file(ctx, c, l.displayPath(p.Base), true)
		return err
	}
	var files []string
	err = filepath.WalkDir(p.Base, func(path string, d fs.DirEntry, err error) error {
		rel := p.rel(path)
		switch {
		case errors.Is(err, fs.ErrPermission) && path != p.Base:
			return ctx.Err() // it is skipped, with what is below
		case err != nil:
			return err
		case d.IsDir() && path != p.Base && (strings.HasPrefix(d.Name(), ".") && !p.names(d.Name()) || !p.Reaches(rel)):
			return filepath.SkipDir
		case d.Type().IsRegular() && p.Matches(rel):
			files = append(files, path)
		}
		return ctx.Err()
	})
	if err != nil {
		return fault.Wrap(fault.Usage, err, "%s", source)
	}
	slices.Sort(files)
	found := false
	var denied error
	for _, f := range files {
		if err := l.denyError(f); err != nil {
			denied, c.Withheld = cmp.Or(denied, err), append(c.Withheld, l.displayPath(f))
			continue
		}
		why, err := l.file(ctx, c, l.displayPath(f), false)
		if err != nil {
			return err
		}
		if why == "" {
			found = true
		} else {
			c.PassedOver = append(c.PassedOver, l.displayPath(f)+" ("+why+")")
		}
	}
	if !found && denied != nil {
		return fault.New(fault.Usage, "no file at %s can be attached: %v", source, denied).WithHint("%s", fault.HintOf(denied))
	}
	if !found {
		err := fault.New(fault.NotFound, "%s holds no text files or pictures to attach", source)
		if !p.Plain() {
			err = err.WithHint("%s", PathHint(source))
		}
		return err
	}
	return nil
}

// PathHint says what may be wrong with the path or pattern of documents that are not there.
func PathHint(source string) string {
	if pattern.Special(source) {
		return "in patterns, * stops at a slash: dir/* are the files in dir, dir/** those in the directories below it too"
	}
	if strings.Contains(source, ":") {
		return "check the path; a name with a colon may be meant for a document loader that is not configured"
	}
	return "check the path"
}

// displayPath is the path by which a file is read and shown: relative where the source was.
func (l *Loader) displayPath(path string) string {
	if l.Dir == "" {
		return path
	}
	if rel, err := filepath.Rel(l.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// file adds a file. Why says for what reason it was skipped, "" if it was not.
func (l *Loader) file(ctx context.Context, c *collector, name string, named bool) (why string, err error) {
	if !c.first(File, name) {
		return "", nil
	}
	path := name
	if l.Dir != "" && !filepath.IsAbs(name) {
		path = filepath.Join(l.Dir, name)
	}
	if err := l.denyError(path); err != nil {
		return "", err
	}
	ext := extensionOf(name)
	if l.HasLoader(ext) {
		text, err := l.RunLoader(ctx, ext, path)
		if err != nil {
			return "", err
		}
		return "", c.add(Document{Kind: File, Name: name, Text: text})
	}
	data, err := readLimited(ctx, path, document.MaxSize)
	var is Content
	if err == nil {
		is, err = l.ContentOf(name, ext, data)
	}
	if err == nil && is.Kind == "" && len(data) > MaxFileSize {
		err = &tooLargeError{path, MaxFileSize}
	}
	var converted string
	if err == nil && is.Kind != "" {
		var content document.Content
		content, err = l.ConvertData(ctx, is.Kind, data)
		converted = content.Text
		c.unread(name, content.Unread)
		if err != nil && !l.HasLoader(is.Kind) {
			err = fault.Wrap(fault.Usage, err, "%s", path)
		}
	}
	switch {
	case err != nil && !named && ctx.Err() == nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, errUnusable) || isTooLarge(err) || is.Kind != "" && !l.HasLoader(is.Kind)):
		return whySkipped(err, is), nil
	case err != nil:
		return "", err
	case is.Image != "":
		return "", c.addImage(Image{Name: name, URL: dataURL(is.Image, data)})
	case is.Kind == "":
		var ok bool
		if converted, ok = document.Decode(data, ""); !ok && !named {
			return "neither text nor a picture", nil
		} else if !ok {
			return "", NotText(name, data, ext)
		}
	}
	return "", c.add(Document{Kind: File, Name: name, Text: converted})
}

// whySkipped says why a file below a directory is not used, by the error of reading it.
func whySkipped(err error, is Content) string {
	large, ok := err.(*tooLargeError)
	switch {
	case ok:
		return large.size()
	case errors.Is(err, fs.ErrPermission):
		return "not readable"
	case errors.Is(err, errUnusable):
		return "not a picture that models can look at"
	}
	return "not readable as " + is.Kind
}

// denyError returns an error for a file that must not be read.
func (l *Loader) denyError(path string) error {
	if l.Denied == nil {
		return nil
	}
	return l.Denied(path)
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

type tooLargeError struct {
	name  string
	limit int64 // bytes
}

func (e *tooLargeError) Error() string {
	return e.name + " is " + e.size()
}

// size says how large it is.
func (e *tooLargeError) size() string { return fmt.Sprintf("larger than %d MiB", e.limit>>20) }

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
	if kind := info.Mode(); !kind.IsRegular() && !(kind.Type() == fs.ModeNamedPipe && userfile.Inherited(path)) {
		return nil, fault.New(fault.Usage, "%s is %s, not a file", path, text.FileKind(kind))
	}
	f, err := userfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
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
