package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"loki/internal/base/fault"
	"loki/internal/base/text/rank"
	"loki/internal/knowledge/rag"
	database "loki/internal/service/postgres"
)

// index is a generation in use. Each of its connections holds the lock of its readers.
type index struct {
	store              *Store
	pool               *pgxpool.Pool
	generation, series int64
	stats              rag.Stats
	average            float64 // tokens in a chunk
}

// errGone is what a reader gets whose generation was removed before it had the lock.
var errGone = errors.New("the index is no longer in use")

// Open implements [rag.Store].
func (s *Store) Open(ctx context.Context) (rag.Index, error) {
	for {
		x, err := s.open(ctx)
		if !errors.Is(err, errGone) {
			return x, err
		}
	}
}

func (s *Store) open(ctx context.Context) (rag.Index, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	x := &index{store: s}
	var tokens int64
	var v int
	err = conn.QueryRow(ctx, `SELECT b.version, g.id, g.series, g.tokens, g.settings, g.dimensions, g.files, g.chunks, g.built FROM bases b JOIN generations g ON g.id = b.current WHERE b.name = $1`, s.name).
		Scan(&v, &x.generation, &x.series, &tokens, &x.stats.Settings, &x.stats.Dimensions, &x.stats.Files, &x.stats.Chunks, &x.stats.Built)
	hangUp(conn)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("knowledge base %s: %w", s.name, fs.ErrNotExist)
	case err != nil:
		return nil, s.explain(err)
	}
	if err := checkVersion(v); err != nil {
		return nil, err
	}
	x.average = float64(max(tokens, 1)) / float64(max(x.stats.Chunks, 1))
	config := s.config.Copy()
	config.AfterConnect = x.hold
	if x.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.explain(err)
	}
	if err := x.pool.Ping(ctx); err != nil {
		x.pool.Close()
		if errors.Is(err, errGone) {
			return nil, errGone
		}
		return nil, s.explain(err)
	}
	return x, nil
}

// hold makes conn keep the generation from being removed.
func (x *index) hold(ctx context.Context, conn *pgx.Conn) error {
	if err := x.store.choose(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1)`, x.store.generationOf(x.generation)); err != nil {
		return err
	}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM generations WHERE id = $1)`, x.generation).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return errGone
	}
	return nil
}

// Close implements [rag.Index].
func (x *index) Close() error {
	x.pool.Close()
	return nil
}

// explain adds to err what it is about.
func (x *index) explain(err error) error {
	if errors.Is(err, errGone) {
		return fault.New(fault.Failure, "the index of the knowledge base %s was replaced while the database was out of reach", x.store.name).WithHint("try again")
	}
	return x.store.explain(err)
}

// visible is the condition for a file f of generation $2 in the series $1.
const visible = `f.series = $1 AND f.born <= $2 AND (f.died IS NULL OR f.died > $2)`

// Stats implements [rag.Index].
func (x *index) Stats(context.Context) (rag.Stats, error) { return x.stats, nil }

// Files implements [rag.Index].
func (x *index) Files(ctx context.Context) iter.Seq2[rag.File, error] {
	return func(yield func(rag.File, error) bool) {
		files, err := collect(ctx, x.pool, scanFile, `SELECT id, path, hash, source, chunks FROM files f WHERE `+visible+` ORDER BY id`, x.series, x.generation)
		if err != nil {
			yield(rag.File{}, x.explain(err))
		}
		for _, f := range files {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func scanFile(row pgx.CollectableRow) (f rag.File, err error) {
	err = row.Scan(&f.ID, &f.Path, &f.Hash, &f.Source, &f.Chunks)
	f.Path, f.Source = database.Original(f.Path), database.Original(f.Source)
	return f, err
}

// Nearest implements [rag.Index]. It compares v with all vectors. The limit comes before the sign, so
// that no vector of another series is ever compared: it may have other dimensions.
func (x *index) Nearest(ctx context.Context, v []float32, k int) ([]rag.Match, error) {
	if x.stats.Dimensions == 0 {
		return nil, ctx.Err()
	}
	if len(v) != x.stats.Dimensions {
		return nil, fmt.Errorf("the query has %d dimensions, the vectors have %d", len(v), x.stats.Dimensions)
	}
	return x.matches(ctx, `SELECT file, seq, score FROM (
			SELECT c.file, c.seq, -(c.vector <#> $4::real[]::vector) AS score
			FROM files f JOIN chunks c ON c.series = f.series AND c.file = f.id
			WHERE `+visible+` ORDER BY score DESC, c.file, c.seq LIMIT $3
		) AS nearest WHERE score > 0`, k, v)
}

// Match implements [rag.Index]. Scores are rounded, so that those of equal chunks are equal in whichever
// order their terms are added.
func (x *index) Match(ctx context.Context, query string, k int) ([]rag.Match, error) {
	counts := count(rank.Tokens(query))
	tokens, weights := make([]string, 0, len(counts)), make([]float64, 0, len(counts))
	for token, n := range counts {
		tokens, weights = append(tokens, token), append(weights, float64(n))
	}
	return x.matches(ctx, `SELECT file, seq, score FROM (
			SELECT file, seq, (sum(weight * ln(1 + ($6 - n + 0.5) / (n + 0.5)) * frequency * ($8::float8 + 1)
				/ (frequency + $8 * (1 - $9::float8 + $9 * length / $7::float8))))::real AS score
			FROM (
				SELECT h.file, h.seq, h.frequency::float8, h.length::float8, q.weight, (count(*) OVER (PARTITION BY q.token))::float8 AS n
				FROM unnest($4::text[], $5::float8[]) AS q (token, weight)
				JOIN postings p ON p.series = $1 AND p.token = q.token
				CROSS JOIN unnest(p.files, p.seqs, p.frequencies, p.lengths) AS h (file, seq, frequency, length)
				JOIN files f ON f.id = h.file AND `+visible+`
			) AS hits GROUP BY file, seq
		) AS scores ORDER BY score DESC, file, seq LIMIT $3`, k, tokens, weights, float64(x.stats.Chunks), x.average, rank.K1, rank.B)
}

// matches returns the ones that query selects, with the parameters series, generation, k and args.
func (x *index) matches(ctx context.Context, query string, k int, args ...any) ([]rag.Match, error) {
	found, err := collect(ctx, x.pool, func(row pgx.CollectableRow) (m rag.Match, err error) {
		err = row.Scan(&m.ID.File, &m.ID.Seq, &m.Score)
		return m, err
	}, query, append([]any{x.series, x.generation, max(k, 0)}, args...)...)
	return found, x.explain(err)
}

// Chunks implements [rag.Index].
func (x *index) Chunks(ctx context.Context, ids []rag.ID, vectors bool) ([]rag.Chunk, error) {
	files, seqs := make([]int64, len(ids)), make([]int32, len(ids))
	for i, id := range ids {
		files[i], seqs[i] = id.File, int32(id.Seq)
	}
	chunks, err := collect(ctx, x.pool, scanChunk, `SELECT c.file, c.seq, f.path, c.heading, c.text, c.first_line, c.last_line, CASE WHEN $5 THEN c.vector::real[] END
		FROM unnest($3::bigint[], $4::integer[]) WITH ORDINALITY AS q (file, seq, n)
		JOIN chunks c ON c.series = $1 AND c.file = q.file AND c.seq = q.seq
		JOIN files f ON f.id = c.file AND `+visible+` ORDER BY q.n`, x.series, x.generation, files, seqs, vectors)
	return chunks, x.explain(err)
}

func scanChunk(row pgx.CollectableRow) (c rag.Chunk, err error) {
	err = row.Scan(&c.ID.File, &c.ID.Seq, &c.Path, &c.Heading, &c.Text, &c.Start, &c.End, &c.Vector)
	c.Path, c.Heading, c.Text = database.Original(c.Path), database.Original(c.Heading), database.Original(c.Text)
	return c, err
}
