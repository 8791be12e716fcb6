// Package document turns documents of office programs, PDF files, electronic books and web pages into
// text for models.
//
// What has headings, lists and tables becomes Markdown. The text is what a reader sees: with headers and footers, numbers
// of clauses, numbers as cells show them; without comments, hidden text, and what was deleted with change tracking. What is
// left out of that, such as pictures, is named. Documents come from outside: the work that they cause is bounded, a part that
// is damaged does not lose the rest, and a document without any text is an error.
package document

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/document/pdf"
)

// Limits of a document.
const (
	MaxSize = 64 << 20  // bytes of the document
	maxText = 64 << 20  // bytes of its text
	maxRead = 256 << 20 // bytes of what is packed in it
	maxTime = 2 * time.Minute
)

// reader turns a document into text.
type reader struct {
	ext  string // extension of files with such text
	read func(ctx context.Context, data []byte) (text string, unread []string, err error)
}

// readerOf returns the reader for documents with an extension; its read is nil if there is none.
func readerOf(ext string) reader {
	switch ext {
	case "pdf":
		return reader{"txt", pdf.Text}
	case "docx", "docm":
		return reader{"md", office(readWord)}
	case "pptx", "pptm":
		return reader{"md", office(readSlides)}
	case "xlsx", "xlsm":
		return reader{"md", office(readSheets)}
	case "odt", "ods", "odp":
		return reader{"md", office(readOpenDocument)}
	case "epub":
		return reader{"md", office(readBook)}
	case "rtf":
		return reader{"txt", readRTF}
	case "html", "htm", "xhtml":
		return reader{"md", readPage}
	}
	return reader{}
}

// Reads reports whether documents with the extension ext, without the dot and in lower case, are read.
func Reads(ext string) bool { return readerOf(ext).read != nil }

// Errors of [Text].
var (
	errNoWords  = errors.New("the page has no text; its source can be had on standard input: loki -f - < PAGE.html")
	errNoText   = errors.New("it holds no text; if its pages are pictures, a program for text recognition such as ocrmypdf can add it")
	errTooLarge = fmt.Errorf("it holds more text than is read: %d MiB, or for a small document 16 MiB and 32 times its size", maxText>>20)
)

// Content is what was read of a document. The zero value of Unread says that nothing was left out.
type Content struct {
	Text   string   // with a line feed at its end
	Ext    string   // the extension of files with such text, "md" or "txt"
	Unread []string // what was not read, as short phrases such as "3 pictures without text" or "the header"
}

// Text returns the text of a document with the extension kind, see [Reads].
func Text(ctx context.Context, kind string, data []byte) (c Content, err error) {
	r := readerOf(kind)
	switch {
	case r.read == nil:
		return c, fmt.Errorf("documents of type %s cannot be read", kind)
	case len(data) > MaxSize:
		return c, fmt.Errorf("it is larger than %d MiB", MaxSize>>20)
	}
	defer func() { // a mistake in a reader must not end a build over thousands of documents
		if problem := recover(); problem != nil {
			c, err = Content{}, fmt.Errorf("the %s document is malformed: %v", kind, problem)
		}
	}()
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	text, unread, err := r.read(limited, data)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it could not be converted within %v", maxTime)
		}
		return c, err
	}
	text = strings.TrimRightFunc(visible(strings.ToValidUTF8(text, "\uFFFD")), unicode.IsSpace)
	switch {
	case len(text) > maxText:
		return c, errTooLarge
	case text == "" && strings.Contains(kind, "htm"):
		return c, errNoWords
	case text == "":
		return c, errNoText
	}
	return Content{strings.TrimLeft(text, " \t\r\n") + "\n", r.ext, unread}, nil // but not the ends of empty pages
}

// visible returns a text without invisible characters that divide words for a search: soft hyphens, blanks and
// joiners without width, marks of direction. Joiners stay where they change letters, as in Persian and Hindi, or signs.
func visible(s string) string {
	var out strings.Builder
	from := 0
	var before rune
	for i, r := range s {
		switch {
		case r < 0xad:
		case r == 0x200c || r == 0x200d:
			if before >= 0x590 {
				break
			}
			fallthrough
		case r == 0xad || r == 0x200b || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x2069 || r == 0xfeff:
			out.WriteString(s[from:i])
			from = i + utf8.RuneLen(r)
			continue
		}
		before = r
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}
