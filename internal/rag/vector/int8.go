package vector

import "math"

// codes holds vectors as numbers of one byte.
//
// The number v of a vector becomes round(v/scale)+zero, from 1 to 127, where scale is a 63rd of the
// highest absolute value in the vector. Seven bits suffice to find candidates, and allow a
// processor without vector instructions to multiply four pairs at once: eight codes make a word of
// 64 bits, whose even and odd bytes are four lanes of 16 bits each. In the product of two such words,
// one of them with its lanes in reverse, the highest lane is the sum of the products of the four
// pairs. It is at most 4·127², which is less than 2¹⁶, and so are the sums in the lanes below it, of
// fewer products: nothing is carried from one lane to the next.
type codes struct {
	width int      // words in a vector
	words []uint64 // of all vectors, one behind the other; unused bytes are 0
	rows  []row
}

type row struct {
	scale float32 // NaN if a number in the vector is not finite
	sum   int32   // of the codes
}

const (
	zero  = 64
	lanes = 0x00ff00ff00ff00ff
)

// encode appends the codes of v to words.
func encode(words []uint64, v []float32) ([]uint64, row) {
	var highest float32
	for _, f := range v {
		highest = max(highest, f, -f) // NaN if one of them is
	}
	r := row{scale: highest / 63}
	if !(highest <= math.MaxFloat32) {
		r.scale = float32(math.NaN())
	}
	var word uint64
	for i, f := range v {
		code := uint64(zero)
		if r.scale > 0 { // 0 also if the numbers are too small to be divided
			code += uint64(int64(math.Round(min(max(float64(f/r.scale), -63), 63))))
		}
		r.sum += int32(code)
		word |= code << (i % 8 * 8)
		if i%8 == 7 || i == len(v)-1 {
			words = append(words, word)
			word = 0
		}
	}
	return words, r
}

func (c *codes) add(v []float32) {
	var r row
	c.words, r = encode(c.words, v)
	c.rows = append(c.rows, r)
}

// scan returns a function that puts the vectors from one position up to another into best, with
// approximate scores.
func (c *codes) scan(query []float32) func(best *top, from, to int) {
	words, q := encode(nil, query)
	pairs := make([][2]uint64, len(words)) // even and odd bytes, lanes reversed
	for i, w := range words {
		pairs[i] = [2]uint64{reverse(w & lanes), reverse(w >> 8 & lanes)}
	}
	// Σ(a-zero)(b-zero) = Σab - zero·Σa - zero·Σb + zero²·n
	rest := int64(zero*zero)*int64(len(query)) - zero*int64(q.sum)
	return func(best *top, from, to int) {
		for i := from; i < to; i++ {
			var even, odd uint64
			words := c.words[i*c.width : (i+1)*c.width]
			pairs := pairs[:len(words)] // for the compiler
			for j, w := range words {
				even += w & lanes * pairs[j][0] >> 48
				odd += w >> 8 & lanes * pairs[j][1] >> 48
			}
			r := c.rows[i]
			dot := int64(even+odd) - zero*int64(r.sum) + rest
			if score := float32(dot) * r.scale * q.scale; score > best.least {
				best.add(Match{i, score})
			}
		}
	}
}

// reverse returns w with its four lanes in reverse.
func reverse(w uint64) uint64 {
	return w<<48 | w>>48 | w>>16&0xffff_0000 | w<<16&0xffff_0000_0000
}
