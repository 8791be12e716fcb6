//go:build ignore

// Gen writes cids.zlib: the characters of the four collections of Adobe for Chinese, Japanese and Korean, from the
// CMaps that Debian's package poppler-data has. Those are (c) Adobe Systems Incorporated, under the BSD license.
package main

import (
	"bytes"
	"compress/zlib"
	"log"
	"os"
	"strconv"

	"loki/internal/base/text"
)

var (
	blocks = text.Regexp(`(?s)beginbf(char|range)(.*?)endbf`)
	chars  = text.Regexp(`(?m)^<(\w{4})>\s+<(\w{4})>$`)
	ranges = text.Regexp(`(?m)^<(\w{4})>\s+<(\w{4})>\s+<(\w{4})>$`)
)

func number(hex string) int {
	n, err := strconv.ParseUint(hex, 16, 16)
	if err != nil {
		log.Fatal(err)
	}
	return int(n)
}

func main() {
	var all bytes.Buffer
	for _, name := range []string{"Japan1", "GB1", "CNS1", "Korea1"} { // as collections in cid.go
		data, err := os.ReadFile("/usr/share/poppler/cMap/Adobe-" + name + "/Adobe-" + name + "-UCS2")
		if err != nil {
			log.Fatal(err)
		}
		table := make([]uint16, 1<<15) // by CID, less what the CID before it is
		for _, block := range blocks().FindAllStringSubmatch(string(data), -1) {
			if block[1] == "char" {
				for _, m := range chars().FindAllStringSubmatch(block[2], -1) {
					table[number(m[1])] = uint16(number(m[2]))
				}
				continue
			}
			for _, m := range ranges().FindAllStringSubmatch(block[2], -1) {
				for cid := number(m[1]); cid <= number(m[2]); cid++ {
					table[cid] = uint16(number(m[3]) + cid - number(m[1]))
				}
			}
		}
		high, low, before := make([]byte, len(table)), make([]byte, len(table)), uint16(0)
		for i, c := range table {
			high[i], low[i], before = byte((c-before)>>8), byte(c-before), c
		}
		all.Write(append(high, low...))
	}
	out, err := os.Create("cids.zlib")
	if err != nil {
		log.Fatal(err)
	}
	w, _ := zlib.NewWriterLevel(out, zlib.BestCompression)
	if _, err := w.Write(all.Bytes()); err != nil || w.Close() != nil || out.Close() != nil {
		log.Fatal("cids.zlib cannot be written")
	}
}
