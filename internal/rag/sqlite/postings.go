package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"loki/internal/rank"
)

// The keyword index consists of segments. A segment holds the tokens of the chunks whose numbers
// are in a range. For each token it has a posting list, in which documents, that is chunks, are
// counted from the begin of the segment:
//
//	uvarint  (documents between this one and the one before)<<1 | (more than one occurrence)
//	uvarint  occurrences - 2, if there is more than one
//
// The lists of a segment are in blocks, sorted by token:
//
//	uvarint  bytes that the token shares with the one before
//	uvarint  length of the rest; the rest
//	uvarint  length of the list; the list
//
// A block is found by its first token. It has blockSize bytes, or one list that is longer.
const blockSize = 4 << 10

// errDamaged says that what is stored is not what was written.
var errDamaged = errors.New("its contents are malformed")

// posting is a posting list that grows.
type posting struct {
	data  []byte
	doc   int // the last one; its occurrences are not in data yet
	gap   int // before doc
	times int
}

func (p *posting) add(doc int) {
	if p.times > 0 && p.doc == doc {
		p.times++
		return
	}
	last := -1
	if p.times > 0 {
		last = p.doc
	}
	p.flush()
	p.doc, p.gap, p.times = doc, doc-last-1, 1
}

func (p *posting) flush() {
	switch {
	case p.times == 1:
		p.data = binary.AppendUvarint(p.data, uint64(p.gap)<<1)
	case p.times > 1:
		p.data = binary.AppendUvarint(p.data, uint64(p.gap)<<1|1)
		p.data = binary.AppendUvarint(p.data, uint64(p.times-2))
	}
}

// decodePostings calls each for the documents in a list, ascending. They are less than docs.
func decodePostings(data []byte, docs int, each func(doc, times int)) error {
	doc := -1
	for len(data) > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 || head>>1 >= uint64(docs-1-doc) {
			return errDamaged
		}
		data = data[n:]
		doc += int(head>>1) + 1
		times := 1
		if head&1 == 1 {
			more, n := binary.Uvarint(data)
			if n <= 0 || more > 1<<30 {
				return errDamaged
			}
			data = data[n:]
			times = int(more) + 2
		}
		each(doc, times)
	}
	return nil
}

// appendList appends a token and its list to a block, in which last is the token before it.
func appendList(block, last, token, list []byte) []byte {
	shared := 0
	for shared < len(last) && shared < len(token) && last[shared] == token[shared] {
		shared++
	}
	block = binary.AppendUvarint(block, uint64(shared))
	block = appendBytes(block, token[shared:])
	return appendBytes(block, list)
}

func appendBytes(to, data []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(data))), data...)
}

// cutBytes returns what appendBytes has appended, and what follows it.
func cutBytes(from []byte) (data, rest []byte, err error) {
	size, n := binary.Uvarint(from)
	if n <= 0 || size > uint64(len(from)-n) {
		return nil, nil, errDamaged
	}
	return from[n : n+int(size)], from[n+int(size):], nil
}

// cutList returns the first token and list of a block, and what follows them. The token may use the
// memory of last, the token before it.
func cutList(block, last []byte) (token, list, rest []byte, err error) {
	shared, n := binary.Uvarint(block)
	if n <= 0 || shared > uint64(len(last)) {
		return nil, nil, nil, errDamaged
	}
	token, rest, err = cutBytes(block[n:])
	if err != nil {
		return nil, nil, nil, err
	}
	token = append(last[:shared], token...)
	list, rest, err = cutBytes(rest)
	return token, list, rest, err
}

// findList returns the list of a token in a block, or nil.
func findList(block, want []byte) ([]byte, error) {
	var token, list []byte
	var err error
	for len(block) > 0 {
		if token, list, block, err = cutList(block, token); err != nil {
			return nil, err
		}
		if c := bytes.Compare(token, want); c >= 0 {
			if c > 0 {
				list = nil
			}
			return list, nil
		}
	}
	return nil, nil
}

// words is a segment in memory.
type words struct {
	first    int64 // number of the first chunk
	lengths  []int // of the chunks, in tokens
	postings map[string]*posting
	bytes    int // of memory, about

	tokenizer rank.Tokenizer
	tokens    []string
}

func (w *words) reset(first int64) {
	w.first, w.lengths, w.postings, w.bytes = first, w.lengths[:0], make(map[string]*posting), 0
}

// add adds a chunk. The numbers between those of the last one and this one are not in use.
func (w *words) add(number int64, heading, text string) {
	for w.first+int64(len(w.lengths)) < number {
		w.lengths = append(w.lengths, 0)
	}
	doc := len(w.lengths)
	w.tokens = w.tokenizer.Append(w.tokenizer.Append(w.tokens[:0], heading), text)
	w.lengths = append(w.lengths, len(w.tokens))
	for _, t := range w.tokens {
		p := w.postings[t]
		if p == nil {
			p = new(posting)
			w.postings[t] = p
			w.bytes += len(t) + 120
		}
		before := cap(p.data)
		p.add(doc)
		w.bytes += cap(p.data) - before
	}
}

// encodeLengths packs the lengths of chunks.
func encodeLengths(lengths []int) (data []byte) {
	for _, n := range lengths {
		data = binary.AppendUvarint(data, uint64(n))
	}
	return data
}

func decodeLengths(data []byte) (lengths []int, err error) {
	lengths = make([]int, 0, len(data))
	for len(data) > 0 {
		length, n := binary.Uvarint(data)
		if n <= 0 || bits.Len64(length) > 31 {
			return nil, errDamaged
		}
		lengths = append(lengths, int(length))
		data = data[n:]
	}
	return lengths, nil
}
