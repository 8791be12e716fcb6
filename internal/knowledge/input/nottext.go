package input

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"loki/internal/base/fault"
)

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
