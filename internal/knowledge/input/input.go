// Package input turns what a user points at (words, standard input, files, addresses,
// commands) into a message to a model.
//
// A source is one value of -f:
//
//	%%                the reply before
//	`command`         what a command prints
//	https://...       a page or file of the web
//	name:rest         what the document loader called name makes of the rest
//	anything else     a file, a directory, or a pattern such as src/**/*.go
//
// A [Loader] loads sources into documents and images; [Attachments.Message] joins them
// with the user's own words.
package input

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"loki/internal/base/document"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// Limits of the attachments of one prompt.
const (
	MaxFileSize = 10 << 20 // bytes of one file, page or output
	MaxSize     = 50 << 20 // bytes of standard input, and of all sources together
)

// ReadStdin reads all of r as text in UTF-8, or in UTF-16 with a byte order mark.
func ReadStdin(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading standard input: %w", err)
	case len(data) > MaxSize:
		return "", fault.New(fault.Usage, "standard input is larger than %d MiB", MaxSize>>20)
	}
	text, ok := document.Decode(data, "")
	if !ok && utf8.Valid(data) {
		return string(data), nil // with NUL bytes, such as a list of find -print0
	}
	if !ok {
		return "", NotText("standard input", data, "")
	}
	return text, nil
}

// Text joins the words of the command line with what standard input held: the words
// separated by blanks, then a line feed and the input.
func Text(words []string, stdin string) string {
	text := strings.Join(words, " ")
	switch {
	case text == "":
		return stdin
	case stdin == "":
		return text
	}
	return text + "\n" + stdin
}

// Kind says where a [Document] comes from.
type Kind string

// The kinds, as the banner above a document has them.
const (
	File    Kind = "FILE"
	Command Kind = "CMD"
	URL     Kind = "URL"
	Loaded  Kind = "FROM" // by a document loader
)

// Document is one attached text.
type Document struct {
	Kind Kind
	Name string // path, address or command
	Text string
}

// Image is one attached picture.
type Image struct {
	Name string // path or address
	URL  string // data: URL
}

// Attachments are what sources held.
type Attachments struct {
	Documents []Document
	Images    []Image
	Reply     *string // the reply before, if a source asked for it

	PassedOver []string // files below directories that cannot be used, each with the reason: "FILE (REASON)"
	Withheld   []string // files below directories that a rule keeps from models
	Unread     []string // what was not read of documents, a warning for each: "FILE: not read: 1 chart"
}

// unread takes note of what was not read of a document.
func (a *Attachments) unread(name string, what []string) {
	if len(what) > 0 {
		a.Unread = append(a.Unread, name+": not read: "+strings.Join(what, ", "))
	}
}

// Note returns what the user should know about files that are not attached, empty if that is nothing.
func (a Attachments) Note() string {
	const most = 5
	shown := a.Withheld
	switch {
	case len(shown) == 0:
		return ""
	case len(shown) > most:
		shown = append(slices.Clone(shown[:most]), "...")
	}
	return fmt.Sprintf("%s not attached, as a rule or an ignore file keeps files from models: %s", text.Count(len(a.Withheld), "file"), strings.Join(shown, ", "))
}

// Empty reports whether there is nothing.
func (a Attachments) Empty() bool {
	return len(a.Documents) == 0 && len(a.Images) == 0 && a.Reply == nil
}

// Text appends the documents to the text, each under a banner with its kind and name.
// A single document without text has no banner.
func (a Attachments) Text(text string) string {
	var b strings.Builder
	b.WriteString(text)
	paragraph := func() {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
	}
	if a.Reply != nil {
		paragraph()
		b.WriteString(*a.Reply)
	}
	bare := len(a.Documents) == 1 && b.Len() == 0
	for _, d := range a.Documents {
		paragraph()
		if !bare {
			fmt.Fprintf(&b, "============ %s: %s ============\n", d.Kind, d.Name)
		}
		b.WriteString(d.Text)
	}
	return b.String()
}

// Message returns the message of a user who says text and attaches a. It has no parts
// if there is nothing to say.
func (a Attachments) Message(text string) chat.Message {
	m := chat.Message{Role: chat.User}
	if text = a.Text(text); text != "" {
		m.Parts = append(m.Parts, chat.Part{Type: chat.TextPart, Text: text})
	}
	for _, image := range a.Images {
		m.Parts = append(m.Parts, chat.Part{Type: chat.ImagePart, URL: image.URL})
	}
	return m
}
