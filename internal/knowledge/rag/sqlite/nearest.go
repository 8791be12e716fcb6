package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"sync"

	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/vector"
)

// Nearest returns the chunks whose vectors are the nearest to v.
func (x *index) Nearest(ctx context.Context, v []float32, k int) ([]rag.Match, error) {
	found, err := x.nearest(ctx, v, k)
	return found, explain(x.path, err)
}

func (x *index) nearest(ctx context.Context, v []float32, k int) ([]rag.Match, error) {
	if k <= 0 || x.stats.Dimensions == 0 {
		return nil, ctx.Err()
	}
	d, err := x.loadDocuments(ctx)
	if err != nil {
		return nil, err
	}
	vectors, err := x.vectors.get(func() (*vector.Index, error) { return x.loadVectors(ctx, d) })
	if err != nil {
		return nil, err
	}
	found, err := vectors.Search(ctx, v, k)
	if err != nil {
		return nil, err
	}
	matches := make([]rag.Match, len(found))
	for i, m := range found {
		matches[i] = rag.Match{ID: d.at(m.Pos), Score: float64(m.Score)}
	}
	return matches, nil
}

// loadVectors reads all vectors, on all processors: most of the time is spent on copying them.
func (x *index) loadVectors(ctx context.Context, d *documents) (*vector.Index, error) {
	dims := x.stats.Dimensions
	v := vector.New(dims, d.total)
	groups := d.groups(max(1, vectorBytes/(4*dims)))
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	type part struct {
		rows *[]float32
		err  error
	}
	spare := sync.Pool{New: func() any { return new([]float32) }}
	parts := make([]chan part, min(runtime.GOMAXPROCS(0), len(groups)))
	for i := range parts {
		parts[i] = make(chan part)
		wg.Go(func() { // ends with the groups, or with ctx
			for g := i; g < len(groups); g += len(parts) {
				p := part{rows: spare.Get().(*[]float32)}
				*p.rows, p.err = x.readVectors(ctx, groups[g], (*p.rows)[:0])
				select {
				case parts[i] <- p:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for g := range groups {
		var p part
		select {
		case p = <-parts[g%len(parts)]:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if p.err != nil {
			return nil, p.err
		}
		// The driver copies each row. The collector by itself would come when the copies are as
		// many bytes as the vectors.
		if g%collectEvery == collectEvery-1 {
			runtime.GC()
		}
		for one := range slices.Chunk(*p.rows, dims) {
			if err := v.Add(one); err != nil {
				return nil, err
			}
		}
		spare.Put(p.rows)
	}
	return v, nil
}

const (
	vectorBytes  = 2 << 20 // about how many bytes of vectors are read at once
	collectEvery = 4       // groups of that size
)

// readVectors appends the vectors of files that follow each other to list.
func (x *index) readVectors(ctx context.Context, files []document, list []float32) ([]float32, error) {
	last := files[len(files)-1]
	rows, err := x.db.QueryContext(ctx, "SELECT number, data FROM vectors WHERE number >= ? AND number < ? ORDER BY number", files[0].first, last.first+int64(last.chunks))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for _, f := range files {
		for seq := 0; seq < f.chunks; seq += vectorRow {
			var number int64
			var data sql.RawBytes
			if !rows.Next() {
				return nil, cmp.Or(rows.Err(), errDamaged)
			}
			if err := scan(rows, &number, &data); err != nil {
				return nil, err
			}
			n := min(vectorRow, f.chunks-seq) * x.stats.Dimensions
			if number != f.first+int64(seq) || len(data) != 4*n {
				return nil, errDamaged
			}
			from := len(list)
			list = slices.Grow(list, n)[:from+n]
			decodeVector(list[from:], data)
		}
	}
	return list, rows.Err()
}

func decodeVector(to []float32, data []byte) {
	for i := range to {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
}

func appendVector(data []byte, v []float32) []byte {
	for _, f := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return data
}

// vector reads the vector of a chunk that exists.
func (x *index) vector(ctx context.Context, id rag.ID) ([]float32, error) {
	var data []byte
	dims := x.stats.Dimensions
	_, err := x.statements.row(ctx, "SELECT substr(data, ?, ?) FROM vectors WHERE number = (SELECT first FROM files WHERE id = ?) + ?",
		[]any{4*dims*(id.Seq%vectorRow) + 1, 4 * dims, id.File, id.Seq - id.Seq%vectorRow}, &data)
	if err == nil && len(data) != 4*dims {
		err = errDamaged
	}
	if err != nil {
		return nil, err
	}
	v := make([]float32, dims)
	decodeVector(v, data)
	return v, nil
}
