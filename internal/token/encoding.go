package token

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"loki/internal/chat"
)

// encoding is the name of a vocabulary.
type encoding string

const (
	o200k  encoding = "o200k_base"
	cl100k encoding = "cl100k_base"
)

// The vocabularies, which are loaded when they are first needed and stay. Counting
// with them does not change them.
var (
	loadO200k  = sync.OnceValue(codec.NewO200kBase)
	loadCL100k = sync.OnceValue(codec.NewCl100kBase)
)

// count returns the number of tokens in text. Text that looks like a control token is
// text, as it is for the models.
func (e encoding) count(text string) int {
	load := loadCL100k
	if e == o200k {
		load = loadO200k
	}
	n, err := load().Count(text)
	if err != nil { // the splitting expression gave up
		return chat.EstimateTokens(text)
	}
	return n
}
