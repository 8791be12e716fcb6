// Package grep searches the files of a tree for lines that match a regular expression.
//
// The needle is a text that every matching line holds: it is looked for first, and the
// expression sees only lines with it. A block is the part of a file that is in memory,
// whole lines of it. Several files are searched at once.
package grep

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"loki/internal/tool/builtin/tree"
)

const (
	blockSize = 256 << 10 // bytes read at once
	maxLine   = 8 << 20   // bytes; a file with a longer line is not text
)

// Query says what to search for. The zero value of a limit means none.
type Query struct {
	Expr     string                 // RE2
	Tree     tree.Walker            // how directories are walked
	File     func(path string) bool // which files are searched; nil means all
	MaxLines int                    // how many lines are returned
	MaxBytes int                    // how long each line is; the rest is cut off
}

// Line is a line that matches.
type Line struct {
	Path   string // relative to the searched directory, with slashes; empty if a file is searched
	Number int    // from 1
	Text   string // without its line end, valid UTF-8
	Cut    int    // how many bytes of the line Text lacks
}

// Found is the outcome of a search.
type Found struct {
	Lines      []Line // by path, see [tree.Compare], and number
	More       bool   // there are more lines than MaxLines
	Unreadable int    // directories and files that could not be read
}

// Search searches below the directory root, or in the file root. The same tree always
// gives the same lines, even if more match than are returned. Files with a NUL byte are
// skipped, and so are symbolic links below root.
func Search(ctx context.Context, root string, q Query) (Found, error) {
	c, err := compile(q.Expr)
	if err != nil {
		return Found{}, err
	}
	info, err := os.Stat(root)
	if err != nil {
		return Found{}, err
	}
	s := &search{query: q, compiled: c}
	if !info.IsDir() {
		if err := s.file(ctx, "", root); err != nil {
			return Found{}, err
		}
		return s.outcome(0), nil
	}
	w := q.Tree
	w.Skip = func(path string) bool {
		last := s.last.Load()
		return last != nil && tree.Compare(path, *last) > 0
	}
	unreadable, err := w.Walk(ctx, root, func(_ int, f tree.File) {
		if q.File != nil && !q.File(f.Path) {
			return
		}
		if err := s.file(ctx, f.Path, f.Full); err != nil {
			s.unreadable.Add(1)
		}
	})
	if err != nil {
		return Found{}, err
	}
	return s.outcome(unreadable), nil
}

// buffers are blocks that no search uses now.
var buffers = sync.Pool{New: func() any { return new([blockSize]byte) }}

type search struct {
	query    Query
	compiled *compiled

	unreadable atomic.Int64
	// last is the path of the last line that is kept; lines of later paths are not
	// needed any more. It is nil until there are too many lines.
	last atomic.Pointer[string]

	mu    sync.Mutex
	files [][]Line // of one file each, by path
	total int      // lines in files
	more  bool
}

// outcome returns the outcome.
func (s *search) outcome(unreadable int) Found {
	return Found{Lines: slices.Concat(s.files...), More: s.more, Unreadable: unreadable + int(s.unreadable.Load())}
}

// add keeps those lines of a file that are among the first.
func (s *search) add(lines []Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.files, lines[0].Path, func(file []Line, path string) int { return tree.Compare(file[0].Path, path) })
	s.files = slices.Insert(s.files, at, lines)
	s.total += len(lines)
	limit := s.query.MaxLines
	if limit <= 0 || s.total <= limit {
		return
	}
	s.more = true
	for s.total > limit {
		end := len(s.files) - 1
		n := min(s.total-limit, len(s.files[end]))
		s.files[end] = s.files[end][:len(s.files[end])-n]
		s.total -= n
		if len(s.files[end]) == 0 {
			s.files = s.files[:end]
		}
	}
	path := s.files[len(s.files)-1][0].Path
	s.last.Store(&path)
}

// file searches one file.
func (s *search) file(ctx context.Context, path, full string) error {
	f, err := openFile(full)
	if err != nil {
		return err
	}
	defer f.Close()
	own := buffers.Get().(*[blockSize]byte)
	defer buffers.Put(own)
	buf := own[:]
	var lines []Line
	first := true
	n, number := 0, 1 // bytes in buf, and the number of the first line in it
	for ctx.Err() == nil {
		read, err := f.Read(buf[n:])
		if err != nil && err != io.EOF {
			return err
		}
		if bytes.IndexByte(buf[n:n+read], 0) >= 0 {
			return nil // not text, whatever was found so far
		}
		n += read
		if err == nil && read > 0 && n < len(buf) {
			continue // it may be the end, which only another read shows
		}
		whole := n
		end := err == io.EOF || read == 0
		if !end {
			whole = bytes.LastIndexByte(buf[:n], '\n') + 1
		}
		block := buf[:whole]
		if first {
			block, first = bytes.TrimPrefix(block, mark), false
		}
		if lines = s.block(lines, path, block, number); end || s.enough(lines) {
			break
		}
		number += bytes.Count(buf[:whole], newline)
		n = copy(buf, buf[whole:n])
		if n == len(buf) {
			if n >= maxLine {
				return nil
			}
			buf = append(buf, make([]byte, n)...) // for this file only
		}
	}
	if len(lines) > 0 {
		s.add(lines)
	}
	return nil
}

// enough reports whether one file has more lines than are wanted in all.
func (s *search) enough(lines []Line) bool {
	return s.query.MaxLines > 0 && len(lines) > s.query.MaxLines
}

var (
	newline = []byte{'\n'}
	mark    = []byte("\ufeff") // byte order mark, which is not a part of the first line
)

// block appends the lines of a block that match. Its first line has the given
// number.
func (s *search) block(lines []Line, path string, block []byte, number int) []Line {
	counted := 0
	s.compiled.lines(block, func(start, end int) bool {
		number += bytes.Count(block[counted:start], newline)
		counted = start
		lines = append(lines, s.line(path, number, block[start:end]))
		return !s.enough(lines)
	})
	return lines
}

func (s *search) line(path string, number int, text []byte) Line {
	text = bytes.TrimSuffix(text, []byte{'\r'})
	l := Line{Path: path, Number: number}
	if limit := s.query.MaxBytes; limit > 0 && len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		l.Cut, text = len(text)-limit, text[:limit]
	}
	l.Text = strings.ToValidUTF8(string(text), "\uFFFD")
	return l
}
