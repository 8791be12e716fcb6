package sqlite

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/rag"
	"loki/internal/rag/vector"
	"loki/internal/rank"
)

// index is a file that is read.
type index struct {
	path  string
	db    *sql.DB
	stats rag.Stats

	statements statements

	documents lazy[documents]
	lengths   lazy[lengths]
	vectors   lazy[vector.Index]
	scores    sync.Pool // *[]float64, a number for each chunk, all 0
}

// lazy is a value that is loaded when it is needed first.
type lazy[T any] struct {
	mu    sync.Mutex
	value *T
}

func (l *lazy[T]) get(load func() (*T, error)) (*T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.value == nil {
		v, err := load()
		if err != nil {
			return nil, err
		}
		l.value = v
	}
	return l.value, nil
}

// openIndex opens the file at path, which must not change as long as it is open.
func openIndex(ctx context.Context, path string) (x *index, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe might never end
		return nil, &formatError{irregular: true}
	}
	source, err := dataSource(path, "mode=ro&immutable=1&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if err := verify(ctx, db); err != nil {
		return nil, err
	}
	var size int64
	if err := readRow(ctx, db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &size); err != nil {
		return nil, err
	}
	if info.Size() < size {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", errDamaged, info.Size(), size)
	}
	x = &index{path: path, db: db, statements: statements{on: db}}
	if x.stats, err = readStats(ctx, db); err != nil {
		return nil, err
	}
	x.stats.Bytes = info.Size()
	return x, nil
}

// Quantized opens the file once more, with its vectors in memory as quantization says.
func (x *index) Quantized(ctx context.Context, quantization string) (rag.Index, error) {
	other, err := openIndex(ctx, x.path)
	if err != nil {
		return nil, explain(x.path, err)
	}
	other.stats.Settings.Quantization = quantization
	return other, nil
}

// querier is a database or a connection to it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scan reads a row. A value of another kind than that of dest is damage.
func scan(rows *sql.Rows, dest ...any) error {
	if err := rows.Scan(dest...); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// scanRow reads the first of rows; ok is false if there is none.
func scanRow(rows *sql.Rows, dest ...any) (ok bool, err error) {
	defer rows.Close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := scan(rows, dest...); err != nil {
		return false, err
	}
	return true, rows.Close()
}

// readRow reads a row that has to be there.
func readRow(ctx context.Context, db querier, query string, dest ...any) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	ok, err := scanRow(rows, dest...)
	if err == nil && !ok {
		err = errDamaged
	}
	return err
}

// statements are prepared once for a database or a connection, which takes longer than a search by key.
type statements struct {
	on interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

func (s *statements) get(query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.prepared[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(context.Background(), query)
	if err == nil {
		if s.prepared == nil {
			s.prepared = make(map[string]*sql.Stmt)
		}
		s.prepared[query] = stmt
	}
	return stmt, err
}

// row reads one row; ok is false if there is none.
func (s *statements) row(ctx context.Context, query string, args []any, dest ...any) (ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	stmt, err := s.get(query)
	if err != nil {
		return false, err
	}
	// The query is short, and one that can be canceled takes a goroutine.
	rows, err := stmt.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return false, err
	}
	return scanRow(rows, dest...)
}

func (s *statements) close() (err error) {
	for _, stmt := range s.prepared {
		err = errors.Join(err, stmt.Close())
	}
	return err
}

func readStats(ctx context.Context, db querier) (s rag.Stats, err error) {
	var set string
	var built int64
	err = readRow(ctx, db, "SELECT settings, built, dimensions FROM base", &set, &built, &s.Dimensions)
	if err == nil {
		err = json.Unmarshal([]byte(set), &s.Settings)
	}
	if err == nil {
		err = readRow(ctx, db, "SELECT count(*), coalesce(sum(chunks), 0) FROM files", &s.Files, &s.Chunks)
	}
	if s.Chunks == 0 {
		s.Dimensions = 0
	}
	s.Built = time.UnixMilli(built)
	return s, err
}

func (x *index) Stats(context.Context) (rag.Stats, error) { return x.stats, nil }

// Close releases the file.
func (x *index) Close() error { return errors.Join(x.statements.close(), x.db.Close()) }

func (x *index) Files(ctx context.Context) iter.Seq2[rag.File, error] {
	return func(yield func(rag.File, error) bool) {
		rows, err := x.db.QueryContext(ctx, "SELECT id, path, hash, source, chunks FROM files ORDER BY id")
		if err != nil {
			yield(rag.File{}, explain(x.path, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var f rag.File
			if err := scan(rows, &f.ID, &f.Path, &f.Hash, &f.Source, &f.Chunks); err != nil {
				yield(rag.File{}, explain(x.path, err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(rag.File{}, explain(x.path, err))
		}
	}
}

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

// positions returns the positions of chunks numbered from first, -1 for one that is removed.
func (d *documents) positions(first int64, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = -1
	}
	i, _ := slices.BinarySearchFunc(d.files, first, func(f document, first int64) int {
		if f.first+int64(f.chunks) <= first {
			return -1
		}
		return 1
	})
	for ; i < len(d.files) && d.files[i].first < first+int64(n); i++ {
		f := d.files[i]
		for seq := max(0, first-f.first); seq < min(int64(f.chunks), first+int64(n)-f.first); seq++ {
			list[f.first+seq-first] = int32(f.position + int(seq))
		}
	}
	return list
}

func (x *index) loadDocuments(ctx context.Context) (*documents, error) {
	return x.documents.get(func() (*documents, error) { return loadDocuments(ctx, x.db) })
}

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
	if x.stats.Settings.Quantization == rag.Int8 {
		for i, m := range found {
			exact, err := x.vector(ctx, d.at(m.Pos))
			if err != nil {
				return nil, err
			}
			found[i].Score = vector.Dot(exact, v)
		}
		found = slices.DeleteFunc(found, func(m vector.Match) bool { return !(m.Score > 0) })
		slices.SortFunc(found, vector.Compare)
		found = found[:min(k, len(found))]
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
	var v *vector.Index
	if x.stats.Settings.Quantization == rag.Int8 {
		v = vector.NewInt8(dims, d.total)
	} else {
		v = vector.New(dims, d.total)
	}
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

// Chunks returns the chunks that exist.
func (x *index) Chunks(ctx context.Context, ids []rag.ID, vectors bool) ([]rag.Chunk, error) {
	list := make([]rag.Chunk, 0, len(ids))
	for _, id := range ids {
		c := rag.Chunk{ID: id}
		var packed []byte
		ok, err := x.statements.row(ctx, `SELECT path, heading, start, finish, text FROM files JOIN chunks ON number = first + ?1
			WHERE id = ?2 AND ?1 >= 0 AND ?1 < files.chunks`, []any{id.Seq, id.File}, &c.Path, &c.Heading, &c.Start, &c.End, &packed)
		if err == nil && !ok {
			continue
		}
		if err == nil {
			c.Text, err = unpack(packed)
		}
		if err == nil && vectors && x.stats.Dimensions > 0 {
			c.Vector, err = x.vector(ctx, id)
		}
		if err != nil {
			return nil, explain(x.path, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// The first byte of a packed text.
const (
	plain = iota
	deflated
)

// packer packs texts. It belongs to one goroutine.
type packer struct {
	buf bytes.Buffer
	w   *flate.Writer
}

// pack returns text in fewer bytes, which are valid until the next call.
func (p *packer) pack(text string) []byte {
	p.buf.Reset()
	p.buf.WriteByte(deflated)
	if p.w == nil {
		p.w, _ = flate.NewWriter(&p.buf, flate.BestSpeed) // the level is valid
	} else {
		p.w.Reset(&p.buf)
	}
	_, _ = io.WriteString(p.w, text) // a bytes.Buffer takes everything
	_ = p.w.Close()
	if p.buf.Len() > len(text) {
		p.buf.Reset()
		p.buf.WriteByte(plain)
		p.buf.WriteString(text)
	}
	return p.buf.Bytes()
}

// maxText bounds what a damaged text can unpack to.
const maxText = 256 << 20

func unpack(data []byte) (string, error) {
	switch {
	case len(data) > 0 && data[0] == plain:
		return string(data[1:]), nil
	case len(data) > 0 && data[0] == deflated:
		var text strings.Builder
		n, err := io.Copy(&text, io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxText))
		if err == nil && n < maxText {
			return text.String(), nil
		}
		return "", fmt.Errorf("%w: a text: %w", errDamaged, cmp.Or(err, io.ErrShortBuffer))
	}
	return "", errDamaged
}
