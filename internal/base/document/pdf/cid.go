package pdf

import (
	"bytes"
	"compress/zlib"
	_ "embed"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// Fonts for Chinese, Japanese and Korean may number their characters as one of the collections of Adobe does, and need
// not say what the numbers (CIDs) mean.

//go:generate go run gen.go
//go:embed cids.zlib
var packedCIDs []byte

var collections = []string{"Japan1", "GB1", "CNS1", "Korea1"}

const collectionSize = 1 << 15

// collection returns the characters of a collection by their CIDs, 0 for CIDs that are not one character of the basic
// plane; nil if there is no such collection.
var collection = func() func(name string) []uint16 {
	unpack := sync.OnceValue(func() []byte {
		r, err := zlib.NewReader(bytes.NewReader(packedCIDs))
		if err != nil {
			panic(err) // it is part of the program
		}
		data, err := io.ReadAll(r)
		if err != nil {
			panic(err)
		}
		return data
	})
	return func(name string) []uint16 {
		i := slices.Index(collections, name)
		if i < 0 {
			return nil
		}
		data := unpack()[2*collectionSize*i:]
		table, last := make([]uint16, collectionSize), uint16(0)
		for cid := range table {
			last += uint16(data[cid])<<8 | uint16(data[collectionSize+cid])
			table[cid] = last
		}
		return table
	}
}()

// legacy returns the encoding that a CMap with a name of Adobe reads, nil if it is not one of the older ones.
func legacy(cmap string) *encoding.Decoder {
	label := ""
	switch {
	case strings.Contains(cmap, "RKSJ"):
		label = "shift_jis"
	case strings.HasPrefix(cmap, "EUC-"):
		label = "euc-jp"
	case strings.HasPrefix(cmap, "GB"):
		label = "gb18030"
	case strings.Contains(cmap, "B5"):
		label = "big5"
	case strings.HasPrefix(cmap, "KSC"):
		label = "euc-kr"
	default:
		return nil
	}
	e, _ := charset.Lookup(label)
	return e.NewDecoder()
}

// legacyGlyphs returns the glyphs of a string in an encoding whose characters have one or two bytes.
func (t *font) legacyGlyphs(s string) []glyph {
	var out []glyph
	for len(s) > 0 {
		g := glyph{width: 0.5, space: s[0] == ' '}
		n := 1
		if text, err := t.legacy.String(s[:1]); err == nil && !strings.ContainsRune(text, '\uFFFD') {
			g.text = text
		} else if len(s) > 1 {
			n, g.width = 2, t.missing
			g.text, _ = t.legacy.String(s[:2])
		}
		out = append(out, g)
		s = s[n:]
	}
	return out
}
