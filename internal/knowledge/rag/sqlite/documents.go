package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"

	"loki/internal/knowledge/rag"
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

func loadDocuments(ctx context.Context, db querier) (*documents, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, first, chunks FROM files ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	d := new(documents)
	next := int64(0)
	for rows.Next() {
		f := document{position: d.total}
		if err := scan(rows, &f.id, &f.first, &f.chunks); err != nil {
			return nil, err
		}
		if f.first < next || f.chunks < 0 || f.chunks > math.MaxInt32 {
			return nil, errDamaged
		}
		next = f.first + int64(f.chunks)
		d.total += f.chunks
		d.files = append(d.files, f)
	}
	return d, rows.Err()
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

func (x *index) loadDocuments(ctx context.Context) (*documents, error) {
	return x.documents.get(func() (*documents, error) { return loadDocuments(ctx, x.db) })
}

// groups cuts the list of files into groups of n chunks or a few more.
func (d *documents) groups(n int) (groups [][]document) {
	from, chunks := 0, 0
	for i, f := range d.files {
		if chunks += f.chunks; chunks >= n || i == len(d.files)-1 {
			groups = append(groups, d.files[from:i+1])
			from, chunks = i+1, 0
		}
	}
	return groups
}

// best returns the k chunks with the highest scores above 0, best first, equal ones by id.
func (d *documents) best(scores []float64, k int) []rag.Match {
	type scored struct {
		position int
		score    float64
	}
	var list []scored
	k = min(k, len(scores))
	cut := func() {
		slices.SortFunc(list, func(a, b scored) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.position, b.position))
		})
		list = list[:min(k, len(list))]
	}
	least := 0.0 // positions ascend, so that a later one has to have a higher score
	for position, score := range scores {
		if score <= least {
			continue
		}
		if list = append(list, scored{position, score}); len(list) >= 2*k {
			cut()
			least = list[k-1].score
		}
	}
	cut()
	matches := make([]rag.Match, len(list))
	for i, s := range list {
		matches[i] = rag.Match{ID: d.at(s.position), Score: s.score}
	}
	return matches
}
