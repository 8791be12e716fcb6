package pdf

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"loki/internal/base/text"
)

// file is a PDF file. Its table of objects is not used: damaged files have wrong ones, and hostile files
// have ones that are expensive. Instead the objects are found by the words around them.
type file struct {
	ctx     context.Context
	objects map[ref]any
	root    dict // the catalog; nil if there is none
	left    int  // bytes that may still be unpacked
	steps   int  // glyphs and objects of pages that may still be read

	rightward int // letters so far that are read from right to left, less the others
}

// Limits of the work for a file. A small file that makes as much work as a large one is a hostile one.
const (
	maxUnpacked   = 256 << 20 // bytes that its streams hold
	maxStream     = 32 << 20  // bytes that one holds
	leastUnpacked = 16 << 20  // of maxUnpacked, what an empty file may have
	unpackedRatio = 32        // and what it may have more for each of its bytes
	leastSteps    = 2 << 20
	stepsRatio    = 4
	formSteps     = 100 // of a form, besides those of its content
	maxObjects    = 320_000
)

var errTooMuch = errors.New("the PDF file unpacks to too much")

// header matches the beginning of an object.
var header = text.Regexp(`(\d{1,10})[\s\x00]+\d{1,5}[\s\x00]+obj\b`)

// definition is an object as it is in the file.
type definition struct {
	id  ref
	obj any
}

// open reads the objects of a file. A later definition of an object replaces an earlier one, as in files
// that were changed.
func open(ctx context.Context, data []byte) (*file, error) {
	f := &file{ctx: ctx, objects: make(map[ref]any), left: min(maxUnpacked, leastUnpacked+unpackedRatio*len(data)), steps: leastSteps + stepsRatio*len(data)}
	var defs []definition
	trailer := dict{}
	for at := 0; at < len(data); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found := header().FindSubmatchIndex(data[at:])
		stop := len(data)
		if found != nil {
			stop = at + found[0]
		}
		readTrailers(data[at:stop], trailer)
		if found == nil {
			break
		}
		n, _ := strconv.Atoi(string(data[at+found[2] : at+found[3]]))
		l := &lexer{data: data, pos: at + found[1], refs: true}
		obj, _ := l.next(0)
		if d, ok := obj.(dict); ok {
			obj = l.streamOf(d)
		}
		if !isStructure(obj) {
			defs = append(defs, definition{ref(n), obj})
		}
		if len(defs) > maxObjects {
			return nil, errTooMuch
		}
		at = max(l.pos, at+found[1])
	}
	for _, def := range defs {
		if s, ok := def.obj.(*stream); ok && s.dict["Type"] == name("XRef") {
			addTrailer(trailer, s.dict)
		}
		f.objects[def.id] = def.obj
	}
	if trailer["Encrypt"] != nil {
		if err := f.decrypt(trailer, defs); err != nil {
			return nil, err
		}
	}
	for _, def := range defs { // again, since what is packed takes part in the order of definitions
		f.objects[def.id] = def.obj
		if s, ok := def.obj.(*stream); ok && s.dict["Type"] == name("ObjStm") {
			if err := f.unpack(s); err != nil {
				return nil, err
			}
		}
	}
	if f.root = f.dict(trailer["Root"]); f.root == nil {
		for _, def := range defs {
			if d, ok := f.objects[def.id].(dict); ok && d["Type"] == name("Catalog") {
				f.root = d
			}
		}
	}
	return f, ctx.Err()
}

// isStructure reports whether an object is an element of the structure of the document. There may be very many, and they
// are not used.
func isStructure(obj any) bool {
	d, ok := obj.(dict)
	return ok && d["S"] != nil && d["P"] != nil && (d["Type"] == nil || d["Type"] == name("StructElem"))
}

// step counts n steps of work.
func (f *file) step(n int) error {
	if f.steps -= n; f.steps < 0 {
		return errTooMuch
	}
	return nil
}

// streamOf returns the stream with the dictionary d, if one follows, and otherwise d.
func (l *lexer) streamOf(d dict) any {
	from := l.pos
	l.skipSpace()
	if !bytes.HasPrefix(l.data[l.pos:], []byte("stream")) {
		l.pos = from
		return d
	}
	l.pos += len("stream")
	if l.pos < len(l.data) && l.data[l.pos] == '\r' {
		l.pos++
	}
	if l.pos < len(l.data) && l.data[l.pos] == '\n' {
		l.pos++
	}
	rest := l.data[l.pos:]
	if length, ok := d["Length"].(float64); ok && length >= 0 && int(length) <= len(rest) {
		if bytes.HasPrefix(bytes.TrimLeft(rest[int(length):min(len(rest), int(length)+16)], "\r\n "), []byte("endstream")) {
			l.pos += int(length)
			return &stream{d, rest[:int(length)]}
		}
	}
	end := bytes.Index(rest, []byte("endstream"))
	if end < 0 {
		end = len(rest)
	}
	l.pos += end
	return &stream{d, rest[:end]}
}

// readTrailers adds the trailers in a part of the file between objects.
func readTrailers(data []byte, trailer dict) {
	for {
		i := bytes.Index(data, []byte("trailer"))
		if i < 0 {
			return
		}
		l := &lexer{data: data, pos: i + len("trailer"), refs: true}
		if obj, _ := l.next(0); obj != nil {
			if d, ok := obj.(dict); ok {
				addTrailer(trailer, d)
			}
		}
		data = data[max(l.pos, i+1):]
	}
}

func addTrailer(trailer, d dict) {
	for _, key := range []name{"Root", "Encrypt", "ID"} {
		if d[key] != nil {
			trailer[key] = d[key]
		}
	}
}

// unpack adds the objects that a stream holds.
func (f *file) unpack(s *stream) error {
	data, err := f.read(s)
	if err != nil {
		return err
	}
	n, _ := f.number(s.dict["N"])
	first, _ := f.number(s.dict["First"])
	l := &lexer{data: data, refs: true}
	for range int(min(n, float64(len(data)))) {
		id, ok1 := l.next(0)
		at, ok2 := l.next(0)
		num, isNum := id.(float64)
		offset, isOffset := at.(float64)
		if !ok1 || !ok2 || !isNum || !isOffset {
			return nil
		}
		if at := int(first) + int(offset); at >= 0 && at < len(data) {
			obj, _ := (&lexer{data: data, pos: at, refs: true}).next(0)
			if !isStructure(obj) {
				f.objects[ref(num)] = obj
			}
			if len(f.objects) > maxObjects {
				return errTooMuch
			}
		}
	}
	return f.ctx.Err()
}

// resolve returns the object that obj refers to, or obj itself.
func (f *file) resolve(obj any) any {
	for range 16 {
		r, ok := obj.(ref)
		if !ok {
			return obj
		}
		obj = f.objects[r]
	}
	return nil
}

// dict returns obj as a dictionary, also that of a stream; nil if it is none.
func (f *file) dict(obj any) dict {
	switch o := f.resolve(obj).(type) {
	case dict:
		return o
	case *stream:
		return o.dict
	}
	return nil
}

func (f *file) array(obj any) array {
	a, _ := f.resolve(obj).(array)
	return a
}

func (f *file) name(obj any) name {
	n, _ := f.resolve(obj).(name)
	return n
}

func (f *file) number(obj any) (float64, bool) {
	n, ok := f.resolve(obj).(float64)
	return n, ok
}

func (f *file) numberOr(obj any, otherwise float64) float64 {
	if n, ok := f.number(obj); ok {
		return n
	}
	return otherwise
}
