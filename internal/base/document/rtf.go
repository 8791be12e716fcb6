package document

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"

	"loki/internal/base/text"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// rtfGroup is what a pair of braces in RTF changes.
type rtfGroup struct {
	skip     bool // its text is not that of the document
	unseen   bool // its text is hidden, or was deleted
	fallback int  // characters after a \u that replace it
	font     int
	table    bool // it is the list of fonts
	margin   int  // where the text of a header or a footer begins, and 1; 0 if it is none
}

// rtfFont is a font of the document.
type rtfFont struct {
	charset encoding.Encoding // nil for that of the document
	signs   bool              // it has signs in place of letters
	name    string
}

// rtf is the state of reading RTF.
type rtf struct {
	unread
	out     bytes.Buffer
	group   rtfGroup
	outer   []rtfGroup
	charset encoding.Encoding
	fonts   map[int]*rtfFont
	first   int    // font of the text
	bytes   []byte // characters in the encoding of the font that were not decoded yet
	units   []uint16
	ignore  int             // characters to leave out
	margins map[string]bool // texts of headers and footers
}

// readRTF reads a document in RTF.
func readRTF(ctx context.Context, data []byte) (string, []string, error) {
	if !bytes.HasPrefix(data, []byte(`{\rtf`)) {
		return "", nil, errors.New("it is not an RTF document")
	}
	r := &rtf{group: rtfGroup{fallback: 1}, charset: charmap.Windows1252, fonts: make(map[int]*rtfFont), margins: make(map[string]bool)}
	for i := 0; i < len(data); {
		if i%(1<<12) == 0 && ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		switch c := data[i]; c {
		case '{':
			r.flush()
			if len(r.outer) >= maxDepth {
				return "", nil, errors.New("the document is malformed: its groups lie too deep in each other")
			}
			r.outer = append(r.outer, r.group)
			r.group.margin = 0
			i++
		case '}':
			r.flush()
			r.endMargin()
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
	return blankLines().ReplaceAllString(r.out.String(), "\n\n"), r.list(), nil
}

var blankLines = text.Regexp(`\n\s*\n`)

// endMargin ends a header or a footer. One that was there before, or that has figures only, is left out.
func (r *rtf) endMargin() {
	if r.group.margin == 0 {
		return
	}
	text := strings.TrimSpace(string(r.out.Bytes()[min(r.group.margin-1, r.out.Len()):]))
	if r.margins[text] || strings.Trim(text, "0123456789 -–|/") == "" {
		r.out.Truncate(min(r.group.margin-1, r.out.Len()))
		return
	}
	r.margins[text] = true
	r.out.WriteString("\n\n")
}

// char takes a byte of text in the encoding of the font.
func (r *rtf) char(c byte) {
	switch {
	case r.ignore > 0:
		r.ignore--
	case r.group.table && r.group.skip:
		if f := r.fonts[r.group.font]; f != nil && len(f.name) < 32 && c != ';' {
			f.name += string(rune(c))
		}
	case !r.group.skip:
		r.flushUnits()
		r.bytes = append(r.bytes, c)
	}
}

func (r *rtf) write(s string) {
	r.flush()
	r.put(s)
}

// put writes a text, unless it is hidden.
func (r *rtf) put(s string) {
	switch {
	case r.group.skip:
	case !r.group.unseen:
		r.out.WriteString(s)
	case strings.TrimSpace(s) != "":
		r.say("hidden text")
	}
}

func (r *rtf) flushUnits() {
	if len(r.units) > 0 {
		r.put(string(utf16.Decode(r.units)))
		r.units = r.units[:0]
	}
}

func (r *rtf) flush() {
	r.flushUnits()
	if len(r.bytes) == 0 {
		return
	}
	f := r.fonts[r.group.font]
	if f != nil && f.signs {
		for _, c := range r.bytes {
			r.put(symbol(f.name, rune(c)))
		}
		r.bytes = r.bytes[:0]
		return
	}
	e := r.charset
	if f != nil && f.charset != nil {
		e = f.charset
	}
	if text, err := e.NewDecoder().Bytes(r.bytes); err == nil {
		r.put(string(text))
	}
	r.bytes = r.bytes[:0]
}

// control takes a control word or symbol at the start of data, and returns its length.
func (r *rtf) control(data []byte) int {
	if len(data) < 2 {
		return 1
	}
	if c := data[1]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
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
			r.write("\n\n")
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

// signs are the words that mean characters.
var signs = map[string]string{
	"par": "\n\n", "sect": "\n\n", "page": "\n\n", "row": "\n\n", "nestrow": " ", "line": "\n", "lbr": "\n", "column": "\n", "tab": " ", "nestcell": " ", "emspace": " ", "enspace": " ",
	"qmspace": " ", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "zwnj": "\u200c", "zwj": "\u200d",
}

func (r *rtf) word(word string, n int, has bool) {
	if sign := signs[word]; sign != "" {
		if fallback := r.ignore > 0 && strings.TrimSpace(sign) != ""; !fallback {
			r.write(sign)
		}
		r.ignore = 0
		return
	}
	on := !has || n != 0
	switch word {
	case "cell":
		r.flush()
		if !r.group.skip {
			r.out.Truncate(len(bytes.TrimRight(r.out.Bytes(), "\n ")))
		}
		r.write(" | ")
	case "footnote":
		r.group.skip = false
		r.write(" ")
	case "shptxt":
		r.group.skip = false
		r.write("\n")
	case "ud", "shppict", "result":
		r.group.skip = false
	case "header", "footer", "headerl", "headerr", "headerf", "footerl", "footerr", "footerf":
		if !r.group.skip {
			r.flush()
			r.group.margin = r.out.Len() + 1
		}
	case "pict", "object":
		if !r.group.skip {
			r.count(1, map[string]string{"pict": "picture", "object": "embedded object"}[word], map[string]string{"pict": " without text"}[word])
		}
		r.group.skip = true
	case "annotation":
		r.count(1, "comment", "")
	case "fonttbl":
		r.group.table, r.group.skip = true, true
	case "colortbl", "stylesheet", "info", "fldinst", "filetbl", "listtable", "listoverridetable", "shprslt", "nonshppict", "upr":
		r.group.skip = true
	case "deff":
		r.first, r.group.font = n, n
	case "f":
		r.flush()
		if r.group.font = n; r.group.table && len(r.fonts) < 1<<12 {
			r.fonts[n] = &rtfFont{}
		}
	case "fcharset", "cpg":
		if f := r.fonts[r.group.font]; f != nil && r.group.table {
			if f.signs = word == "fcharset" && n == 2; word == "cpg" {
				f.charset = codePage(n)
			} else {
				f.charset = codePage(fontPages[n])
			}
		}
	case "plain":
		r.flush()
		r.group.font, r.group.unseen = r.first, false
	case "v", "deleted":
		r.flush()
		r.group.unseen = on
	case "mac", "pc", "pca", "ansicpg":
		r.flush()
		if e := codePage(cmp.Or(map[string]int{"mac": 10000, "pc": 437, "pca": 850}[word], n)); e != nil {
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

// fontPages are the code pages of the character sets of Windows fonts. That of 0 is the document's.
var fontPages = map[int]int{
	77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}

// codePages are encodings by their numbers on Windows, besides those that are called windows and the number.
var codePages = map[int]encoding.Encoding{
	437:   charmap.CodePage437,
	850:   charmap.CodePage850,
	852:   charmap.CodePage852,
	855:   charmap.CodePage855,
	858:   charmap.CodePage858,
	860:   charmap.CodePage860,
	862:   charmap.CodePage862,
	863:   charmap.CodePage863,
	865:   charmap.CodePage865,
	866:   charmap.CodePage866,
	932:   japanese.ShiftJIS,
	936:   simplifiedchinese.GBK,
	949:   korean.EUCKR,
	950:   traditionalchinese.Big5,
	10000: charmap.Macintosh,
	54936: simplifiedchinese.GB18030,
	65001: unicode.UTF8,
}

// codePage returns an encoding by its number on Windows, nil if it is not known.
func codePage(n int) encoding.Encoding {
	if e := codePages[n]; e != nil {
		return e
	}
	e, _ := charset.Lookup("windows-" + strconv.Itoa(n))
	return e
}
