package rag

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/knowledge/rag/source"
	"loki/internal/knowledge/rag/split"
	"loki/internal/llm/chat"
)

// document is one on its way into the index. A reader owns it until ready is closed.
type document struct {
	source.Document
	ready   chan struct{}
	hash    string
	chunks  []Chunk
	bytes   int    // of the text
	kept    bool   // it has not changed
	unread  string // parts of it that were not read
	passed  bool   // it is not text
	encoded bool   // it may be text in another encoding
	denied  bool   // a rule keeps it from models
	err     error
	broken  error // ends the build

	missing int   // vectors
	loose   []int // chunks that have been embedded, but were not given to the build
}

// reading is behind the hash of a document. Another one has all documents read again, when their text comes out in another way or is
// cut in another way. Chunks that stay the same keep their vectors.
const reading = "-2"

// find sends the documents of the sources, and those whose err says what is wrong with a source.
func (w *work) find(ctx context.Context, list chan<- *document) {
	defer close(list)
	defer w.foundAll.Store(true)
	for doc, err := range w.Source.Documents(ctx, w.set.Documents) {
		if !isNote(err) {
			w.found.Add(1)
		}
		if !w.held.pass(ctx) {
			return
		}
		w.held.add(doc.Held)
		select {
		case list <- &document{Document: doc, err: err, ready: make(chan struct{})}:
		case <-ctx.Done():
			return
		}
	}
}

// dispatch has the readers read documents, unless too much of what they read is still to be looked at.
func (w *work) dispatch(ctx context.Context, list <-chan *document, inOrder, jobs chan<- *document) {
	defer close(jobs)
	defer close(inOrder)
	for d := range list {
		if w.held.sub(d.Held); !w.open.pass(ctx) {
			return
		}
		to := jobs
		if d.err != nil {
			to = nil
			close(d.ready)
		}
		select {
		case inOrder <- d:
		case <-ctx.Done():
			return
		}
		if to == nil {
			continue
		}
		select {
		case to <- d:
		case <-ctx.Done():
			return
		}
	}
}

// read reads and splits a document, unless it has not changed.
func (w *work) read(ctx context.Context, d *document) {
	content, err := d.Read(ctx)
	if err != nil {
		d.fail(err)
		return
	}
	w.mu.Lock()
	file, ok, err := w.build.File(ctx, d.Path)
	w.mu.Unlock()
	if err != nil {
		d.broken = err
		return
	}
	if d.hash = content.Hash + reading; ok && file.Hash == d.hash {
		d.kept = true
		return
	}
	body, err := content.Text(ctx)
	if err != nil {
		d.fail(err)
		return
	}
	for _, p := range split.New(w.set.ChunkSize, w.set.ChunkOverlap, body.Ext).Split(body.Text) {
		c := Chunk{Path: d.Path, Text: p.Text, Heading: p.Heading}
		if body.Lines {
			c.Start, c.End = p.Line, p.LastLine
		}
		d.chunks = append(d.chunks, c)
	}
	d.unread = strings.Join(body.Unread, ", ")
	d.bytes = len(body.Text)
	w.open.add(d.bytes)
}

func (d *document) fail(err error) {
	d.denied, d.encoded = errors.Is(err, source.ErrWithheld), errors.Is(err, source.ErrEncoding)
	if d.passed = errors.Is(err, source.ErrPassedOver); !d.passed {
		d.err = err
	}
}

// size estimates the bytes of the chunks, given the length of vectors.
func (d *document) size(dimensions int) int { return d.bytes + 4*dimensions*len(d.chunks) }

// countDocument counts a document for its source.
func (w *work) countDocument(d *document) {
	from := d.Source
	if e, ok := errors.AsType[*source.Error](d.err); ok {
		from = cmp.Or(e.Source, from)
	}
	c := w.counts[from]
	if c.found++; d.passed {
		c.passed++
		if d.denied {
			c.denied++
		}
	}
	w.counts[from] = c
}

// look takes note of a document that was read.
func (w *work) look(ctx context.Context, d *document) error {
	w.open.sub(d.bytes)
	if isNote(d.err) {
		return w.warnOf(ctx, "", "", d.err)
	}
	w.countDocument(d)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case d.broken != nil:
		return d.broken
	case d.err != nil:
		return w.lose(ctx, d)
	case d.passed:
		if w.report.Passed++; w.report.Passed <= maxPassed {
			w.report.PassedOver = append(w.report.PassedOver, d.Path)
		}
		if d.encoded {
			w.encoded = append(w.encoded, text.Name(d.Path))
		}
		return w.progress(ctx, d.Path, false)
	case d.kept:
		w.report.Kept++
		w.present[d.Path] = d.Source
		return w.progress(ctx, d.Path, false)
	}
	if w.changed.IsZero() {
		w.changed, w.before = w.now(), w.doneCount()
	}
	if d.unread != "" {
		if w.partly++; w.partly <= maxUnread {
			if err := w.warnf(ctx, "%s: not read: %s", text.Name(d.Path), d.unread); err != nil {
				return err
			}
		}
	}
	w.mu.Lock()
	known, err := w.build.Vectors(ctx, d.chunks)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	for i, v := range known {
		if v == nil {
			w.queue = append(w.queue, ref{d, i, chat.EstimateTokens(d.chunks[i].full())})
			d.missing++
			continue
		}
		if err := w.fit(v); err != nil {
			return err
		}
		d.chunks[i].Vector = v
	}
	w.pending = append(w.pending, d)
	w.size += d.size(w.dimensions)
	return nil
}

// lose takes note of a document or source that failed.
func (w *work) lose(ctx context.Context, d *document) error {
	w.report.Failed++
	gone := errors.Is(d.err, fs.ErrNotExist)
	path, from := d.Path, d.Source
	if e, ok := errors.AsType[*source.Error](d.err); ok {
		path, from = cmp.Or(e.Path, path), cmp.Or(e.Source, from)
	}
	if path != "" && !gone {
		w.present[path] = from
	}
	if !gone || !w.deleted(ctx, cmp.Or(path, from)) {
		w.blocked = true
	}
	if d.Path == "" && !gone { // the search failed, at least behind this document
		w.unread[from] = true
	}
	if w.firstErr == nil {
		w.firstErr = d.err
	}
	if w.report.Failed > maxWarned {
		w.unsaid++
		return nil
	}
	return w.warnOf(ctx, path, from, d.err)
}

// deleted reports whether a path that does not exist is that of a file which the index has, in a directory that is still there. What
// is below a directory that is gone may be on a disk that is not mounted.
func (w *work) deleted(ctx context.Context, path string) bool {
	w.mu.Lock()
	_, known, err := w.build.File(ctx, path)
	w.mu.Unlock()
	if err != nil || !known || !filepath.IsAbs(path) {
		return false
	}
	_, err = os.Stat(filepath.Dir(path))
	return err == nil
}

// isNote reports whether err is a note about a source, and nothing failed.
func isNote(err error) bool {
	e, ok := errors.AsType[*source.Error](err)
	return ok && e.Note
}

// warnOf warns of what is wrong with the document at path, or with its source if path is "".
func (w *work) warnOf(ctx context.Context, path, from string, err error) error {
	name, why := cmp.Or(path, from), err.Error()
	if hint := fault.HintOf(err); hint != "" {
		why += "; " + hint
	}
	if strings.Contains(why, name) {
		return w.warnf(ctx, "%s", why)
	}
	if name != from && from != "" {
		name += " (" + from + ")"
	}
	return w.warnf(ctx, "%s: %s", name, why)
}
