package text

import (
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// TrimMark returns the content of a text file without the byte order mark that editors on Windows put at its start. With
// the mark of UTF-16, it is converted to UTF-8.
func TrimMark(data []byte) []byte {
	if plain, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), data); err == nil {
		return plain
	}
	return data
}

// UnmarkedReader is [TrimMark] for what r reads.
func UnmarkedReader(r io.Reader) io.Reader {
	return transform.NewReader(r, unicode.BOMOverride(transform.Nop))
}
