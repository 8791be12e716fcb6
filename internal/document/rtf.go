package document

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf16"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// rtfGroup is what a pair of braces in RTF changes.
type rtfGroup struct {
	skip     bool // its text is not that of the document
	fallback int  // characters behind a \u that stand for it
}

// rtf is the state of reading RTF.
type rtf struct {
	out     bytes.Buffer
	group   rtfGroup
	outer   []rtfGroup
	charset encoding.Encoding
	bytes   []byte // characters in charset that were not decoded yet
	units   []uint16
	ignore  int // characters to leave out
}

// readRTF reads a document in RTF.
func readRTF(ctx context.Context, data []byte) (text string, unread []string, err error) {
	if !bytes.HasPrefix(data, []byte(`{\rtf`)) {
		return "", nil, errors.New("it is not an RTF document")
	}
	r := &rtf{group: rtfGroup{fallback: 1}, charset: charmap.Windows1252}
	for i := 0; i < len(data); {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		switch c := data[i]; c {
		case '{':
			r.flush()
			if len(r.outer) >= maxDepth {
				return "", nil, errors.New("the document is malformed: its groups lie too deep in each other")
			}
			r.outer = append(r.outer, r.group)
			i++
		case '}':
			r.flush()
			if n := len(r.outer) - 1; n >= 0 {
				r.group, r.outer = r.outer[n], r.outer[:n]
			}
			r.ignore = 0
			i++
		case '\\':
			i += r.control(data[i:])
		case '\r', '\n':
			i++
		default:
			r.char(c)
			i++
		}
	}
	r.flush()
	return blankLines().ReplaceAllString(r.out.String(), "\n\n"), nil, nil
}

var blankLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n\s*\n`) })

// char takes a byte of text in the document's encoding.
func (r *rtf) char(c byte) {
	switch {
	case r.ignore > 0:
		r.ignore--
	case !r.group.skip:
		r.flushUnits()
		r.bytes = append(r.bytes, c)
	}
}

func (r *rtf) write(s string) {
	r.flush()
	if !r.group.skip {
		r.out.WriteString(s)
	}
}

func (r *rtf) flushUnits() {
	if len(r.units) > 0 {
		r.out.WriteString(string(utf16.Decode(r.units)))
		r.units = r.units[:0]
	}
}

func (r *rtf) flush() {
	r.flushUnits()
	if len(r.bytes) > 0 {
		text, err := r.charset.NewDecoder().Bytes(r.bytes)
		if err == nil {
			r.out.Write(text)
		}
		r.bytes = r.bytes[:0]
	}
}

// control takes a control word or symbol at the start of data, and returns its length.
func (r *rtf) control(data []byte) int {
	if len(data) < 2 {
		return 1
	}
	if c := data[1]; c < 'a' || c > 'z' {
		switch c {
		case '\'':
			if len(data) >= 4 {
				if n, err := strconv.ParseUint(string(data[2:4]), 16, 8); err == nil {
					r.char(byte(n))
				}
				return 4
			}
		case '*':
			r.group.skip = true
		case '\\', '{', '}':
			r.char(c)
		case '~':
			r.write("\u00a0")
		case '_':
			r.write("-")
		case '\n', '\r':
			r.write("\n")
		}
		return 2
	}
	end := 1
	for end < len(data) && data[end] >= 'a' && data[end] <= 'z' || end < len(data) && data[end] >= 'A' && data[end] <= 'Z' {
		end++
	}
	word, from := string(data[1:end]), end
	if end < len(data) && data[end] == '-' {
		end++
	}
	for end < len(data) && data[end] >= '0' && data[end] <= '9' {
		end++
	}
	number, err := strconv.Atoi(string(data[from:end]))
	r.word(word, number, err == nil)
	if end < len(data) && data[end] == ' ' {
		end++
	}
	if word == "bin" && number > 0 { // binary data follow
		end += min(number, len(data)-end)
	}
	return end
}

func (r *rtf) word(word string, n int, has bool) {
	switch word {
	case "par", "sect", "page", "row":
		r.write("\n\n")
	case "line":
		r.write("\n")
	case "tab":
		r.write(" ")
	case "cell":
		r.flush()
		r.out.Truncate(len(bytes.TrimRight(r.out.Bytes(), "\n ")))
		r.write(" | ")
	case "footnote":
		r.group.skip = false
		r.write(" ")
	case "emdash":
		r.write("—")
	case "endash":
		r.write("–")
	case "bullet":
		r.write("•")
	case "lquote":
		r.write("‘")
	case "rquote":
		r.write("’")
	case "ldblquote":
		r.write("“")
	case "rdblquote":
		r.write("”")
	case "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "footer", "headerl", "headerr", "footerl", "footerr", "fldinst", "filetbl", "listtable", "listoverridetable":
		r.group.skip = true
	case "ansicpg":
		if e, _ := charset.Lookup("windows-" + strconv.Itoa(n)); e != nil && has {
			r.charset = e
		}
	case "uc":
		r.group.fallback = min(max(n, 0), 16)
	case "u":
		if has && !r.group.skip {
			if len(r.bytes) > 0 {
				r.flush()
			}
			r.units = append(r.units, uint16(n))
		}
		r.ignore = r.group.fallback
	}
}
