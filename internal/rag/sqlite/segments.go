package sqlite

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
)

// writeWords turns the words in memory into a segment.
func (b *build) writeWords() error {
	w := &b.words
	if len(w.lengths) == 0 {
		return nil
	}
	d, err := loadDocuments(context.Background(), b.c.c)
	if err != nil {
		return err
	}
	s, err := b.newSegment(w.first, w.lengths, d)
	if err != nil {
		return err
	}
	for _, token := range slices.Sorted(maps.Keys(w.postings)) {
		p := w.postings[token]
		p.flush()
		if err := s.add([]byte(token), p.data); err != nil {
			return err
		}
	}
	w.reset(b.nextChunk)
	return s.flush()
}

// segmentWriter writes the blocks of a segment.
type segmentWriter struct {
	c           *conn
	id          int64
	first, last []byte // tokens in block
	block       []byte
}

func (b *build) newSegment(first int64, lengths []int, d *documents) (*segmentWriter, error) {
	chunks := 0
	for _, p := range d.positions(first, len(lengths)) {
		if p >= 0 {
			chunks++
		}
	}
	s := &segmentWriter{c: b.c}
	if _, err := b.c.row(context.Background(), "SELECT coalesce(max(id), 0) + 1 FROM segments", nil, &s.id); err != nil {
		return nil, err
	}
	return s, b.c.exec("INSERT INTO segments VALUES (?, ?, ?, ?)", s.id, first, chunks, encodeLengths(lengths))
}

func (s *segmentWriter) add(token, list []byte) error {
	if len(s.block) > 0 && len(s.block)+len(token)+len(list) > blockSize {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(s.block) == 0 {
		s.first, s.last = append(s.first[:0], token...), s.last[:0]
	}
	s.block = appendList(s.block, s.last, token, list)
	s.last = append(s.last[:0], token...)
	return nil
}

func (s *segmentWriter) flush() error {
	if len(s.block) == 0 {
		return nil
	}
	err := s.c.exec("INSERT INTO words VALUES (?, ?, ?)", s.id, s.first, s.block)
	s.block = s.block[:0]
	return err
}

// merge merges the newest segments as long as the one before them is not much larger, so that their
// number grows with the logarithm of that of chunks. If a quarter of the chunks are removed ones, it
// merges all.
func (b *build) merge(ctx context.Context) error {
	d, err := loadDocuments(ctx, b.c.c)
	if err != nil {
		return err
	}
	segments, err := loadSegments(ctx, b.c.c, d)
	if err != nil || len(segments) == 0 {
		return err
	}
	written := 0
	for _, s := range segments {
		written += s.chunks
	}
	from := len(segments) - 1
	if 4*(written-d.total) > written {
		from = 0
	} else {
		for sum := segments[from].chunks; from > 0 && segments[from-1].chunks < 4*sum; from-- {
			sum += segments[from-1].chunks
		}
		if from == len(segments)-1 {
			return nil
		}
	}
	return b.mergeAll(ctx, segments[from:], d)
}

// mergeAll writes segments as one, without what is removed.
func (b *build) mergeAll(ctx context.Context, segments []segment, d *documents) error {
	first := segments[0].first
	var lengths []int
	var readers []*segmentReader
	for _, s := range segments {
		lengths = append(lengths, make([]int, s.first-first-int64(len(lengths)))...)
		for i, n := range s.lengths {
			if s.positions[i] < 0 {
				n = 0
			}
			lengths = append(lengths, n)
		}
		r := &segmentReader{c: b.c, segment: s, offset: int(s.first - first)}
		if err := r.next(); err != nil {
			return err
		}
		readers = append(readers, r)
	}
	w, err := b.newSegment(first, lengths, d)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var token []byte
		for _, r := range readers {
			if !r.done && (token == nil || bytes.Compare(r.token, token) < 0) {
				token = r.token
			}
		}
		if token == nil {
			break
		}
		token = bytes.Clone(token)
		var merged posting
		for _, r := range readers {
			if r.done || !bytes.Equal(r.token, token) {
				continue
			}
			if err := r.copyTo(&merged); err != nil {
				return err
			}
			if err := r.next(); err != nil {
				return err
			}
		}
		if merged.flush(); len(merged.data) > 0 {
			if err := w.add(token, merged.data); err != nil {
				return err
			}
		}
	}
	for _, s := range segments {
		if err := errors.Join(b.c.exec("DELETE FROM words WHERE segment = ?", s.id), b.c.exec("DELETE FROM segments WHERE id = ?", s.id)); err != nil {
			return err
		}
	}
	return w.flush()
}

// segmentReader reads the lists of a segment, ascending by token.
type segmentReader struct {
	c       *conn
	segment segment
	offset  int // of its documents in the merged segment

	started bool
	first   []byte // token of the block
	block   []byte // what is left of it
	token   []byte
	list    []byte
	done    bool
}

func (r *segmentReader) next() (err error) {
	if len(r.block) == 0 {
		query, args := "SELECT token, block FROM words WHERE segment = ? ORDER BY token LIMIT 1", []any{r.segment.id}
		if r.started {
			query, args = "SELECT token, block FROM words WHERE segment = ? AND token > ? ORDER BY token LIMIT 1", []any{r.segment.id, r.first}
		}
		ok, err := r.c.row(context.Background(), query, args, &r.first, &r.block)
		if err != nil || !ok {
			r.done = true
			return err
		}
		r.started, r.token = true, r.token[:0]
	}
	r.token, r.list, r.block, err = cutList(r.block, r.token)
	return err
}

// copyTo adds the current list to p, without removed chunks.
func (r *segmentReader) copyTo(p *posting) error {
	return decodePostings(r.list, len(r.segment.positions), func(doc, times int) {
		if r.segment.positions[doc] >= 0 {
			p.add(r.offset + doc)
			p.times = min(times, math.MaxInt32)
		}
	})
}
