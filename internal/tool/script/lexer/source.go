package lexer

import (
	"bytes"
	"strings"

	"loki/internal/tool/script/signature"
)

// Source returns the text of a file without byte order mark, and with \n in place of
// \r\n and \r. A NUL byte is an error, since no language allows it and some
// interpreters stop there.
func Source(file []byte) (string, error) {
	file = bytes.TrimPrefix(file, []byte("\uFEFF"))
	if i := bytes.IndexByte(file, 0); i >= 0 {
		return "", signature.Errorf(bytes.Count(file[:i], []byte("\n"))+1, "the script has a NUL byte")
	}
	text := strings.ReplaceAll(string(file), "\r\n", "\n")
	return strings.ReplaceAll(text, "\r", "\n"), nil
}
