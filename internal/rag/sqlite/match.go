package sqlite

import (
	"context"
	"database/sql"

	"loki/internal/rag"
	"loki/internal/rank"
)

// lengths are the lengths of chunks in tokens, by position, and the segments with their chunks.
type lengths struct {
	chunks   []int
	average  float64
	segments []segment // ascending by first
}

type segment struct {
	id        int64
	first     int64
	chunks    int // that were not removed when it was written
	lengths   []int
	positions []int32 // of its chunks, -1 for one that is removed
}

func loadSegments(ctx context.Context, db querier, d *documents) (list []segment, err error) {
	rows, err := db.QueryContext(ctx, "SELECT id, first, chunks, lengths FROM segments ORDER BY first")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	next := int64(0)
	for rows.Next() {
		var s segment
		var data sql.RawBytes
		if err := scan(rows, &s.id, &s.first, &s.chunks, &data); err != nil {
			return nil, err
		}
		if s.lengths, err = decodeLengths(data); err != nil {
			return nil, err
		}
		if s.first < next {
			return nil, errDamaged
		}
		next = s.first + int64(len(s.lengths))
		s.positions = d.positions(s.first, len(s.lengths))
		list = append(list, s)
	}
	return list, rows.Err()
}

func (x *index) loadLengths(ctx context.Context, d *documents) (*lengths, error) {
	segments, err := loadSegments(ctx, x.db, d)
	if err != nil {
		return nil, err
	}
	l := &lengths{chunks: make([]int, d.total), segments: segments}
	sum := 0
	for i, s := range segments {
		for j, p := range s.positions {
			if p >= 0 {
				l.chunks[p] = s.lengths[j]
				sum += s.lengths[j]
			}
		}
		segments[i].lengths = nil
	}
	l.average = float64(max(sum, 1)) / float64(max(d.total, 1))
	return l, nil
}

// Match returns the chunks that match the words of query best.
func (x *index) Match(ctx context.Context, query string, k int) ([]rag.Match, error) {
	found, err := x.match(ctx, query, k)
	return found, explain(x.path, err)
}

// hit says how often a token is in a chunk.
type hit struct{ position, times int32 }

func (x *index) match(ctx context.Context, query string, k int) ([]rag.Match, error) {
	var tokens []string
	weight := make(map[string]float64)
	for _, t := range rank.Tokens(query) {
		if weight[t]++; weight[t] == 1 {
			tokens = append(tokens, t)
		}
	}
	if k <= 0 || len(tokens) == 0 {
		return nil, ctx.Err()
	}
	d, err := x.loadDocuments(ctx)
	if err != nil {
		return nil, err
	}
	l, err := x.lengths.get(func() (*lengths, error) { return x.loadLengths(ctx, d) })
	if err != nil {
		return nil, err
	}
	scores, _ := x.scores.Get().(*[]float64)
	if scores == nil {
		scores = new(make([]float64, d.total))
	}
	defer func() {
		clear(*scores)
		x.scores.Put(scores)
	}()
	var hits []hit
	for _, t := range tokens {
		if hits, err = x.hits(ctx, hits[:0], l.segments, t); err != nil {
			return nil, err
		}
		idf := weight[t] * rank.IDF(float64(d.total), float64(len(hits)))
		for _, h := range hits {
			(*scores)[h.position] += rank.Score(idf, float64(h.times), rank.K1, float64(l.chunks[h.position])/l.average)
		}
	}
	return d.best(*scores, k), ctx.Err()
}

// hits appends the chunks with a token to list.
func (x *index) hits(ctx context.Context, list []hit, segments []segment, token string) ([]hit, error) {
	for _, s := range segments {
		var block []byte
		_, err := x.statements.row(ctx, "SELECT block FROM words WHERE segment = ? AND token <= ? ORDER BY token DESC LIMIT 1", []any{s.id, []byte(token)}, &block)
		if err != nil {
			return nil, err
		}
		postings, err := findList(block, []byte(token))
		if err != nil {
			return nil, err
		}
		err = decodePostings(postings, len(s.positions), func(doc, times int) {
			if p := s.positions[doc]; p >= 0 {
				list = append(list, hit{p, int32(times)})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
