package sqlite

import (
	"context"
	"math"
	"slices"

	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/vector"
)

// documents say which chunks exist. The position of a chunk is its place among them, from 0.
type documents struct {
	files []document // ascending by first and by id
	total int        // chunks
}

type document struct {
	id       int64
	first    int64 // number of the first chunk
	position int   // of the first chunk
	chunks   int
}

func (x *index) loadDocuments(ctx context.Context) (*documents, error) {
	return x.documents.get(func() (*documents, error) {
		var d documents
		var f document
		next := int64(0)
		err := eachRow(ctx, x.db, func() error {
			if f.first < next || f.chunks < 0 || f.chunks > math.MaxInt32 {
				return errDamaged
			}
			f.position, next = d.total, f.first+int64(f.chunks)
			d.total += f.chunks
			d.files = append(d.files, f)
			return nil
		}, "SELECT id, first, chunks FROM files ORDER BY id", nil, &f.id, &f.first, &f.chunks)
		return &d, err
	})
}

// at returns the id of the chunk at a position.
func (d *documents) at(position int) rag.ID {
	i, _ := slices.BinarySearchFunc(d.files, position, func(f document, p int) int {
		if f.position+f.chunks <= p {
			return -1
		}
		return 1
	})
	return rag.ID{File: d.files[i].id, Seq: position - d.files[i].position}
}

// matches returns the chunks at the positions that were found.
func (d *documents) matches(found []vector.Match) []rag.Match {
	list := make([]rag.Match, len(found))
	for i, m := range found {
		list[i] = rag.Match{ID: d.at(m.Pos), Score: m.Score}
	}
	return list
}
