package sandbox

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
)

// Index calls visit with each path in an index of git, until it finds that the text is none: ok is false then. The rest is what
// follows the paths. A path is valid during the call; the one of a directory that is left out ends with a slash. Visit can
// be called with what is no path if ok is false.
//
// Source: gitformat-index(5), versions 2 to 4.
func Index(text []byte, visit func(path []byte)) (rest []byte, ok bool) {
	if rest, ok = hashIndex(text, sha1.Size, visit); !ok {
		rest, ok = hashIndex(text, sha256.Size, visit)
	}
	return rest, ok
}

// hashIndex is [Index] for hashes of a size in bytes.
func hashIndex(text []byte, hash int, visit func(path []byte)) (rest []byte, ok bool) {
	const fixed, longestPath = 40, 4096
	if len(text) < 12 || string(text[:4]) != "DIRC" {
		return nil, false
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	rest = text[12:]
	var path []byte
	for range count {
		entry := fixed + hash + 2
		if len(rest) < entry+2 {
			return nil, false
		}
		flags := binary.BigEndian.Uint16(rest[entry-2:])
		if flags&0x4000 != 0 { // there are more flags
			entry += 2
		}
		kept := 0
		if version == 4 { // of the path before this one
			removed, size := offset(rest[entry:])
			if size == 0 || removed > len(path) {
				return nil, false
			}
			kept, entry = len(path)-removed, entry+size
		}
		n := bytes.IndexByte(rest[entry:], 0)
		if n < 0 || kept+n > longestPath || int(flags&0xfff) != min(kept+n, 0xfff) {
			return nil, false
		}
		path = append(path[:kept], rest[entry:entry+n]...)
		visit(path)
		if entry += n + 1; version < 4 {
			entry = (entry + 7) &^ 7
		}
		rest = rest[min(entry, len(rest)):]
	}
	return rest, true
}

// offset reads a number as packs of git have it, and returns how many bytes it has: 0 if it is none.
func offset(text []byte) (n, size int) {
	for i, c := range text[:min(len(text), 4)] {
		if n = n<<7 | int(c&0x7f); c&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}
