package document

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html/charset"
)

// archive is a document that is a ZIP archive of XML files.
type archive struct {
	ctx   context.Context
	files map[string]*zip.File
	left  int64 // bytes that may still be unpacked
}

func openArchive(ctx context.Context, data []byte) (*archive, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("the document is malformed, or protected by a password: %w", err)
	}
	a := &archive{ctx: ctx, files: make(map[string]*zip.File, len(z.File)), left: maxRead}
	for _, f := range z.File {
		a.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	return a, nil
}

func (a *archive) has(name string) bool { return a.files[name] != nil }

// open returns a file of the archive, at the expense of what may be unpacked in all.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.files[name]
	if f == nil {
		return nil, fmt.Errorf("the document is malformed: it has no %s", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("the document is malformed: %s: %w", name, err)
	}
	return &member{a, r}, nil
}

// member is an open file of an archive.
type member struct {
	archive *archive
	io.ReadCloser
}

var errBomb = fmt.Errorf("it unpacks to more than %d MiB", maxRead>>20)

func (m *member) Read(p []byte) (int, error) {
	if err := m.archive.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.ReadCloser.Read(p)
	if m.archive.left -= int64(n); m.archive.left < 0 {
		return 0, errBomb
	}
	return n, err
}

// maxDepth bounds how deep elements lie in each other.
const maxDepth = 1000

// element is the start of an XML element.
type element struct{ xml.StartElement }

// attr returns the value of an attribute by its name without a prefix, "" if there is none.
func (e element) attr(name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// handler gets the parts of an XML file in their order. Names are those without a prefix.
type handler struct {
	start func(name string, e element) (skip bool) // skip leaves out the element with all that is in it
	end   func(name string)                        // not for elements that were left out
	text  func(s string)
}

// walk reads an XML file of the archive.
func (a *archive) walk(name string, h handler) error {
	r, err := a.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	d := xml.NewDecoder(r)
	d.Strict, d.Entity, d.CharsetReader = false, xml.HTMLEntity, charset.NewReaderLabel
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if h.start != nil && h.start(t.Name.Local, element{t}) {
				if err := d.Skip(); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				continue
			}
			if depth++; depth > maxDepth {
				return fmt.Errorf("the document is malformed: elements of %s lie too deep in each other", name)
			}
		case xml.EndElement:
			if depth--; h.end != nil {
				h.end(t.Name.Local)
			}
		case xml.CharData:
			if h.text != nil {
				h.text(string(t))
			}
		}
	}
}

// relation is a file that another one of the archive refers to.
type relation struct{ target, kind string }

// relations returns the files that a file refers to, by the id of the reference; none if there is no list
// of them.
func (a *archive) relations(name string) (map[string]relation, error) {
	dir, file := path.Split(name)
	list := dir + "_rels/" + file + ".rels"
	found := make(map[string]relation)
	if !a.has(list) {
		return found, nil
	}
	err := a.walk(list, handler{start: func(tag string, e element) bool {
		if tag == "Relationship" {
			target := e.attr("Target")
			if !strings.HasPrefix(target, "/") {
				target = dir + target
			}
			found[e.attr("Id")] = relation{strings.TrimPrefix(path.Clean(target), "/"), path.Base(e.attr("Type"))}
		}
		return false
	}})
	return found, err
}

// related returns the file that an element refers to. The attribute with the id of the reference has a
// prefix, unlike the number that the element may have itself.
func (e element) related(relations map[string]relation) (r relation, ok bool) {
	for _, a := range e.Attr {
		if r, ok = relations[a.Value]; ok && a.Name.Space != "" {
			return r, true
		}
	}
	return relation{}, false
}
