package token

import (
	"bytes"
	"compress/flate"
	"container/heap"
	_ "embed"
	"encoding/binary"
	"io"
	"sync"

	"github.com/dlclark/regexp2/v2"

	"loki/internal/llm/chat"
)

// encoding is the name of a vocabulary.
type encoding string

const (
	o200k  encoding = "o200k_base"
	cl100k encoding = "cl100k_base"
)

// The vocabularies: each token in the order of its rank, behind its length as a varint.
//
//go:generate go run generate.go
var (
	//go:embed vocabulary/o200k_base.deflate
	packedO200k []byte
	//go:embed vocabulary/cl100k_base.deflate
	packedCL100k []byte
)

// The vocabularies, which are loaded when they are first needed and stay. Counting with them does not change them. The expressions
// are those of OpenAI's tiktoken.
var (
	loadO200k = sync.OnceValue(func() *vocabulary {
		return unpack(packedO200k, `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`)
	})
	loadCL100k = sync.OnceValue(func() *vocabulary {
		return unpack(packedCL100k, `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`)
	})
)

// count returns the number of tokens in text. Text that looks like a control token is
// text, as it is for the models.
func (e encoding) count(text string) int {
	load := loadCL100k
	if e == o200k {
		load = loadO200k
	}
	n, err := load().count(text)
	if err != nil { // the splitting expression gave up
		return chat.EstimateTokens(text)
	}
	return n
}

// vocabulary splits texts into tokens by byte pairs.
type vocabulary struct {
	ranks map[string]uint32 // of tokens; a pair with a lower rank is joined first
	words *regexp2.Regexp   // parts of a text that no token reaches beyond
}

// unpack returns one of the vocabularies, which are part of the program.
func unpack(packed []byte, words string) *vocabulary {
	all, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		panic(err)
	}
	text := string(all)
	v := &vocabulary{make(map[string]uint32, len(all)/8), regexp2.MustCompile(words, regexp2.None)}
	for rank, at := uint32(0), 0; at < len(all); rank++ {
		length, size := binary.Uvarint(all[at:])
		at += size
		v.ranks[text[at:at+int(length)]] = rank
		at += int(length)
	}
	return v
}

func (v *vocabulary) count(text string) (int, error) {
	n := 0
	word, err := v.words.FindStringMatch(text)
	for ; word != nil && err == nil; word, err = v.words.FindNextMatch(word) {
		if s := word.String(); v.ranks[s] == 0 { // the token of rank 0 is one byte, which is not split either
			n += v.split(s)
		} else {
			n++
		}
	}
	return n, err
}

// split returns the number of tokens in a word. It joins pairs of parts that are a token, those of the lowest rank first and of
// them the leftmost, until there are none.
func (v *vocabulary) split(word string) int {
	n := len(word)
	next, previous := make([]int32, n+1), make([]int32, n+1) // where the parts before and after one begin that begins here
	for i := range next {
		next[i], previous[i] = int32(i)+1, int32(i)-1
	}
	var pairs pairs
	add := func(start int32) {
		if start < 0 || int(next[start]) >= len(word) {
			return
		}
		end := next[next[start]]
		if rank, ok := v.ranks[word[start:end]]; ok {
			heap.Push(&pairs, pair{rank, start, next[start], end})
		}
	}
	for i := range len(word) {
		add(int32(i))
	}
	for len(pairs) > 0 {
		p := heap.Pop(&pairs).(pair)
		if next[p.start] != p.middle || next[p.middle] != p.end { // one of its parts was joined with another
			continue
		}
		next[p.start], next[p.middle] = p.end, -1
		if int(p.end) < len(word) {
			previous[p.end] = p.start
		}
		n--
		add(p.start)
		add(previous[p.start])
	}
	return n
}

// pair is two parts of a word, one after the other, that are a token together.
type pair struct {
	rank               uint32
	start, middle, end int32
}

// pairs is a heap of pairs.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, k int) bool {
	return p[i].rank < p[k].rank || p[i].rank == p[k].rank && p[i].start < p[k].start
}
func (p pairs) Swap(i, k int) { p[i], p[k] = p[k], p[i] }
func (p *pairs) Push(x any)   { *p = append(*p, x.(pair)) }
func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
