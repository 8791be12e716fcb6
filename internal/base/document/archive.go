package document

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
)

// archive is a document that is a ZIP archive of XML files. Names of its files are compared without case, and with
// either slash.
type archive struct {
	unread
	ctx   context.Context
	files map[string]*zip.File
	most  int64 // bytes of text that it may have
	left  int64 // bytes that may still be unpacked
}

func openArchive(ctx context.Context, data []byte) (*archive, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("the document is malformed, or protected by a password: %w", err)
	}
	most := budget(len(data))
	a := &archive{ctx: ctx, files: make(map[string]*zip.File, len(z.File)), most: most, left: most}
	for _, f := range z.File {
		a.files[key(f.Name)] = f
	}
	return a, nil
}

// office returns a reader of documents that are archives. read writes the text of one.
func office(read func(a *archive, w *writer) error) func(ctx context.Context, data []byte) (string, []string, error) {
	return func(ctx context.Context, data []byte) (string, []string, error) {
		a, err := openArchive(ctx, data)
		if err != nil {
			return "", nil, err
		}
		return a.markdown(read)
	}
}

// markdown returns the text of a document, and what was not read of it. One that has no text because parts are damaged is an
// error.
func (a *archive) markdown(read func(a *archive, w *writer) error) (string, []string, error) {
	w := newWriter(a.most)
	if err := read(a, w); err != nil {
		return "", nil, err
	}
	text := w.String()
	if w.tooLong() {
		return "", nil, errTooLarge
	}
	if strings.TrimSpace(text) == "" && a.first != nil {
		return "", nil, a.first
	}
	return text, a.list(), nil
}

// budget returns how many bytes a document of size bytes may unpack to, and how much text it may have. It grows with the
// document, so that a small one cannot cause the work of a large one.
func budget(size int) int64 { return min(maxRead, 16<<20+32*int64(size)) }

// key returns the name of a file as files has it.
func key(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// file returns a file, nil if there is none. The name may have escapes, as in an address.
func (a *archive) file(name string) *zip.File {
	if f := a.files[key(name)]; f != nil {
		return f
	}
	if plain, err := url.PathUnescape(name); err == nil {
		return a.files[key(plain)]
	}
	return nil
}

func (a *archive) has(name string) bool { return a.file(name) != nil }

// open returns a file of the archive, at the expense of what may be unpacked in all.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.file(name)
	if f == nil {
		return nil, fmt.Errorf("the document is malformed: it has no %s", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("the document is malformed: %s: %w", name, err)
	}
	return &member{a, r}, nil
}

// maxPart bounds a part of a document that is read whole, in bytes.
const maxPart = 16 << 20

// readAll returns a file of the archive.
func (a *archive) readAll(name string) ([]byte, error) {
	r, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxPart+1))
	if err == nil && len(data) > maxPart {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxPart>>20)
	}
	return data, err
}

// member is an open file of an archive.
type member struct {
	archive *archive
	io.ReadCloser
}

var errBomb = errors.New("it unpacks to far more than its size")

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

// on reports whether the value of an attribute, or its absence, says yes.
func (e element) on(name string) bool {
	switch e.attr(name) {
	case "0", "false", "off", "none":
		return false
	}
	return true
}

// says reports whether an attribute is there and says yes.
func (e element) says(name string) bool { return e.attr(name) != "" && e.on(name) }

// handler gets the parts of an XML file in their order. Names are those without a prefix.
type handler struct {
	start func(name string, e element) (skip bool) // skip leaves out the element with all that is in it
	end   func(name string)                        // not for elements that were left out
	text  func(s string)
}

// walk reads an XML file of the archive. What it has before a place that is damaged is read.
func (a *archive) walk(name string, h handler) error {
	r, err := a.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	d := xmlDecoder(r)
	for depth, skipped := 0, 0; ; {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) && depth+skipped <= 0 {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth+skipped >= maxDepth {
				return fmt.Errorf("the document is malformed: elements of %s lie too deep in each other", name)
			}
			if skipped > 0 || h.start != nil && h.start(t.Name.Local, element{t}) {
				skipped++
			} else {
				depth++
			}
		case xml.EndElement:
			if skipped > 0 {
				skipped--
				continue
			}
			if depth--; h.end != nil {
				h.end(t.Name.Local)
			}
		case xml.CharData:
			if skipped == 0 && h.text != nil {
				h.text(string(t))
			}
		}
	}
}

// xmlDecoder returns a decoder of XML in any encoding.
func xmlDecoder(r io.Reader) *xml.Decoder {
	begin := bufio.NewReader(r)
	mark, _ := begin.Peek(2)
	utf16 := bytes.Equal(mark, markUTF16LE) || bytes.Equal(mark, markUTF16BE)
	r = begin
	if utf16 {
		r = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(begin)
	}
	d := xml.NewDecoder(r)
	d.Strict, d.Entity = false, xml.HTMLEntity
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if utf16 {
			return in, nil
		}
		return charset.NewReaderLabel(label, in)
	}
	return d
}

// relation is a file that another one of the archive refers to.
type relation struct {
	target string
	kind   string // the last part of its type, such as "footnotes"
}

// relations are the files that a file refers to.
type relations struct {
	all  []relation // in their order
	byID map[string]relation
}

// relations returns the files that a file refers to, none if there is no list of them. The file "" is the package.
func (a *archive) relations(name string) relations {
	dir, file := path.Split(strings.ReplaceAll(name, `\`, "/"))
	list := dir + "_rels/" + file + ".rels"
	found := relations{byID: make(map[string]relation)}
	if !a.has(list) {
		return found
	}
	err := a.walk(list, handler{start: func(tag string, e element) bool {
		if tag == "Relationship" && e.attr("TargetMode") != "External" {
			target := strings.ReplaceAll(e.attr("Target"), `\`, "/")
			if !strings.HasPrefix(target, "/") {
				target = dir + target
			}
			r := relation{strings.TrimPrefix(path.Clean(target), "/"), path.Base(e.attr("Type"))}
			found.all, found.byID[e.attr("Id")] = append(found.all, r), r
		}
		return false
	}})
	if err != nil && a.first == nil {
		a.say("what " + list + " refers to (damaged)")
		a.first = err
	}
	return found
}

// main returns the part with which an Office Open XML document begins, by its reference, and what that refers to.
// usual is its name if nothing refers to it.
func (a *archive) main(usual string) (string, relations) {
	if name := a.relations("").of("officeDocument", usual); a.has(name) {
		usual = name
	}
	return usual, a.relations(usual)
}

// of returns the first file of a kind, or else the usual one.
func (r relations) of(kind, usual string) string {
	for _, one := range r.all {
		if one.kind == kind {
			return one.target
		}
	}
	return usual
}

// relationOf returns the file that an element refers to. The attribute with the id of the reference has a
// prefix, unlike the number that the element may have itself. name is that of the attribute, "" for any.
func (e element) relationOf(all relations, name string) (relation, bool) {
	for _, a := range e.Attr {
		if r, ok := all.byID[a.Value]; ok && a.Name.Space != "" && (name == "" || name == a.Name.Local) {
			return r, true
		}
	}
	return relation{}, false
}
