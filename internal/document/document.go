// Package document turns documents of office programs, PDF files, electronic books and web pages into
// text for models.
//
// What has headings, lists and tables becomes Markdown. Pictures, formulas, comments, and what was
// deleted with change tracking are left out. Documents come from outside: the work that they cause is
// bounded, and one that is malformed is an error.
package document

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"loki/internal/document/pdf"
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
		return reader{"md", readWord}
	case "pptx", "pptm":
		return reader{"md", readSlides}
	case "xlsx", "xlsm":
		return reader{"md", readSheets}
	case "odt", "ods", "odp":
		return reader{"md", readOpenDocument}
	case "epub":
		return reader{"md", readBook}
	case "rtf":
		return reader{"txt", readRTF}
	}
	return reader{}
}

// Reads reports whether documents with the extension ext, without the dot and in lower case, are read.
func Reads(ext string) bool { return readerOf(ext).read != nil }

// Errors of [Text].
var (
	errNoText   = errors.New("it holds no text; if its pages are pictures, a program for text recognition such as ocrmypdf can add it")
	errTooLarge = fmt.Errorf("it holds more than %d MiB of text", maxText>>20)
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
	text = strings.TrimRightFunc(strings.ToValidUTF8(text, "\uFFFD"), unicode.IsSpace)
	switch {
	case len(text) > maxText:
		return c, errTooLarge
	case text == "":
		return c, errNoText
	}
	return Content{strings.TrimLeft(text, " \t\r\n") + "\n", r.ext, unread}, nil // but not the ends of empty pages
}
