package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"loki/internal/rag"
)

func FuzzPostings(f *testing.F) {
	f.Add([]byte{0, 0, 5, 3, 1}, uint16(10))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, uint16(1))
	f.Add([]byte{0x80}, uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		docs, last := int(n), -1
		var p posting
		err := decodePostings(data, docs, func(doc, times int) {
			if doc <= last || doc >= docs || times < 1 {
				t.Errorf("document %d with %d occurrences after %d", doc, times, last)
			}
			last = doc
			p.add(doc)
			p.times = times
		})
		if err != nil && !errors.Is(err, errDamaged) {
			t.Error(err)
		}
		if p.flush(); err == nil && len(p.data) > len(data) {
			t.Errorf("%x became %x", data, p.data)
		}
	})
}

func FuzzBlock(f *testing.F) {
	block := appendList(nil, nil, []byte("alpha"), []byte{0, 2})
	f.Add(appendList(block, []byte("alpha"), []byte("alps"), []byte{4}), []byte("alps"))
	f.Add([]byte{3, 1, 'a', 0}, []byte("a"))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte(""))
	f.Fuzz(func(t *testing.T, block, token []byte) {
		if _, err := findList(block, token); err != nil && !errors.Is(err, errDamaged) {
			t.Error(err)
		}
		_, _ = decodeLengths(block)
		_, _ = unpack(block)
	})
}

func TestBlock(t *testing.T) {
	var block, last []byte
	tokens := []string{"", "a", "ab", "abc", "b", "ba", "東京"}
	for i, token := range tokens {
		block = appendList(block, last, []byte(token), bytes.Repeat([]byte{byte(i)}, i))
		last = []byte(token)
	}
	for i, token := range tokens {
		if got, err := findList(block, []byte(token)); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, i)) {
			t.Errorf("%q: %x, %v", token, got, err)
		}
	}
	for _, token := range []string{"aa", "abd", "z", "c", "東"} {
		if got, err := findList(block, []byte(token)); err != nil || got != nil {
			t.Errorf("%q: %x, %v", token, got, err)
		}
	}
}

func TestPostings(t *testing.T) {
	docs := []int{0, 1, 1, 1, 7, 300, 300, 100_000}
	var p posting
	for _, d := range docs {
		p.add(d)
	}
	p.flush()
	var got []int
	err := decodePostings(p.data, 100_001, func(doc, times int) { got = append(got, slices.Repeat([]int{doc}, times)...) })
	if err != nil || !slices.Equal(got, docs) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPositions(t *testing.T) {
	d := &documents{files: []document{{1, 10, 0, 3}, {2, 13, 3, 0}, {4, 20, 3, 2}, {5, 22, 5, 1}}, total: 6}
	if got, want := fmt.Sprint(d.positions(11, 12)), fmt.Sprint([]int32{1, 2, -1, -1, -1, -1, -1, -1, -1, 3, 4, 5}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, want := range []string{"1-0", "1-1", "1-2", "4-0", "4-1", "5-0"} {
		if got := d.at(i).String(); got != want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
}

// TestSegments looks at the number of segments after many small builds.
func TestSegments(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir() + "/x.db")
	most := 0
	for i := range 25 {
		if err := buildOne(t.Context(), s, i); err != nil {
			t.Fatal(err)
		}
		x, err := openIndex(t.Context(), s.path)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := x.db.QueryRow("SELECT count(*) FROM segments").Scan(&n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
		found, err := x.Match(context.Background(), "common", 1000)
		if err != nil || len(found) != i+1 {
			t.Errorf("build %d: %d found, %v", i, len(found), err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if most < 2 || most > 4 {
		t.Errorf("up to %d segments", most)
	}
}

func buildOne(ctx context.Context, s *Store, i int) (err error) {
	b, err := s.Build(ctx, rag.Settings{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Put(ctx, rag.File{Path: fmt.Sprint(i)}, []rag.Chunk{{Text: fmt.Sprint("common word", i), Vector: []float32{1}}}); err != nil {
		return err
	}
	_, err = b.Commit(ctx, func(rag.File) (string, bool) { return "", true })
	return err
}
