package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/text/rank"
	"loki/internal/knowledge/rag"
	database "loki/internal/service/postgres"
)

// build is a generation that is being made. Its statements are short and run to their end even if
// the context is canceled: a connection whose statement was canceled is lost, and with it what is
// left to flush.
type build struct {
	store      *Store
	conn       *pgx.Conn
	base       base
	generation int64
	series     int64
	dimensions int
	settings   rag.Settings
	resumed    bool
	committed  bool
	tokens     rank.Tokenizer

	// What the next Flush writes.
	files      []file
	remembered map[string][]float32 // vectors by digest
	size       int                  // chunks in files and remembered

	small int  // chunks in small segments since the last merge
	wrote bool // files
}

// file is a document that Put was given.
type file struct {
	rag.File
	chunks []rag.Chunk
}

// full is how many chunks Put and Remember keep before they flush: a few MB. A segment with less than
// half of it is small.
const full = 1000

// fewSegments is how many small segments stay as they are, so that a build that changes little writes
// little.
const fewSegments = 8

// patience is how long one statement may take.
const patience = 2 * time.Minute

// Build implements [rag.Store].
func (s *Store) Build(ctx context.Context, set rag.Settings) (rag.Build, error) {
	conn, b, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	w := &build{store: s, conn: conn, base: b, settings: set}
	if err := w.begin(ctx); err != nil {
		s.unlock(conn)
		return nil, s.explain(err)
	}
	return w, nil
}

// begin finds the generation of an interrupted build, or makes one.
func (w *build) begin(ctx context.Context) error {
	return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		var was rag.Settings
		err := tx.QueryRow(ctx, `SELECT id, series, dimensions, settings FROM generations WHERE base = $1 AND built IS NULL`, w.base.id).
			Scan(&w.generation, &w.series, &w.dimensions, &was)
		switch {
		case err == nil && was.SameChunks(w.settings):
			return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM files WHERE series = $1 AND (born = $2 OR died = $2))
				OR EXISTS (SELECT FROM remembered WHERE generation = $2)`, w.series, w.generation).Scan(&w.resumed)
		case err == nil:
			if err := discard(ctx, tx, w.series, w.generation); err != nil {
				return err
			}
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		w.series, w.dimensions = 0, 0
		err = tx.QueryRow(ctx, `SELECT series, dimensions, settings FROM generations WHERE id = $1`, w.base.current).Scan(&w.series, &w.dimensions, &was)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err == nil && !was.SameChunks(w.settings) {
			w.series, w.dimensions = 0, 0
		}
		err = tx.QueryRow(ctx, `INSERT INTO generations (base, series, dimensions, settings) VALUES ($1, $2, $3, $4) RETURNING id`,
			w.base.id, w.series, w.dimensions, encode(w.settings)).Scan(&w.generation)
		if err != nil || w.series != 0 {
			return err
		}
		w.series = w.generation
		return run(ctx, tx, []any{w.generation}, `UPDATE generations SET series = id WHERE id = $1`)
	})
}

// discard removes a generation that was not committed.
func discard(ctx context.Context, tx pgx.Tx, series, generation int64) error {
	if err := remove(ctx, tx, series, `born = $2`, generation); err != nil {
		return err
	}
	if err := run(ctx, tx, []any{series, generation}, `UPDATE files SET died = NULL WHERE series = $1 AND died = $2`); err != nil {
		return err
	}
	return run(ctx, tx, []any{generation}, `DELETE FROM remembered WHERE generation = $1`, `DELETE FROM generations WHERE id = $1`)
}

// remove removes the files of a series that meet a condition on args, from $2.
func remove(ctx context.Context, tx pgx.Tx, series int64, condition string, args ...any) error {
	rows, err := tx.Query(ctx, `DELETE FROM files WHERE series = $1 AND `+condition+` RETURNING id, segment`, append([]any{series}, args...)...)
	if err != nil {
		return err
	}
	var files, segments []int64
	var id, segment int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &segment}, func() error {
		files, segments = append(files, id), append(segments, segment)
		return nil
	}); err != nil || len(files) == 0 {
		return err
	}
	if err := run(ctx, tx, []any{series, files}, `DELETE FROM chunks WHERE series = $1 AND file = ANY($2::bigint[])`); err != nil {
		return err
	}
	if err := run(ctx, tx, []any{series, segments}, `DELETE FROM postings p WHERE series = $1 AND segment = ANY($2::bigint[])
		AND NOT EXISTS (SELECT FROM files f WHERE f.series = p.series AND f.segment = p.segment)`); err != nil {
		return err
	}
	return run(ctx, tx, []any{series, segments, files},
		`DELETE FROM postings WHERE series = $1 AND segment = ANY($2::bigint[]) AND files <@ $3::bigint[]`,
		`UPDATE postings p SET (files, seqs, frequencies, lengths) = (
			SELECT array_agg(file), array_agg(seq), array_agg(frequency), array_agg(length)
			FROM unnest(p.files, p.seqs, p.frequencies, p.lengths) AS h (file, seq, frequency, length) WHERE file <> ALL($3::bigint[])
		) WHERE series = $1 AND segment = ANY($2::bigint[]) AND files && $3::bigint[]`)
}

// alive returns a context for a statement that is not to be canceled, if ctx is not canceled yet.
func alive(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	return ctx, cancel, nil
}

// Resumed implements [rag.Build].
func (w *build) Resumed() bool { return w.resumed }

// File implements [rag.Build].
func (w *build) File(ctx context.Context, path string) (rag.File, bool, error) {
	if i := w.fileIndex(path); i >= 0 {
		return w.files[i].File, true, nil
	}
	ctx, cancel, err := alive(ctx)
	if err != nil {
		return rag.File{}, false, err
	}
	defer cancel()
	found, err := collect(ctx, w.conn, scanFile, `SELECT id, path, hash, source, chunks FROM files WHERE series = $1 AND path = $2 AND died IS NULL`, w.series, database.Text(path))
	if err != nil || len(found) == 0 {
		return rag.File{}, false, w.store.explain(err)
	}
	return found[0], true, nil
}

// digest names a chunk by its heading and text.
func digest(c rag.Chunk) []byte {
	sum := sha256.Sum256([]byte(c.Heading + "\x00" + c.Text))
	return sum[:16]
}

// Vectors implements [rag.Build].
func (w *build) Vectors(ctx context.Context, chunks []rag.Chunk) ([][]float32, error) {
	known := make(map[string][]float32)
	maps.Copy(known, w.remembered)
	for _, f := range w.files {
		for _, c := range f.chunks {
			known[string(digest(c))] = c.Vector
		}
	}
	vectors, digests := make([][]float32, len(chunks)), make([][]byte, len(chunks))
	for i, c := range chunks {
		digests[i] = digest(c)
	}
	ctx, cancel, err := alive(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	rows, err := w.conn.Query(ctx, `SELECT DISTINCT ON (digest) digest, vector::real[] FROM (
			SELECT digest, vector FROM chunks WHERE series = $1 AND digest = ANY($2::bytea[])
			UNION ALL SELECT digest, vector FROM remembered WHERE generation = $3 AND digest = ANY($2::bytea[])
		) AS known`, w.series, digests, w.generation)
	if err != nil {
		return nil, w.store.explain(err)
	}
	var sum []byte
	var v []float32
	if _, err := pgx.ForEachRow(rows, []any{&sum, &v}, func() error {
		known[string(sum)] = v
		v = nil
		return nil
	}); err != nil {
		return nil, w.store.explain(err)
	}
	for i := range chunks {
		vectors[i] = known[string(digests[i])]
	}
	return vectors, nil
}

// Put implements [rag.Build].
func (w *build) Put(ctx context.Context, put rag.File, chunks []rag.Chunk) error {
	if err := w.check(chunks); err != nil {
		return err
	}
	if i := w.fileIndex(put.Path); i >= 0 {
		w.size -= len(w.files[i].chunks)
		w.files = slices.Delete(w.files, i, i+1)
	}
	f := file{put, chunks}
	f.ID, f.Chunks = w.base.next, len(chunks)
	for i := range f.chunks {
		f.chunks[i].ID = rag.ID{File: f.ID, Seq: i}
	}
	w.base.next++
	w.files = append(w.files, f)
	if w.size += len(chunks); w.size < full {
		return nil
	}
	return w.Flush(ctx)
}

// check returns an error if the vectors of chunks are not as long as the others.
func (w *build) check(chunks []rag.Chunk) error {
	dimensions, err := rag.Dimensions(chunks, w.dimensions)
	if err == nil {
		w.dimensions = dimensions
	}
	return err
}

// Remember implements [rag.Build].
func (w *build) Remember(ctx context.Context, chunks []rag.Chunk) error {
	if err := w.check(chunks); err != nil {
		return err
	}
	if w.remembered == nil {
		w.remembered = make(map[string][]float32)
	}
	for _, c := range chunks {
		w.remembered[string(digest(c))] = c.Vector
	}
	if w.size += len(chunks); w.size < full {
		return nil
	}
	return w.Flush(ctx)
}

// fileIndex returns where the file at path is in w.files, -1 if it is not.
func (w *build) fileIndex(path string) int {
	return slices.IndexFunc(w.files, func(f file) bool { return f.Path == path })
}

// Flush implements [rag.Build].
func (w *build) Flush(ctx context.Context) error {
	ctx, cancel, err := alive(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return w.flush(ctx)
}

func (w *build) flush(ctx context.Context) error {
	if len(w.files) == 0 && len(w.remembered) == 0 {
		return nil
	}
	err := pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		if err := w.insertRemembered(ctx, tx); err != nil {
			return err
		}
		paths := make([]string, len(w.files))
		for i, f := range w.files {
			paths[i] = database.Text(f.Path)
		}
		if err := w.bury(ctx, tx, `path = ANY($3::text[])`, paths); err != nil {
			return err
		}
		if err := w.insert(ctx, tx); err != nil {
			return err
		}
		if w.small >= full {
			if err := w.merge(ctx, tx); err != nil {
				return err
			}
		}
		if err := run(ctx, tx, []any{w.base.id, w.base.next}, `UPDATE bases SET next_file = $2 WHERE id = $1`); err != nil {
			return err
		}
		return run(ctx, tx, []any{w.generation, w.dimensions}, `UPDATE generations SET dimensions = $2 WHERE id = $1`)
	})
	if err != nil {
		return w.store.explain(err)
	}
	w.wrote = w.wrote || len(w.files) > 0
	w.files, w.remembered, w.size = nil, nil, 0
	return nil
}

// bury makes the living files that meet a condition on arg, $3, no part of the generation.
func (w *build) bury(ctx context.Context, tx pgx.Tx, condition string, arg any) error {
	if err := remove(ctx, tx, w.series, `born = $2 AND `+condition, w.generation, arg); err != nil {
		return err
	}
	return run(ctx, tx, []any{w.series, w.generation, arg}, `UPDATE files SET died = $2 WHERE series = $1 AND died IS NULL AND `+condition)
}

func (w *build) insertRemembered(ctx context.Context, tx pgx.Tx) error {
	var digests [][]byte
	var vectors []float32 // one behind the other
	for sum, v := range w.remembered {
		digests, vectors = append(digests, []byte(sum)), append(vectors, v...)
	}
	return run(ctx, tx, []any{w.generation, digests, w.dimensions, vectors},
		`INSERT INTO remembered (generation, digest, vector)
		SELECT $1, d.digest, ($4::real[])[(d.n - 1) * $3 + 1 : d.n * $3]::vector FROM unnest($2::bytea[]) WITH ORDINALITY AS d (digest, n)
		ON CONFLICT DO NOTHING`)
}

// insert adds the rows of w.files, one statement for each table. Its arguments are columns.
func (w *build) insert(ctx context.Context, tx pgx.Tx) error {
	if len(w.files) == 0 {
		return nil
	}
	var files struct {
		ids, chunks, tokens    []int64
		paths, hashes, sources []string
	}
	var chunks struct {
		files              []int64
		seqs, starts, ends []int32
		headings, texts    []string
		digests            [][]byte
		vectors            []float32 // one behind the other
	}
	postings := make(map[string][]posting)
	segment := w.segment()
	var list []string
	for _, f := range w.files {
		total := 0
		for i, c := range f.chunks {
			list = w.tokens.Append(w.tokens.Append(list[:0], c.Heading), c.Text)
			total += len(list)
			for token, n := range count(list) {
				postings[token] = append(postings[token], posting{f.ID, int32(i), int32(n), int32(len(list))})
			}
			p := &chunks
			p.files, p.seqs = append(p.files, f.ID), append(p.seqs, int32(i))
			p.headings, p.texts = append(p.headings, database.Text(c.Heading)), append(p.texts, database.Text(c.Text))
			p.starts, p.ends = append(p.starts, int32(c.Start)), append(p.ends, int32(c.End))
			p.digests, p.vectors = append(p.digests, digest(c)), append(p.vectors, c.Vector...)
		}
		p := &files
		p.ids, p.paths, p.hashes = append(p.ids, f.ID), append(p.paths, database.Text(f.Path)), append(p.hashes, f.Hash)
		p.sources = append(p.sources, database.Text(f.Source))
		p.chunks, p.tokens = append(p.chunks, int64(len(f.chunks))), append(p.tokens, int64(total))
	}
	if err := run(ctx, tx, []any{w.series, w.generation, segment, files.ids, files.paths, files.hashes, files.sources, files.chunks, files.tokens},
		`INSERT INTO files (series, born, segment, id, path, hash, source, chunks, tokens)
		SELECT $1, $2, $3, f.* FROM unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[]) AS f`); err != nil {
		return err
	}
	if n := len(chunks.files); n < full/2 {
		w.small += n
	}
	if err := w.insertPostings(ctx, tx, segment, postings); err != nil {
		return err
	}
	return run(ctx, tx, []any{w.series, chunks.files, chunks.seqs, chunks.headings, chunks.texts, chunks.starts, chunks.ends, chunks.digests, w.dimensions, chunks.vectors},
		`INSERT INTO chunks (series, file, seq, heading, text, first_line, last_line, digest, vector)
		SELECT $1, c.file, c.seq, c.heading, c.text, c.first_line, c.last_line, c.digest, ($10::real[])[(c.n - 1) * $9 + 1 : c.n * $9]::vector
		FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::integer[], $7::integer[], $8::bytea[])
			WITH ORDINALITY AS c (file, seq, heading, text, first_line, last_line, digest, n)`)
}

// posting is how often a token is in a chunk.
type posting struct {
	file                   int64
	seq, frequency, length int32 // length of the chunk, in tokens
}

func (w *build) insertPostings(ctx context.Context, tx pgx.Tx, segment int64, postings map[string][]posting) error {
	var tokens []string
	var ends []int32 // of the part of each token in the other columns, from 1
	var files []int64
	var seqs, frequencies, lengths []int32
	for _, token := range slices.Sorted(maps.Keys(postings)) {
		for _, p := range postings[token] {
			files, seqs = append(files, p.file), append(seqs, p.seq)
			frequencies, lengths = append(frequencies, p.frequency), append(lengths, p.length)
		}
		tokens, ends = append(tokens, token), append(ends, int32(len(files)))
	}
	return run(ctx, tx, []any{w.series, segment, tokens, ends, files, seqs, frequencies, lengths},
		`INSERT INTO postings (series, token, segment, files, seqs, frequencies, lengths)
		SELECT $1, token, $2, ($5::bigint[])[first:last], ($6::integer[])[first:last], ($7::integer[])[first:last], ($8::integer[])[first:last]
		FROM (
			SELECT token, coalesce(lag(last) OVER (ORDER BY n), 0) + 1 AS first, last
			FROM unnest($3::text[], $4::integer[]) WITH ORDINALITY AS t (token, last, n)
		) AS parts`)
}

// segment returns the number of a new one.
func (w *build) segment() int64 {
	w.base.next++
	return w.base.next - 1
}

// merge joins small segments of the series, of whichever generations, if there are many: each token has
// a row in each of its segments, and builds that make each answer of a model safe flush a few chunks at
// a time.
func (w *build) merge(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT segment, sum(chunks) FROM files WHERE series = $1 GROUP BY segment HAVING sum(chunks) < $2 ORDER BY segment`, w.series, full/2)
	if err != nil {
		return err
	}
	var groups [][]int64
	var segment, chunks int64
	many, size := 0, int64(full)
	if _, err := pgx.ForEachRow(rows, []any{&segment, &chunks}, func() error {
		if size >= full {
			groups, size = append(groups, nil), 0
		}
		last := &groups[len(groups)-1]
		*last, size = append(*last, segment), size+chunks
		many++
		return nil
	}); err != nil || many <= fewSegments {
		return err
	}
	for _, group := range groups {
		if len(group) == 1 {
			continue
		}
		if err := run(ctx, tx, []any{w.series, group, w.segment()},
			`INSERT INTO postings (series, token, segment, files, seqs, frequencies, lengths)
			SELECT $1, token, $3, array_agg(file), array_agg(seq), array_agg(frequency), array_agg(length)
			FROM postings p CROSS JOIN unnest(p.files, p.seqs, p.frequencies, p.lengths) AS h (file, seq, frequency, length)
			WHERE series = $1 AND segment = ANY($2::bigint[]) GROUP BY token`,
			`UPDATE files SET segment = $3 WHERE series = $1 AND segment = ANY($2::bigint[])`); err != nil {
			return err
		}
		if err := run(ctx, tx, []any{w.series, group}, `DELETE FROM postings WHERE series = $1 AND segment = ANY($2::bigint[])`); err != nil {
			return err
		}
	}
	w.small = 0
	return nil
}

// count returns how often each token is in list. A token that is too long for an index of the
// database is named by its digest.
func count(list []string) map[string]int {
	counts := make(map[string]int, len(list))
	for _, token := range list {
		if len(token) > 256 {
			sum := sha256.Sum256([]byte(token))
			token = hex.EncodeToString(sum[:])
		}
		counts[token]++
	}
	return counts
}

// Commit implements [rag.Build].
func (w *build) Commit(caller context.Context, keep func(rag.File) (string, bool)) (rag.Stats, error) {
	ctx, cancel, err := alive(caller)
	if err != nil {
		return rag.Stats{}, err
	}
	defer cancel()
	if err := w.flush(ctx); err != nil {
		return rag.Stats{}, err
	}
	st := rag.Stats{Settings: w.settings, Dimensions: w.dimensions}
	err = pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error { return w.commit(ctx, tx, keep, &st) })
	if err != nil {
		return rag.Stats{}, w.store.explain(err)
	}
	w.committed = true
	_ = w.sweep(caller) // what it leaves is for that of the next build
	if w.wrote {
		// The server does so too, but not at once, and the first searches would be planned for empty tables.
		_, _ = w.conn.Exec(ctx, `ANALYZE files, chunks, postings`)
	}
	return st, nil
}

func (w *build) commit(ctx context.Context, tx pgx.Tx, keep func(rag.File) (string, bool), st *rag.Stats) error {
	files, err := collect(ctx, tx, scanFile, `SELECT id, path, hash, source, chunks FROM files WHERE series = $1 AND died IS NULL`, w.series)
	if err != nil {
		return err
	}
	var gone, moved []int64
	var sources []string // of the ones that moved
	for _, f := range files {
		switch source, stays := keep(f); {
		case !stays:
			gone = append(gone, f.ID)
		case source != f.Source:
			moved, sources = append(moved, f.ID), append(sources, database.Text(source))
		}
	}
	if err := run(ctx, tx, []any{w.series, moved, sources}, `UPDATE files f SET source = m.source
		FROM unnest($2::bigint[], $3::text[]) AS m (id, source) WHERE f.series = $1 AND f.id = m.id`); err != nil {
		return err
	}
	if err := w.bury(ctx, tx, `id = ANY($3::bigint[])`, gone); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, `UPDATE generations SET built = now(), settings = $3, files = f.files, chunks = f.chunks, tokens = f.tokens,
			dimensions = CASE WHEN f.chunks > 0 THEN dimensions ELSE 0 END
		FROM (SELECT count(*) AS files, coalesce(sum(chunks), 0) AS chunks, coalesce(sum(tokens), 0) AS tokens FROM files WHERE series = $1 AND died IS NULL) AS f
		WHERE id = $2 RETURNING generations.files, generations.chunks, dimensions, built`,
		w.series, w.generation, encode(w.settings)).Scan(&st.Files, &st.Chunks, &st.Dimensions, &st.Built); err != nil {
		return err
	}
	if err := run(ctx, tx, []any{w.generation}, `DELETE FROM remembered WHERE generation = $1`); err != nil {
		return err
	}
	if err := w.merge(ctx, tx); err != nil {
		return err
	}
	return run(ctx, tx, []any{w.base.id, w.generation, w.base.next}, `UPDATE bases SET current = $2, next_file = $3, builder = NULL WHERE id = $1`)
}

// sweep removes the generations that are not in use and have no readers, and the files that are in
// none anymore.
func (w *build) sweep(ctx context.Context) error {
	return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		old, err := collect(ctx, tx, pgx.RowTo[int64], `SELECT id FROM generations WHERE base = $1 AND id <> $2`, w.base.id, w.generation)
		if err != nil {
			return err
		}
		for _, id := range old {
			var free bool
			if err := tx.QueryRow(ctx, tryLock("pg_try_advisory_xact_lock"), w.store.generationOf(id)).Scan(&free); err != nil {
				return err
			}
			if !free {
				continue
			}
			var series int64
			var oldest *int64 // generation that is left in the series
			if err := tx.QueryRow(ctx, `DELETE FROM generations WHERE id = $1 RETURNING series`, id).Scan(&series); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `SELECT min(id) FROM generations WHERE series = $1`, series).Scan(&oldest); err != nil {
				return err
			}
			if err := remove(ctx, tx, series, `($2::bigint IS NULL OR died <= $2)`, oldest); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close implements [rag.Build].
func (w *build) Close() error {
	if w.conn == nil {
		return nil
	}
	defer func() {
		w.store.unlock(w.conn)
		w.conn = nil
	}()
	if w.committed || w.conn.IsClosed() { // in which case a statement has failed
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return w.flush(ctx)
}
