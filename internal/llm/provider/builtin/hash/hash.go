// Package hash turns texts into vectors by the words in them.
//
// A feature is a token of a text, as package rank has it, or three or four characters of one that
// follow each other. Each feature has its place in the vector and a sign, by its hash. What texts
// have in common adds up, and where other features collide, they cancel out on average (Weinberger
// et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009). Nothing is learned: words
// that mean the same are as different as any others, unless they are written alike.
//
// The same text has the same vector, bit by bit, on every machine: what is stored in an index can
// be compared with what another computes. All sums are of integers, and what is not is rounded at
// each step as IEEE 754 says. A change that affects vectors needs a model with another name.
package hash

import (
	"math"

	"loki/internal/base/text/rank"
)

// Dimensions is the length of a vector.
const Dimensions = 1024

// The weights were chosen by the recall for 100 questions about the pages of this project.
const (
	// one is the weight 1. That of a token in a text is 4n/(n+3), where n is how often it appears
	// there, from 1 to below 4.
	one = 1 << 14

	// gramWeight is the length of the vector of all the grams of a token, where that of the token
	// itself has length 1.
	gramWeight = 0.8

	// offset is added to each number of the vector of a document, which has a mean of 0 before, and so
	// has that of a query. It changes no product of the two, but the length of the document: one
	// with few words is not near to whatever has one of them. It has length 12 in all.
	offset = 12 * one / 32

	// longest is how many characters of a token have grams.
	longest = 64
)

// Embedder computes vectors. The zero value is ready. It belongs to one goroutine.
type Embedder struct {
	tokenizer rank.Tokenizer
	tokens    []string // of the text at hand

	numbers  map[string]int // of the tokens that were seen
	features [][]feature    // by number
	counts   []int          // by number, in the text at hand; otherwise 0
	found    []int          // the numbers of the ones in the current text
	size     int            // of all tokens in bytes

	sums [Dimensions]int64
}

// feature adds its weight, which may be negative, to a number of the vector.
type feature struct {
	at     int16
	weight int16 // 256 is 1
}

// remembered is how many bytes of tokens an Embedder knows before it starts to learn anew.
const remembered = 1 << 18

// Embed returns the vector of a text: of length 1, but 0 for a query without a word to look for.
func (e *Embedder) Embed(text string, query bool) []float32 {
	if e.size > remembered || e.numbers == nil {
		e.numbers, e.features, e.counts, e.size = make(map[string]int), nil, nil, 0
	}
	e.tokens, e.found = e.tokenizer.Append(e.tokens[:0], text), e.found[:0]
	for _, token := range e.tokens {
		i := e.number(token)
		if e.counts[i] == 0 {
			e.found = append(e.found, i)
		}
		e.counts[i]++
	}
	clear(e.sums[:])
	for _, i := range e.found {
		n := e.counts[i]
		e.counts[i] = 0
		weight := int64(256 * n / (n + 3)) // 64 is 1
		for _, f := range e.features[i] {
			e.sums[f.at] += int64(f.weight) * weight
		}
	}
	return e.vector(query)
}

// number returns the number of a token.
func (e *Embedder) number(token string) int {
	i, ok := e.numbers[token]
	if !ok {
		i = len(e.features)
		e.numbers[token] = i
		e.features = append(e.features, features(token))
		e.counts = append(e.counts, 0)
		e.size += len(token)
	}
	return i
}

// vector returns the sums as a vector.
func (e *Embedder) vector(query bool) []float32 {
	mean := int64(0)
	for _, sum := range e.sums {
		mean += sum
	}
	shift := -mean / Dimensions
	if !query {
		shift += offset
	}
	square := 0.0
	for _, sum := range e.sums {
		x := float64(sum + shift)
		square += float64(x * x) // the conversion keeps the sum apart from the product
	}
	v := make([]float32, Dimensions)
	if square == 0 {
		return v
	}
	length := math.Sqrt(square)
	for i, sum := range e.sums {
		v[i] = float32(float64(sum+shift) / length)
	}
	return v
}

// features returns the features of a token: itself and the grams of "^token$".
func features(token string) []feature {
	w := weight(token)
	list := []feature{place('t', token, w)}
	marked := "^" + token + "$"
	var starts []int // of characters, and the end
	for i := range marked {
		if starts = append(starts, i); len(starts) > longest {
			break
		}
	}
	if len(starts) <= longest {
		starts = append(starts, len(marked))
	}
	grams := max(0, len(starts)-3) + max(0, len(starts)-4)
	w *= gramWeight / math.Sqrt(float64(grams))
	for _, n := range []int{3, 4} {
		for i := n; i < len(starts); i++ {
			list = append(list, place(byte(n), marked[starts[i-n]:starts[i]], w))
		}
	}
	return list
}

// place returns the feature of a text of some kind.
func place(kind byte, text string, weight float64) feature {
	const prime = 1099511628211
	h := (uint64(14695981039346656037) ^ uint64(kind)) * prime // FNV-1a
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	h ^= h >> 33 // the finalizer of MurmurHash3, as the low bits of FNV depend on few
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	f := feature{at: int16(h % Dimensions), weight: int16(math.Round(weight * 256))}
	if h>>63 == 1 {
		f.weight = -f.weight
	}
	return f
}
