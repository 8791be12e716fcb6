package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/conversation/session/search"
)

// prose returns n words of a vocabulary whose frequencies are about those of a language.
func prose(rnd *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		word := int(50_000 * rnd.Float64() * rnd.Float64() * rnd.Float64() * rnd.Float64())
		b.WriteString("w" + strconv.FormatInt(int64(word), 36) + " ")
	}
	return b.String()
}

// many are documents of generated texts.
type many struct {
	kind        string
	docs, texts int
	stamps      map[string]string
}

func (m many) List(context.Context, map[string]string) (list []search.Document, _ error) {
	for i := range m.docs {
		key := fmt.Sprint(m.kind, i)
		list = append(list, search.Document{Key: key, Stamp: m.stamps[key], Name: fmt.Sprint("name ", i), At: time.Unix(int64(i), 0)})
	}
	return list, nil
}

func (m many) Read(_ context.Context, key string, cursor []byte) (c search.Change, _ error) {
	texts := m.texts
	if cursor != nil {
		texts = 2
	}
	rnd := rand.New(rand.NewPCG(uint64(len(key)), uint64(len(cursor))))
	for range texts {
		c.Add = append(c.Add, search.Text{Role: "user", Body: prose(rnd, 60)})
	}
	c.Cursor = []byte("x")
	return c, nil
}

// BenchmarkIndex measures 500 sessions of 200 messages of about 300 characters, and 1,000 runs of 5 texts.
func BenchmarkIndex(b *testing.B) {
	sessions := many{kind: "s", docs: 500, texts: 200, stamps: map[string]string{}}
	sources := []search.Source{sessions, many{kind: "r", docs: 1000, texts: 5}}
	dir, n := b.TempDir(), 0
	x := &search.Index{Path: filepath.Join(dir, "search.db"), Sources: sources}
	look := func(b *testing.B, query string) {
		if _, err := x.Search(context.Background(), query, 20); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			n++
			x.Path = filepath.Join(dir, fmt.Sprint(n, ".db"))
			look(b, "")
		}
	})
	b.Run("refresh", func(b *testing.B) {
		for b.Loop() {
			n++
			sessions.stamps["s7"] = fmt.Sprint(n)
			look(b, "")
		}
	})
	for name, query := range map[string]string{"rare": "w1pz", "common": "w1", "two": "wa wb", "phrase": `"w1 w2"`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				look(b, query)
			}
		})
	}
}
