package input

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"loki/internal/fault"
)

// The byte order marks that a text may begin with.
var (
	markUTF8    = []byte{0xef, 0xbb, 0xbf}
	markUTF16LE = []byte{0xff, 0xfe}
	markUTF16BE = []byte{0xfe, 0xff}
)

// Decode returns the text of a file; ok is false if data is not text in UTF-8, or in UTF-16 with a
// byte order mark.
func Decode(data []byte) (text string, ok bool) { return decode(data, "") }

// decode returns data as text without a byte order mark. label names its encoding, "" if
// that is not known: then it is what the byte order mark says, or UTF-8. ok is false if
// data is not text in that encoding.
func decode(data []byte, label string) (text string, ok bool) {
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

func decodeAs(data []byte, e encoding.Encoding) (string, bool) {
	decoded, err := e.NewDecoder().Bytes(data)
	if err != nil || !isText(decoded) || slices.Contains(decoded, 0) {
		return "", false
	}
	return string(decoded), true
}

// pageCharset returns the label of the encoding that an HTML page declares, and otherwise
// what browsers take it for.
func pageCharset(page []byte) string {
	_, name, _ := charset.DetermineEncoding(page[:min(len(page), 1024)], "")
	return name
}

// isText reports whether data is text in UTF-8. Text without a NUL byte is what editors
// and version control take for text.
func isText(data []byte) bool { return utf8.Valid(data) && !slices.Contains(data, 0) }

// NotText returns the error for data that is not text in UTF-8. With a NUL byte it is no
// text at all but a document, which the loader called ext could convert.
func NotText(name string, data []byte, ext string) error {
	if kind, _, _ := strings.Cut(http.DetectContentType(data), ";"); slices.Contains(data, 0) || !strings.HasPrefix(kind, "text/") {
		err := fault.New(fault.Usage, "%s is not text in UTF-8 but %s", name, kind)
		if ext != "" {
			err = err.WithHint("a command at document_loaders.%s in config.yaml can turn such files into text", ext)
		}
		return err
	}
	return fault.New(fault.Usage, "%s is not text in UTF-8: %s", name, invalidByte(data)).
		WithHint("if it is in Latin-1, convert it first: iconv -f ISO-8859-1 -t UTF-8")
}

// invalidByte says where the first byte is that is not UTF-8.
func invalidByte(data []byte) string {
	line, column := 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size <= 1:
			return fmt.Sprintf("byte 0x%02x at line %d, column %d", data[0], line, column)
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
		data = data[size:]
	}
	return "a byte that is none"
}
