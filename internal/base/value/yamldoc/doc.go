// Package yamldoc reads YAML files that people write, and reports mistakes in them
// precisely.
//
// [Parse] turns a text into a [Doc] whose nodes know their line, column and path.
// A reader then walks the nodes with typed accessors ([Node], [Map]). An accessor
// that meets a wrong type or an impossible number reports a [Problem] to the Doc
// and the walk continues, so one pass finds all mistakes of a file:
//
//	doc, err := yamldoc.Parse("settings.yaml", src)
//	if err != nil {
//		return err // not YAML
//	}
//	m := doc.Root().Map()
//	m.Require("name")
//	m.Text("name", &s.Name)
//	m.Seconds("timeout", &s.Timeout) // keeps its default if the key is absent or null
//	m.Done()                         // warns about keys that were not read
//	return doc.Err()
//
// # Dialect
//
// One document in YAML 1.2 with its core scalar rules:
//
//   - booleans are true, True, TRUE, false, False and FALSE; yes, no, on, off are strings
//   - null is null, Null, NULL, ~ or nothing at all
//   - integers are decimal, 0x, 0o or 0b; 017 and 1_000 are strings
//   - dates are strings
//   - merge keys are ordinary keys; anchors and aliases work
//   - mapping keys are scalars, taken as their literal text, and occur once
//
// Lines and columns count from 1, columns in characters.
package yamldoc

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
)

// Limits of what [Parse] accepts. They keep hostile input from exhausting memory or
// the stack and are far beyond anything written by hand.
const (
	MaxSize     = 16 << 20 // bytes of text
	MaxDepth    = 500      // levels of nesting, aliases resolved
	MaxSiblings = 20_000   // keys of one mapping
	MaxExpanded = 64 << 20 // approximate bytes of the document, aliases resolved
)

// Option changes how a document is read.
type Option uint8

// HideSource keeps the text of the document out of all problems: no offending
// values, no excerpts. It is for files that may hold secrets.
const HideSource Option = 1

// Doc is a parsed document and the list of what was found wrong with it so far. It
// belongs to one goroutine.
type Doc struct {
	file     string
	src      []byte
	hide     bool
	root     *raw
	errors   []*Problem
	warnings []*Problem
	foreign  []entry // keys of related programs
}

// Parse reads the one document in src; an empty text is a null. The name of the file
// is used in messages and may be empty. The error, if any, is a [*Problem] or a
// [Problems]. src is kept and must not change.
func Parse(file string, src []byte, options ...Option) (*Doc, error) {
	d := &Doc{file: file, src: normalize(src), hide: slices.Contains(options, HideSource)}
	root, problem := d.tree()
	if problem != nil {
		return nil, problem
	}
	d.root = root
	if err := d.Err(); err != nil {
		return nil, err
	}
	return d, nil
}

// normalize drops a byte order mark and makes all line breaks line feeds: the
// library does not fold quoted text over lines that end in CR LF.
func normalize(src []byte) []byte {
	src = bytes.TrimPrefix(src, []byte("\uFEFF"))
	if bytes.IndexByte(src, '\r') < 0 {
		return src
	}
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(src, []byte("\r"), []byte("\n"))
}

// Root returns the outermost node, whose path is empty.
func (d *Doc) Root() *Node { return &Node{doc: d, raw: d.root} }

// File returns the name the document was parsed under.
func (d *Doc) File() string { return d.file }

// Errors returns the problems that make the document unusable, in document order.
func (d *Doc) Errors() []*Problem { return inOrder(d.errors) }

// Warnings returns the problems that can be lived with, in document order.
func (d *Doc) Warnings() []*Problem {
	if p := d.ForeignWarning(); p != nil {
		return inOrder(append(slices.Clip(d.warnings), p))
	}
	return inOrder(d.warnings)
}

// Err returns nil if no error was reported, a [*Problem] if there was one, and
// [Problems] otherwise.
func (d *Doc) Err() error {
	switch len(d.errors) {
	case 0:
		return nil
	case 1:
		return d.errors[0]
	}
	return Problems(d.Errors())
}

// inOrder returns problems in the order of their places.
func inOrder(problems []*Problem) []*Problem {
	problems = slices.Clone(problems)
	slices.SortStableFunc(problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return problems
}

// AsProblems returns all the problems in err's chain, in order.
func AsProblems(err error) []*Problem {
	if list, ok := errors.AsType[Problems](err); ok {
		return list
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return []*Problem{p}
	}
	return nil
}
