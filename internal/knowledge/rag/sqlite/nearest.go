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
	return d.matches(found), nil
}

// loadVectors reads all vectors, on all processors: most of the time is spent on copying them.
func (x *index) loadVectors(ctx context.Context, d *documents) (*vector.Index, error) {
	v := vector.New(x.stats.Dimensions, d.total)
	parts := slices.Collect(slices.Chunk(d.files, len(d.files)/runtime.GOMAXPROCS(0)+1))
	errs := make([]error, len(parts))
	var readers sync.WaitGroup
	for i, files := range parts {
		last := files[len(files)-1]
		room := v.Room(last.position + last.chunks - files[0].position)
		readers.Go(func() { errs[i] = x.readVectors(ctx, files, room) })
	}
	readers.Wait()
	return v, cmp.Or(errs...)
}

// readVectors reads the vectors of files that follow each other, which fill to.
func (x *index) readVectors(ctx context.Context, files []document, to []float32) error {
	first, last := files[0], files[len(files)-1]
	seq, copied := 0, 0
	var number int64
	var data sql.RawBytes
	err := eachRow(ctx, x.db, func() error {
		for len(files) > 0 && seq >= files[0].chunks {
			files, seq = files[1:], 0
		}
		if len(files) == 0 {
			return errDamaged
		}
		n := min(vectorRow, files[0].chunks-seq) * x.stats.Dimensions
		if number != files[0].first+int64(seq) || len(data) != 4*n {
			return errDamaged
		}
		decodeVector(to[:n], data)
		to, seq = to[n:], seq+vectorRow
		// The driver copies each row. The collector by itself would come when the copies are as
		// many bytes as the vectors.
		if copied += len(data); copied >= collectEvery {
			runtime.GC()
			copied = 0
		}
		return nil
	}, "SELECT number, data FROM vectors WHERE number >= ? AND number < ? ORDER BY number",
		[]any{first.first, last.first + int64(last.chunks)}, &number, &data)
	if err == nil && len(to) > 0 {
		err = errDamaged
	}
	return err
}

const collectEvery = 8 << 20 // bytes of vectors

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
