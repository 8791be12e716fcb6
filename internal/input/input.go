// Package input turns what a user points at (words, standard input, files) into the
// text of a prompt.
package input

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"loki/internal/fault"
)

// Limits of what is taken into one prompt.
const (
	MaxFileSize = 10 << 20 // bytes of one file
	MaxSize     = 50 << 20 // bytes of standard input, and of all files together
)

// Document is one attached file.
type Document struct {
	Path string
	Text string
}

// ReadStdin reads all of r as text.
func ReadStdin(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading standard input: %w", err)
	case len(data) > MaxSize:
		return "", fault.New(fault.Usage, "standard input is larger than %d MiB", MaxSize>>20)
	case !utf8.Valid(data):
		return "", fault.New(fault.Usage, "standard input is not text in UTF-8")
	}
	return string(data), nil
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

// Load reads the files that sources name, in order, each once. A directory stands
// for the text files below it, ascending by path, without hidden directories;
// other files in it are passed over. A named file must be text.
func Load(sources []string) ([]Document, error) {
	var docs []Document
	seen := make(map[string]bool)
	total := 0
	add := func(path string, named bool) error {
		if seen[path] {
			return nil
		}
		seen[path] = true
		text, err := readFile(path)
		if err != nil {
			if _, isBinary := err.(*binaryError); isBinary {
				if !named {
					return nil
				}
				return fault.Wrap(fault.Usage, err, "")
			}
			return err
		}
		if total += len(text); total > MaxSize {
			return fault.New(fault.Usage, "the attached files hold more than %d MiB", MaxSize>>20)
		}
		docs = append(docs, Document{Path: path, Text: text})
		return nil
	}
	for _, source := range sources {
		if err := unsupported(source); err != nil {
			return nil, err
		}
		path, err := expandHome(source)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fault.New(fault.NotFound, "no file or directory at %s", source)
		}
		if !info.IsDir() {
			err = add(path, true)
		} else {
			err = walk(path, func(file string) error { return add(file, false) })
		}
		if err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// unsupported refuses the forms of source that are no plain path.
func unsupported(source string) error {
	switch {
	case strings.HasPrefix(source, "http://"), strings.HasPrefix(source, "https://"):
		return fault.New(fault.Usage, "%s: this version attaches files and directories only, not addresses", source).
			WithHint("fetch it first: curl -s %s | loki ...", source)
	case len(source) > 2 && strings.HasPrefix(source, "`") && strings.HasSuffix(source, "`"):
		return fault.New(fault.Usage, "%s: this version attaches files and directories only, not commands", source).
			WithHint("pipe it: %s | loki ...", strings.Trim(source, "`"))
	}
	return nil
}

func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return filepath.Clean(path), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}

func walk(root string, visit func(string) error) error {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, f := range files {
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// binaryError says that a file is not text.
type binaryError struct{ path, kind string }

func (e *binaryError) Error() string {
	return fmt.Sprintf("%s is not text in UTF-8 but %s", e.path, e.kind)
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	if !utf8.Valid(data) || slices.Contains(data, 0) {
		return "", &binaryError{path, http.DetectContentType(data)}
	}
	if len(data) > MaxFileSize {
		return "", fault.New(fault.Usage, "%s is larger than %d MiB", path, MaxFileSize>>20)
	}
	return string(data), nil
}

// Attach puts documents behind the text, each under a banner with its path. A single
// document without text stands for itself.
func Attach(text string, docs []Document) string {
	if len(docs) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	for _, d := range docs {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		if len(docs) > 1 || text != "" {
			fmt.Fprintf(&b, "\n============ FILE: %s ============\n", d.Path)
		}
		b.WriteString(d.Text)
	}
	return b.String()
}
