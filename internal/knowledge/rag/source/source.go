// Package source finds and reads the documents of a knowledge base.
//
// A source is what a user lists:
//
//	notes, notes/**/*.md        a file, a directory, or a pattern below one
//	https://site.test/page      a page, or a document of the web
//	https://site.test/docs/**   the pages below an address, found by their links
//	git+https://site.test/repo  a Git repository, also git@host:path, ssh://..., https://....git;
//	                            #branch or #branch:directory behind it
//	name:rest                   what the document loader called name makes of the rest
//
// A document is what a source leads to. Finding documents is separate from reading them, and reading
// them from converting them to text, so that unchanged documents cost as little as possible.
package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/document"
	"loki/internal/base/fault/retry"
	"loki/internal/knowledge/input"
)

// MaxSize is the size of the largest document, in bytes.
const MaxSize = 64 << 20

// Loader finds documents. The zero value of an optional field is its default. It may be used from
// several goroutines.
type Loader struct {
	Input    *input.Loader // required: what relative paths are relative to, document loaders, the client for addresses
	Retry    retry.Policy  // for sites that ask to come back later
	MaxPages int           // of a site; 0 means [DefaultMaxPages]
	MaxDepth int           // links from the first page of a site to the last; 0 means [DefaultMaxDepth]
	// Addresses of the API and of the files of GitHub; empty means its own.
	GitHub, GitHubRaw string
}

// The limits of a crawl.
const (
	DefaultMaxPages = 5000
	DefaultMaxDepth = 16
)

// ErrPassedOver is in the chain of errors of [Document.Read] or [Content.Text] for a file below a directory
// that is not text, or is larger than [MaxSize], for a link that leads out of the directory, and for a page of
// a site without text. It is not a failure:
// such documents are counted.
var ErrPassedOver = errors.New("skipped")

// ErrEncoding is in the chain of errors about text in another encoding.
var ErrEncoding = errors.New("another encoding")

// ErrWithheld is in the chain of errors about files that a rule keeps from models.
var ErrWithheld = errors.New("withheld")

// Error is a failure that concerns one source, or a note about it. If what failed does not exist, it wraps
// [fs.ErrNotExist].
type Error struct {
	Source string // without a password
	Path   string // of the document that failed; empty if it is the source
	Note   bool   // nothing failed: Err says what was left out, and what was found is all of the source
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Document is a document that was found. Finding it costs little: its content was not read yet,
// unless that was the way to find it.
type Document struct {
	Path   string // absolute path, address, or name:rest; never with a password
	Source string // that led to it, as it is listed, but without a password
	Held   int    // bytes of its content that are in memory until it is read; 0 if it is still where it is

	read func(ctx context.Context) (*Content, error)
}

// Read reads the document. An error is an [*Error], unless ctx ended. Different documents may be read at the same time, also after the
// sequence that they came from has ended.
func (d Document) Read(ctx context.Context) (*Content, error) { return d.read(ctx) }

// Content is a document that was read.
type Content struct {
	Hash string // hex SHA-256 of the document as it came, before it was converted

	size int // bytes of a file that are in memory
	text func(ctx context.Context) (Body, error)
}

// Body is the text of a document: decoded, or converted if it is not text. Ext is the extension of files
// with such text, without the dot and in lower case, "md" for what was converted to Markdown and "txt" if it is
// not known. Unread is what was not read of a converted document.
type Body struct {
	document.Content
	Lines bool // whether the lines of the text are those of the document
}

// Text returns the text of the document.
func (c *Content) Text(ctx context.Context) (Body, error) { return c.text(ctx) }

// unlessBlank returns the content, which is skipped if it has no text.
func (c *Content) unlessBlank() *Content {
	some := *c
	some.text = func(ctx context.Context) (Body, error) {
		b, err := c.text(ctx)
		if err == nil && strings.TrimSpace(b.Text) == "" {
			err = fmt.Errorf("%w: the page has no text", ErrPassedOver)
		}
		return b, err
	}
	return &some
}

// Documents yields the documents of sources in the order of the list, each path once. An error is an
// [*Error]: the search of a source, or of what is behind one of its documents, failed, so that it may
// lead to more documents than were found, unless the error is a note. The sequence continues after it. It ends early, with the error
// of ctx, if ctx does.
func (l *Loader) Documents(ctx context.Context, sources []string) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s := &search{Loader: l, yield: yield, seen: make(map[string]bool), sources: sources}
		for _, source := range sources {
			s.source = strings.TrimSpace(source)
			err := s.find(ctx)
			switch {
			case s.stopped:
				return
			case ctx.Err() != nil:
				yield(Document{}, ctx.Err())
				return
			case err != nil:
				s.fail("", err)
			}
			if s.stopped {
				return
			}
		}
	}
}

// search is an iteration over the documents of sources.
type search struct {
	*Loader
	sources []string // all that are searched
	source  string   // that is being searched
	yield   func(Document, error) bool
	seen    map[string]bool // documents that were yielded
	stopped bool            // the caller wants no more
	held    int             // bytes in memory of the document that is found next
}

// find yields the documents of the source. The error is one of the source itself.
func (s *search) find(ctx context.Context) error {
	switch s.kindOf(s.source) {
	case page:
		address := s.source // that of another source once the document is read
		s.found(input.WithoutPassword(address), func(ctx context.Context) (*Content, error) { return s.readPage(ctx, address) })
		return nil
	case site:
		return s.crawl(ctx, strings.TrimRight(s.source, "*"))
	case loaded:
		return s.load(ctx)
	case repo:
		return s.yieldClone(ctx, s.source)
	}
	return s.files(ctx)
}

// found yields a document unless it was found before; ok is false if the search is over.
func (s *search) found(path string, read func(context.Context) (*Content, error)) (ok bool) {
	if s.stopped || s.seen[path] {
		return !s.stopped
	}
	s.seen[path] = true
	d := Document{Path: path, Source: input.WithoutPassword(s.source), Held: s.held}
	crawled := s.kindOf(s.source) == site
	d.read = func(ctx context.Context) (*Content, error) {
		c, err := read(ctx)
		if err == nil && crawled {
			c = c.unlessBlank()
		}
		if err != nil && ctx.Err() == nil {
			err = &Error{Source: d.Source, Path: path, Err: err}
		}
		return c, err
	}
	s.stopped = !s.yield(d, nil)
	return !s.stopped
}

// fail yields an error of the source, or of one of its documents; ok is false if the search is over.
func (s *search) fail(path string, err error) (ok bool) {
	return s.report(&Error{Path: path, Err: err})
}

// note yields what a user has to know about the source.
func (s *search) note(err error) { s.report(&Error{Note: true, Err: err}) }

func (s *search) report(e *Error) (ok bool) {
	e.Source = input.WithoutPassword(s.source)
	s.stopped = s.stopped || !s.yield(Document{}, e)
	return !s.stopped
}

// kind is what a source is.
type kind int

const (
	local  kind = iota // a path or a pattern
	page               // an address
	site               // an address with ** behind it
	loaded             // name:rest
	repo               // a Git repository
)

func (l *Loader) kindOf(source string) kind {
	switch {
	case isRepository(source):
		return repo
	case strings.HasPrefix(source, "http://"), strings.HasPrefix(source, "https://"):
		if strings.HasSuffix(source, "**") {
			return site
		}
		return page
	case l.Input.Serves(source):
		return loaded
	}
	return local
}

// Local returns those of sources that are files, directories or patterns.
func (l *Loader) Local(sources []string) []string {
	return slices.DeleteFunc(slices.Clone(sources), func(s string) bool { return l.kindOf(s) != local })
}

// isRepository reports whether source is the address of a Git repository.
func isRepository(source string) bool {
	address, _, _ := strings.Cut(source, "#")
	switch {
	case strings.HasPrefix(address, "git+"), strings.HasPrefix(address, "ssh://"), strings.HasPrefix(address, "git@"):
		return true
	case strings.HasPrefix(address, "http://"), strings.HasPrefix(address, "https://"):
		return strings.HasSuffix(address, ".git") || strings.HasSuffix(address, ".git/")
	}
	return false
}

// Absolute returns source as it is stored, so that it can be read from anywhere: blanks around it
// are dropped, and a path is absolute and clean, also that of a file or directory behind the name of a
// loader. A source that is empty or malformed is an error.
func (l *Loader) Absolute(source string) (string, error) {
	source = strings.TrimSpace(source)
	switch {
	case source == "":
		return "", errors.New("a source is empty")
	case l.kindOf(source) == loaded:
		name, rest, _ := strings.Cut(source, ":")
		path := l.Input.Absolute(rest)
		if _, err := os.Stat(path); rest == "" || err != nil || !filepath.IsAbs(path) {
			return source, nil
		}
		return name + ":" + path, nil
	case l.kindOf(source) == page: // a part of a page is the page
		source, _, _ = strings.Cut(source, "#")
		return source, nil
	case l.kindOf(source) != local:
		return source, nil
	}
	return l.Input.Absolute(source), nil
}

// Covers reports whether the document at path may come from source, which is absolute, to judge by their
// names: the documents of a site that redirects, for example, have others.
func (l *Loader) Covers(source, path string) bool {
	switch l.kindOf(source) {
	case page:
		return path == input.WithoutPassword(source)
	case local:
		p, err := input.ParsePattern(source)
		base := strings.TrimSuffix(p.Base, string(filepath.Separator))
		return err == nil && (path == base || strings.HasPrefix(path, base+string(filepath.Separator)))
	case repo:
		source, _, _ = strings.Cut(source, "#")
	}
	return strings.HasPrefix(path, strings.TrimRight(input.WithoutPassword(source), "/*"))
}
