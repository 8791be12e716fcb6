package hash_test

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"os"
	"strings"
	"testing"

	"loki/internal/llm/provider/builtin/hash"
)

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// checksum names a vector.
func checksum(v []float32) uint32 {
	h := fnv.New32a()
	_ = binary.Write(h, binary.LittleEndian, v)
	return h.Sum32()
}

// TestGolden fails if a vector is another one than it was. Indexes hold such vectors: a change needs a
// model of another name.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		text            string
		document, query uint32
	}{
		{"", 0x45f2fdc5, 0x76efddc5},
		{"the", 0x45f2fdc5, 0x76efddc5},
		{"How do I use 3 files?", 0xdd8283d9, 0xe0b267d7},
		{"Searching for issues in search_issues, searchIssues", 0x74ad1166, 0xc1b67cf1},
		{strings.Repeat("word ", 1000), 0x8c14d61a, 0xf7ffab03},
		{"Поиск в базе знаний, 検索する", 0xec6d7541, 0xd34e2322},
		{"x\xff\xfey", 0x877ac2a5, 0x8645f597},
	} {
		if d, q := checksum(new(hash.Embedder).Embed(tt.text, false)), checksum(new(hash.Embedder).Embed(tt.text, true)); d != tt.document || q != tt.query {
			t.Errorf("%.20q: %#x, %#x, want %#x, %#x", tt.text, d, q, tt.document, tt.query)
		}
	}
}

func TestEmbed(t *testing.T) {
	var e hash.Embedder
	query := e.Embed("How do I search for issues?", true)
	order := []string{ // by how near they are
		"search_issues: searches the issues of a repository",
		"A search of something else",
		"Nothing that has to do with it",
	}
	last := 2.0
	for _, text := range order {
		score := dot(query, e.Embed(text, false))
		if score >= last {
			t.Errorf("%q has %.3f, the one before it %.3f", text, score, last)
		}
		last = score
	}
	if a, b := dot(query, e.Embed("The serach of isues", false)), dot(query, e.Embed("The climb of mountains", false)); a < b+0.01 {
		t.Errorf("a text with mistakes has %.3f, another one %.3f", a, b)
	}
	long := strings.Repeat("other words of a long text about searching issues ", 3)
	if a, b := dot(query, e.Embed("issues", false)), dot(query, e.Embed(long, false)); a > b {
		t.Errorf("a single word has %.3f, a text with both of them %.3f", a, b)
	}
	for _, text := range []string{"", "word", long, strings.Repeat("x", 1<<16)} {
		for _, query := range []bool{false, true} {
			v := e.Embed(text, query)
			want := 1.0
			if text == "" && query {
				want = 0
			}
			if got := math.Sqrt(dot(v, v)); len(v) != hash.Dimensions || math.Abs(got-want) > 1e-6 {
				t.Errorf("%.10q: %d numbers of length %v", text, len(v), got)
			}
		}
	}
}

// FuzzEmbed checks that what an Embedder remembers changes nothing.
func FuzzEmbed(f *testing.F) {
	var e hash.Embedder
	for _, seed := range []string{"", "one two", "\xff", "検索 поиск", "a_b c:d 'e'", strings.Repeat("ab", 50)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checksum(e.Embed(text, false)) != checksum(new(hash.Embedder).Embed(text, false)) {
			t.Errorf("%q has two vectors", text)
		}
		v := e.Embed(text, true)
		if got := dot(v, v); math.Abs(got-1) > 1e-6 && got != 0 {
			t.Errorf("%q has length %v", text, got)
		}
	})
}

func BenchmarkEmbed(b *testing.B) {
	data, err := os.ReadFile("../../../../../docs/graph.md")
	if err != nil {
		b.Fatal(err)
	}
	var chunks []string
	for text := string(data); len(text) > 1000; text = text[1000:] {
		chunks = append(chunks, text[:1000])
	}
	var e hash.Embedder
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, text := range chunks {
			e.Embed(text, false)
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "chunks/s")
}
