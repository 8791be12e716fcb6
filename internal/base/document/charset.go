package document

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// The byte order marks that a text may begin with.
var (
	markUTF8    = []byte{0xef, 0xbb, 0xbf}
	markUTF16LE = []byte{0xff, 0xfe}
	markUTF16BE = []byte{0xfe, 0xff}
)

// Decode returns data as text without a byte order mark. label names its encoding, such as "latin1", and is
// "" if that is not known: then it is what the byte order mark says, or UTF-8. Data that is UTF-8 is read as
// that, whatever label says. ok is false if data is not text in that encoding, or has a NUL byte.
func Decode(data []byte, label string) (text string, ok bool) {
	switch {
	case bytes.HasPrefix(data, markUTF8):
		data, label = data[len(markUTF8):], ""
	case len(data)%2 != 0:
	case bytes.HasPrefix(data, markUTF16LE):
		return decodeAs(data, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM))
	case bytes.HasPrefix(data, markUTF16BE):
		return decodeAs(data, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM))
	}
	if label != "" && !isText(data) {
		if e, _ := charset.Lookup(label); e != nil {
			return decodeAs(data, e)
		}
	}
	return string(data), isText(data)
}

// DecodePage returns an HTML page as text. label is the encoding that the server declares, "" for none: then
// it is the one that the page declares, and otherwise what browsers take it for. Bytes that are wrong in the
// encoding become U+FFFD, as in browsers. ok is false if it is not text.
func DecodePage(page []byte, label string) (text string, ok bool) {
	if label == "" {
		_, label, _ = charset.DetermineEncoding(page[:min(len(page), 1024)], "")
	}
	if text, ok = Decode(page, label); !ok { // the encoding is unknown, or another one
		text, ok = Decode(page, "windows-1252")
	}
	return text, ok
}

func decodeAs(data []byte, e encoding.Encoding) (string, bool) {
	decoded, err := e.NewDecoder().Bytes(data)
	if err != nil || !isText(decoded) {
		return "", false
	}
	return string(decoded), true
}

// isText reports whether data is text in UTF-8. Text without a NUL byte is what editors
// and version control take for text.
func isText(data []byte) bool { return utf8.Valid(data) && !slices.Contains(data, 0) }
