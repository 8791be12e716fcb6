package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"loki/internal/rag"
)

// maxWords is about how many bytes of the keyword index are kept in memory.
const maxWords = 128 << 20

// conn is a connection to a file that is written. It belongs to one goroutine.
//
// Nothing on it is canceled half-way, which would undo more than the statement: what takes long
// asks its context between statements.
type conn struct {
	db *sql.DB
	c  *sql.Conn
	*statements
	open bool // a transaction
}

// openWriter opens a file for writing. The file must exist; if it is empty, fresh makes it a
// knowledge base without files.
func openWriter(path string, fresh bool) (c *conn, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe might never end
		return nil, &formatError{irregular: true}
	}
	// Only this connection uses the file, so that its log needs no shared memory.
	source, err := dataSource(path, "mode=rw&_pragma=locking_mode(exclusive)&_pragma=page_size(8192)&_pragma=journal_mode(wal)"+
		"&_pragma=synchronous(normal)&_pragma=cache_size(-65536)&_pragma=wal_autocheckpoint(8192)")
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
	ctx := context.Background()
	sc, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c = &conn{db: db, c: sc, statements: &statements{on: sc}}
	if fresh {
		_, err := sc.ExecContext(ctx, "BEGIN;"+schema+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, formatVersion)+
			"INSERT INTO base VALUES ('{}', 0, 0, 1, 0, 0); COMMIT")
		if err != nil {
			return nil, err
		}
	}
	return c, verify(ctx, sc)
}

func (c *conn) exec(query string, args ...any) error {
	s, err := c.get(query)
	if err == nil {
		_, err = s.ExecContext(context.Background(), args...)
	}
	return err
}

// run runs statements that are not going to be run again.
func (c *conn) run(query string) error {
	_, err := c.c.ExecContext(context.Background(), query)
	return err
}

// begin begins a transaction if none is open.
func (c *conn) begin() error {
	if c.open {
		return nil
	}
	err := c.exec("BEGIN IMMEDIATE")
	c.open = err == nil
	return err
}

func (c *conn) commit() error {
	err := c.exec("COMMIT")
	c.open = err != nil
	return err
}

func (c *conn) setSettings(set rag.Settings) error {
	data, err := json.Marshal(set)
	if err != nil {
		return err
	}
	return c.exec("UPDATE base SET settings = ?", string(data))
}

// close ends the connection, and with it a transaction that is open. The log becomes part of the
// file.
func (c *conn) close() error {
	if c.open {
		_ = c.run("ROLLBACK") // fails if SQLite has rolled back by itself
	}
	return errors.Join(c.run("PRAGMA journal_mode = DELETE"), c.statements.close(), c.c.Close(), c.db.Close())
}

// build is an index that is being built. As long as nothing is changed it reads the one in use, and
// then goes on with a copy.
type build struct {
	store    *Store
	settings rag.Settings
	unlock   func()
	resumed  bool

	use *index // the one in use; nil after the first change, or if there is none to start from
	c   *conn  // of the build's own file; nil before the first change

	files      map[string]rag.File // by path; nil before it is needed
	dimensions int
	nextFile   int64
	nextChunk  int64
	remembers  bool  // the file has the table remembered
	words      words // the chunks that are in no segment yet
	packer     packer
	failed     error // why the file cannot be written any more
}

// begin finds out where to begin from.
func (b *build) begin(ctx context.Context) error {
	s := b.store
	if err := remove(s.copyPath()); err != nil {
		return err
	}
	use, err := openIndex(ctx, s.path)
	if _, other := errors.AsType[*formatError](err); other || ctx.Err() != nil {
		return err // it is not ours to replace
	}
	if use != nil {
		if err := intact(ctx, use.db); err != nil {
			if err := use.Close(); err != nil || ctx.Err() != nil {
				return cmp.Or(ctx.Err(), err)
			}
			use = nil
		}
	}
	b.use = use // nil if it is missing or damaged
	if _, err := os.Stat(s.buildPath()); err == nil {
		if b.resume(ctx) == nil {
			b.resumed = true
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.drop(); err != nil {
			return err
		}
	}
	if use == nil {
		b.nextFile = 1
		return b.fresh()
	}
	if err := readRow(ctx, use.db, "SELECT next_file FROM base", &b.nextFile); err != nil {
		return err
	}
	if !use.stats.Settings.SameChunks(b.settings) {
		return b.fresh()
	}
	b.dimensions = use.stats.Dimensions
	return nil
}

// intact returns an error if a page of a file is damaged. It reads all of them, which a build may and
// a search may not.
func intact(ctx context.Context, db querier) error {
	var result string
	if err := readRow(ctx, db, "PRAGMA quick_check(1)", &result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, result)
	}
	return nil
}

// fresh begins without files.
func (b *build) fresh() error {
	if err := b.forgetUse(); err != nil {
		return err
	}
	f, err := os.OpenFile(b.store.copyPath(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// Under its name it is a build that has the schema.
	c, err := openWriter(b.store.copyPath(), true)
	if err == nil {
		err = errors.Join(c.setSettings(b.settings), c.exec("UPDATE base SET next_file = ?", b.nextFile), c.close())
	}
	if err == nil {
		err = os.Rename(b.store.copyPath(), b.store.buildPath())
	}
	if err != nil {
		return err
	}
	return b.open(context.Background())
}

func (b *build) forgetUse() error {
	if b.use == nil {
		return nil
	}
	err := b.use.Close()
	b.use = nil
	return err
}

// resume goes on with an interrupted build. It fails if that cannot be done.
func (b *build) resume(ctx context.Context) error {
	err := b.open(ctx)
	if err == nil {
		var stats rag.Stats
		stats, err = readStats(ctx, b.c.c)
		if err == nil && !stats.Settings.SameChunks(b.settings) {
			err = errors.New("other settings")
		}
	}
	if err == nil {
		return b.forgetUse()
	}
	if b.c != nil {
		_ = b.c.close()
		b.c = nil
	}
	return err
}

// open opens the build's own file.
func (b *build) open(ctx context.Context) (err error) {
	if b.c, err = openWriter(b.store.buildPath(), false); err != nil {
		b.c = nil
		return err
	}
	var indexed int64
	ok, err := b.c.row(context.Background(), "SELECT dimensions, next_file, next_chunk, indexed FROM base", nil, &b.dimensions, &b.nextFile, &b.nextChunk, &indexed)
	if err != nil || !ok {
		return cmp.Or(err, errDamaged)
	}
	if b.remembers, err = b.c.row(context.Background(), "SELECT 1 FROM sqlite_master WHERE name = 'remembered'", nil, new(int)); err != nil {
		return err
	}
	b.words.reset(indexed)
	rows, err := b.c.c.QueryContext(ctx, "SELECT number, heading, text FROM chunks WHERE number >= ? ORDER BY number", indexed)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var heading string
		var packed []byte
		if err := scan(rows, &number, &heading, &packed); err != nil {
			return err
		}
		text, err := unpack(packed)
		if err != nil {
			return err
		}
		b.words.add(number, heading, text)
	}
	return rows.Err()
}

// change makes the build ready to be written.
func (b *build) change(ctx context.Context) error {
	if b.failed != nil {
		return b.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.c == nil {
		s := b.store
		if err := copyFile(ctx, s.path, s.copyPath()); err != nil {
			return err
		}
		if err := os.Rename(s.copyPath(), s.buildPath()); err != nil {
			return err
		}
		if err := errors.Join(b.forgetUse(), b.open(ctx)); err != nil {
			return err
		}
	}
	return b.c.begin()
}

// fail keeps an error after which the transaction may be gone.
func (b *build) fail(err error) error {
	if err != nil {
		b.failed = explain(b.store.path, err)
		return b.failed
	}
	return nil
}

func (b *build) Resumed() bool { return b.resumed }

// queries returns where files and chunks are read.
func (b *build) queries() querier {
	if b.c != nil {
		return b.c.c
	}
	return b.use.db
}

func (b *build) statements() *statements {
	if b.c != nil {
		return b.c.statements
	}
	return &b.use.statements
}

func (b *build) File(ctx context.Context, path string) (f rag.File, ok bool, err error) {
	if b.files == nil {
		if b.files, err = b.readFiles(ctx); err != nil {
			return rag.File{}, false, explain(b.store.path, err)
		}
	}
	f, ok = b.files[path]
	return f, ok, nil
}

// readFiles reads all files, which takes less than a query for each.
func (b *build) readFiles(ctx context.Context) (map[string]rag.File, error) {
	rows, err := b.queries().QueryContext(ctx, "SELECT id, path, hash, source, chunks FROM files")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	files := make(map[string]rag.File)
	for rows.Next() {
		var f rag.File
		if err := scan(rows, &f.ID, &f.Path, &f.Hash, &f.Source, &f.Chunks); err != nil {
			return nil, err
		}
		files[f.Path] = f
	}
	return files, rows.Err()
}

// hash returns that of the heading and text of a chunk.
func hash(c rag.Chunk) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s%s", len(c.Heading), c.Heading, c.Text)
	return h.Sum(nil)
}

// digest returns a number by which a chunk with that hash is found.
func digest(hash []byte) int64 { return int64(binary.LittleEndian.Uint64(hash)) }

func (b *build) Vectors(ctx context.Context, chunks []rag.Chunk) ([][]float32, error) {
	list := make([][]float32, len(chunks))
	for i, c := range chunks {
		v, err := b.known(ctx, c)
		if err != nil {
			return nil, explain(b.store.path, err)
		}
		list[i] = v
	}
	return list, nil
}

// known returns the vector of a chunk with the heading and text of c, or nil.
func (b *build) known(ctx context.Context, c rag.Chunk) ([]float32, error) {
	if b.dimensions == 0 {
		return nil, ctx.Err()
	}
	var number, row int64
	var packed, data []byte
	sum := hash(c)
	if b.remembers {
		ok, err := b.statements().row(ctx, "SELECT data FROM remembered WHERE hash = ?", []any{sum}, &data)
		if err != nil {
			return nil, err
		}
		if ok {
			return b.vector(data)
		}
	}
	ok, err := b.statements().row(ctx, "SELECT number, text FROM chunks WHERE digest = ? AND heading = ? LIMIT 1",
		[]any{digest(sum), c.Heading}, &number, &packed)
	if !ok {
		return nil, err
	}
	if text, err := unpack(packed); err != nil || text != c.Text {
		return nil, err
	}
	ok, err = b.statements().row(ctx, "SELECT number, data FROM vectors WHERE number <= ? ORDER BY number DESC LIMIT 1", []any{number}, &row, &data)
	if err != nil {
		return nil, err
	}
	at := (number - row) * 4 * int64(b.dimensions)
	if !ok || int64(len(data)) < at {
		return nil, errDamaged
	}
	return b.vector(data[at:])
}

// vector returns the first one in data.
func (b *build) vector(data []byte) ([]float32, error) {
	if len(data) < 4*b.dimensions {
		return nil, errDamaged
	}
	v := make([]float32, b.dimensions)
	decodeVector(v, data)
	return v, nil
}

// prepare makes the build ready to be written with vectors of the length of those of chunks.
func (b *build) prepare(ctx context.Context, chunks []rag.Chunk) error {
	dims := b.dimensions
	for i, c := range chunks {
		if dims == 0 {
			dims = len(c.Vector)
		}
		if len(c.Vector) != dims || dims == 0 {
			return fmt.Errorf("%s: chunk %d has a vector with %d dimensions instead of %d", c.Path, i, len(c.Vector), dims)
		}
	}
	if err := b.change(ctx); err != nil {
		return explain(b.store.path, err)
	}
	b.dimensions = dims
	return nil
}

// Remember keeps the vectors in a table that the build has until Commit.
func (b *build) Remember(ctx context.Context, chunks []rag.Chunk) error {
	if err := b.prepare(ctx, chunks); err != nil {
		return err
	}
	return b.fail(b.remember(chunks))
}

func (b *build) remember(chunks []rag.Chunk) error {
	if !b.remembers {
		if err := b.c.run("CREATE TABLE remembered (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID"); err != nil {
			return err
		}
		b.remembers = true
	}
	var data []byte
	for _, c := range chunks {
		data = appendVector(data[:0], c.Vector)
		if err := b.c.exec("INSERT OR REPLACE INTO remembered VALUES (?, ?)", hash(c), data); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) Put(ctx context.Context, f rag.File, chunks []rag.Chunk) error {
	if err := b.prepare(ctx, chunks); err != nil {
		return err
	}
	return b.fail(b.put(f, chunks))
}

func (b *build) put(f rag.File, chunks []rag.Chunk) error {
	var old document
	ok, err := b.c.row(context.Background(), "SELECT id, first, chunks FROM files WHERE path = ?", []any{f.Path}, &old.id, &old.first, &old.chunks)
	if err != nil {
		return err
	}
	if ok {
		if err := b.remove(old); err != nil {
			return err
		}
	}
	first := b.nextChunk
	if err := b.c.exec("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", b.nextFile, f.Path, f.Hash, f.Source, first, len(chunks)); err != nil {
		return err
	}
	for i, c := range chunks {
		if err := b.c.exec("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)", first+int64(i), c.Heading, c.Start, c.End, digest(hash(c)), b.packer.pack(c.Text)); err != nil {
			return err
		}
		b.words.add(first+int64(i), c.Heading, c.Text)
	}
	var data []byte
	for i := 0; i < len(chunks); i += vectorRow {
		data = data[:0]
		for _, c := range chunks[i:min(i+vectorRow, len(chunks))] {
			data = appendVector(data, c.Vector)
		}
		if err := b.c.exec("INSERT INTO vectors VALUES (?, ?)", first+int64(i), data); err != nil {
			return err
		}
	}
	if b.files != nil {
		b.files[f.Path] = rag.File{ID: b.nextFile, Path: f.Path, Hash: f.Hash, Source: f.Source, Chunks: len(chunks)}
	}
	b.nextFile++
	b.nextChunk += int64(len(chunks))
	if b.words.bytes > maxWords {
		return b.writeWords()
	}
	return nil
}

func (b *build) remove(f document) error {
	last := f.first + int64(f.chunks)
	return errors.Join(
		b.c.exec("DELETE FROM files WHERE id = ?", f.id),
		b.c.exec("DELETE FROM chunks WHERE number >= ? AND number < ?", f.first, last),
		b.c.exec("DELETE FROM vectors WHERE number >= ? AND number < ?", f.first, last),
	)
}

func (b *build) Flush(context.Context) error {
	if b.failed != nil || b.c == nil || !b.c.open {
		return b.failed
	}
	return b.fail(b.flush())
}

func (b *build) flush() error {
	err := b.c.exec("UPDATE base SET dimensions = ?, next_file = ?, next_chunk = ?, indexed = ?", b.dimensions, b.nextFile, b.nextChunk, b.words.first)
	if err != nil {
		return err
	}
	return b.c.commit()
}

// Commit completes the build.
func (b *build) Commit(ctx context.Context, keep func(rag.File) (string, bool)) (rag.Stats, error) {
	if b.failed != nil {
		return rag.Stats{}, b.failed
	}
	gone, moved, err := b.judge(ctx, keep)
	if err != nil {
		return rag.Stats{}, explain(b.store.path, err)
	}
	if b.use != nil && len(gone)+len(moved) == 0 && sameSettings(b.settings, b.use.stats.Settings) {
		return b.use.stats, nil // nothing has changed
	}
	if err := b.change(ctx); err != nil {
		return rag.Stats{}, explain(b.store.path, err)
	}
	stats, err := b.finish(ctx, gone, moved)
	return stats, b.fail(err)
}

func sameSettings(a, b rag.Settings) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// judge returns the files that do not stay, and the new sources of others by their ids.
func (b *build) judge(ctx context.Context, keep func(rag.File) (string, bool)) (gone []document, moved map[int64]string, err error) {
	rows, err := b.queries().QueryContext(ctx, "SELECT id, path, hash, source, first, chunks FROM files ORDER BY id")
	if err != nil {
		return nil, nil, err
	}
	moved = make(map[int64]string)
	defer rows.Close()
	for rows.Next() {
		var f rag.File
		var first int64
		if err := scan(rows, &f.ID, &f.Path, &f.Hash, &f.Source, &first, &f.Chunks); err != nil {
			return nil, nil, err
		}
		switch source, stays := keep(f); {
		case !stays:
			gone = append(gone, document{id: f.ID, first: first, chunks: f.Chunks})
		case source != f.Source:
			moved[f.ID] = source
		}
	}
	return gone, moved, rows.Err()
}

func (b *build) finish(ctx context.Context, gone []document, moved map[int64]string) (rag.Stats, error) {
	// What was put is safe even if the rest fails.
	if err := b.flush(); err != nil {
		return rag.Stats{}, err
	}
	if err := b.c.begin(); err != nil {
		return rag.Stats{}, err
	}
	for _, f := range gone {
		if err := b.remove(f); err != nil {
			return rag.Stats{}, err
		}
	}
	for id, source := range moved {
		if err := b.c.exec("UPDATE files SET source = ? WHERE id = ?", source, id); err != nil {
			return rag.Stats{}, err
		}
	}
	if b.remembers {
		if err := b.c.run("DROP TABLE remembered"); err != nil {
			return rag.Stats{}, err
		}
	}
	if err := b.writeWords(); err != nil {
		return rag.Stats{}, err
	}
	if err := b.merge(ctx); err != nil {
		return rag.Stats{}, err
	}
	if err := errors.Join(b.c.setSettings(b.settings), b.c.exec("UPDATE base SET built = ?", time.Now().UnixMilli())); err != nil {
		return rag.Stats{}, err
	}
	if err := b.flush(); err != nil {
		return rag.Stats{}, err
	}
	if err := b.compact(); err != nil {
		return rag.Stats{}, err
	}
	stats, err := readStats(ctx, b.c.c)
	if err != nil {
		return rag.Stats{}, err
	}
	c := b.c
	b.c = nil
	err = c.close()
	if err == nil {
		err = replace(b.store.buildPath(), b.store.path)
	}
	if err != nil {
		return rag.Stats{}, err
	}
	if info, err := os.Stat(b.store.path); err == nil {
		stats.Bytes = info.Size()
	}
	b.failed = errors.New("the build has ended")
	return stats, nil
}

// compact gives back unused space if that is a third of the file.
func (b *build) compact() error {
	var free, pages int64
	if _, err := b.c.row(context.Background(), "SELECT * FROM pragma_freelist_count, pragma_page_count", nil, &free, &pages); err != nil {
		return err
	}
	if free < 128 || free*3 < pages {
		return nil
	}
	return b.c.run("VACUUM")
}

// Close ends the build. What cannot be gone on with is removed.
func (b *build) Close() error {
	if b.unlock == nil {
		return nil
	}
	defer func() { b.unlock(); b.unlock = nil }()
	err := b.forgetUse()
	if b.c == nil {
		return err
	}
	var flushErr error
	if b.failed == nil {
		flushErr = b.Flush(context.Background())
	}
	stats, statsErr := readStats(context.Background(), b.c.c)
	closeErr := b.c.close()
	b.c = nil
	if damaged(b.failed) || damaged(statsErr) || statsErr == nil && stats.Files == 0 && !b.remembers {
		return errors.Join(err, b.store.drop())
	}
	return errors.Join(err, cmp.Or(flushErr, explain(b.store.path, closeErr)))
}

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
