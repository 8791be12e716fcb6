//go:build ignore

// Generate writes the vocabularies in vocabulary from those of github.com/tiktoken-go/tokenizer.
package main

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"log"
	"os"

	"github.com/tiktoken-go/tokenizer/codec"
)

func main() {
	log.SetFlags(0)
	for _, c := range []*codec.Codec{codec.NewCl100kBase(), codec.NewO200kBase()} {
		var tokens []byte
		for rank := uint(0); ; rank++ {
			token, err := c.Decode([]uint{rank})
			if err != nil { // beyond the last one
				break
			}
			tokens = binary.AppendUvarint(tokens, uint64(len(token)))
			tokens = append(tokens, token...)
		}
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			log.Fatal(err)
		}
		if _, err = w.Write(tokens); err == nil {
			err = w.Close()
		}
		if err == nil {
			err = os.WriteFile("vocabulary/"+c.GetName()+".deflate", packed.Bytes(), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
		log.Println(c.GetName(), len(tokens), packed.Len())
	}
}
