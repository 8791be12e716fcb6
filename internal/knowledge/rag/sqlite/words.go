package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text/rank"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/vector"
)

// words puts chunks into the index of words. It belongs to one goroutine.
type words struct {
	tokenizer rank.Tokenizer
	tokens    []string
}

// put adds a chunk, by means of what executes a statement.
func (w *words) put(exec func(query string, args ...any) error, number int64, heading, text string) error {
	w.tokens = w.tokenizer.Append(w.tokenizer.Append(w.tokens[:0], heading), text)
	return exec("INSERT INTO words (rowid, tokens) VALUES (?, ?)", number, strings.Join(w.tokens, " "))
}

// fill puts all chunks of a file into an index of words.
func fill(ctx context.Context, from querier, exec func(query string, args ...any) error) error {
	var w words
	for next := int64(0); ; {
		type chunk struct {
			number  int64
			heading string
			packed  []byte
		}
		var list []chunk
		var c chunk
		err := eachRow(ctx, from, func() error {
			list = append(list, c)
			return nil
		}, "SELECT number, heading, text FROM chunks WHERE number >= ? ORDER BY number LIMIT 1000", []any{next}, &c.number, &c.heading, &c.packed)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, c := range list {
			text, err := unpack(c.packed)
			if err == nil {
				err = w.put(exec, c.number, c.heading, text)
			}
			if err != nil {
				return err
			}
			next = c.number + 1
		}
	}
}

// lengths are the numbers of the chunks, ascending, and how many tokens they have, by position.
type lengths struct {
	numbers []int64
	tokens  []float64
	average float64
}

// loadLengths reads the lengths that FTS5 keeps.
func loadLengths(ctx context.Context, db querier) (*lengths, error) {
	l, sum := new(lengths), 0.0
	var number int64
	var size sql.RawBytes // a varint of SQLite: the most significant bits first
	err := eachRow(ctx, db, func() error {
		n := 0
		for _, b := range size {
			n = n<<7 | int(b&0x7f)
		}
		l.numbers, l.tokens = append(l.numbers, number), append(l.tokens, float64(n))
		sum += float64(n)
		return nil
	}, "SELECT id, sz FROM words_docsize ORDER BY id", nil, &number, &size)
	l.average = max(sum, 1) / float64(max(len(l.numbers), 1))
	return l, err
}

// maxTokens is how many different tokens of a query count, the first ones. Longer queries are documents, to which vectors lead.
const maxTokens = 256

// Match returns the chunks that match the words of query best.
func (x *index) Match(ctx context.Context, query string, k int) ([]rag.Match, error) {
	found, err := x.match(ctx, query, k)
	return found, explain(x.path, err)
}

func (x *index) match(ctx context.Context, query string, k int) ([]rag.Match, error) {
	var tokens []string
	weight := make(map[string]float64)
	for _, t := range rank.Tokens(query) {
		if weight[t]++; weight[t] == 1 && len(tokens) < maxTokens {
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
	w := x // has the words
	if x.version == oldVersion {
		if w, err = x.renewed.get(func() (*index, error) { return x.renew(ctx) }); err != nil {
			return nil, err
		}
	}
	l, err := x.lengths.get(func() (*lengths, error) { return loadLengths(ctx, w.db) })
	if err != nil {
		return nil, err
	}
	if len(l.numbers) != d.total {
		return nil, errDamaged
	}
	scores := make([]float64, d.total)
	var hits []hit
	for _, t := range tokens {
		if hits, err = w.hits(ctx, hits[:0], l, t); err != nil {
			return nil, err
		}
		idf := weight[t] * rank.IDF(float64(d.total), float64(len(hits)))
		for _, h := range hits {
			scores[h.position] += rank.Score(idf, h.times, rank.K1, l.tokens[h.position]/l.average)
		}
	}
	best := vector.NewBest(max(1, min(k, d.total)))
	for position, score := range scores {
		best.Add(position, score)
	}
	return d.matches(best.List()), ctx.Err()
}

// hit says how often a token is in a chunk.
type hit struct {
	position int
	times    float64
}

// hits appends the chunks with a token to list. All occurrences come in one row, since a row takes longer than what is in it.
func (x *index) hits(ctx context.Context, list []hit, l *lengths, token string) ([]hit, error) {
	var found sql.NullString
	if _, err := x.statements.row(ctx, "SELECT group_concat(doc) FROM occurrences WHERE term = ?", []any{token}, &found); err != nil || !found.Valid {
		return list, err
	}
	from, last := 0, ""
	for text := range strings.SplitSeq(found.String, ",") { // ascending
		if text == last {
			list[len(list)-1].times++
			continue
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errDamaged
		}
		i, ok := slices.BinarySearch(l.numbers[from:], number)
		if !ok {
			return nil, errDamaged
		}
		from, last = from+i, text
		list = append(list, hit{from, 1})
	}
	return list, nil
}

// renew returns an index with the words of a file of version [oldVersion]. They are put into a file of this version that takes the
// place of the other, or, where that cannot be, into one that is gone when it is closed.
func (x *index) renew(ctx context.Context) (*index, error) {
	if other, err := New(x.path).renew(ctx, x.info); err == nil {
		return other, nil
	}
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each would have a file of its own
	other := &index{db: db, statements: statements{on: db}}
	exec := func(query string, args ...any) error {
		_, err := db.ExecContext(ctx, query, args...)
		return err
	}
	err = exec(wordsSchema + "BEGIN")
	if err == nil {
		err = fill(ctx, x.db, exec)
	}
	if err == nil {
		err = exec("COMMIT")
	}
	if err != nil {
		return nil, errors.Join(err, other.Close())
	}
	return other, nil
}

// renew replaces the file of version [oldVersion], which must be the one that info describes, and opens the new one.
func (s *Store) renew(ctx context.Context, info os.FileInfo) (*index, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(now, info) {
		return nil, errDamaged
	}
	if err := s.rewrite(ctx, func(*conn) error { return nil }); err != nil {
		return nil, err
	}
	return openIndex(ctx, s.path)
}
