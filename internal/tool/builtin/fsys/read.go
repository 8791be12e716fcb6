package fsys

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"loki/internal/base/text"
)

// sniffed is how many bytes are examined to decide whether a file is text.
const sniffed = 8 << 10

// Errors that reading may end with; the errors of this package wrap them and name the
// path.
var (
	errBinary    = errors.New("is not text")
	ErrTooLarge  = errors.New("is too large")
	ErrDirectory = errors.New("is a directory")
	errIrregular = errors.New("is neither a file nor a directory")
)

// IsText reports whether data looks like the start of a text: it has no NUL byte, and few
// bytes that are not UTF-8.
func IsText(data []byte) bool {
	data = data[:min(len(data), sniffed)]
	if bytes.IndexByte(data, 0) >= 0 {
		return false
	}
	bad, all := 0, 0
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(data) {
			bad++
		}
		all++
		data = data[n:]
	}
	return bad*10 <= all*3
}

// Open opens the regular file at p.
func Open(p Path) (*os.File, fs.FileInfo, error) {
	f, err := OpenReal(p.Real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, p.notFound(p.Shown)
	}
	if err != nil {
		if info, statErr := os.Lstat(p.Real); statErr == nil && info.Mode()&fs.ModeSymlink == 0 {
			err = cmp.Or(regular(p.Shown, info), err) // a socket cannot be opened
		}
		return nil, nil, Describe(p.Shown, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(p.Shown, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// notFound returns the error for a file that does not exist.
func (p Path) notFound(shown string) error {
	return &describedError{shown + ": no such file or directory" + p.alike(), fs.ErrNotExist}
}

// alike returns a note on a file whose name looks like that of p, empty if there is none: it has other blanks, as in names
// that macOS gives pictures of the screen, or accents in another form.
func (p Path) alike() string {
	look := func(name string) string {
		return norm.NFC.String(strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return ' '
			}
			return r
		}, name))
	}
	entries, _ := os.ReadDir(filepath.Dir(p.Abs))
	for _, e := range entries {
		if look(e.Name()) == look(filepath.Base(p.Abs)) {
			return ", but one whose name looks the same; as a JSON string its name is " + strconv.QuoteToASCII(e.Name())
		}
	}
	return ""
}

// regular returns an error unless info is that of a regular file.
func regular(shown string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s %w", shown, ErrDirectory)
	case !info.Mode().IsRegular():
		return Irregular(shown, info.Mode())
	}
	return nil
}

// Irregular returns the error for what is neither a file nor a directory.
func Irregular(shown string, mode fs.FileMode) error {
	return fmt.Errorf("%s %w but %s", shown, errIrregular, text.FileKind(mode))
}

// Read returns the contents of a file of at most limit bytes.
func Read(p Path, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := Open(p)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, info, fmt.Errorf("%s %w: %d bytes, and the limit is %d", p.Shown, ErrTooLarge, info.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // sizes of files in /proc are 0
	switch {
	case err != nil:
		return nil, info, Describe(p.Shown, err)
	case int64(len(data)) > limit:
		return nil, info, fmt.Errorf("%s %w: more than %d bytes", p.Shown, ErrTooLarge, limit)
	}
	return data, info, nil
}

// Text is like Read for a file that must be text.
func Text(p Path, limit int64) ([]byte, fs.FileInfo, error) {
	data, info, err := Read(p, limit)
	if err == nil && !IsText(data) {
		err = Binary(p.Shown, data, int64(len(data)))
	}
	return data, info, err
}

// EditorText returns the text of a regular file as the editor has it, also of one that was never saved. Ok is false if it has none.
func (r Root) EditorText(ctx context.Context, p Path, limit int64) (text string, ok bool) {
	if r.Files == nil {
		return "", false
	}
	info, err := os.Stat(p.Real)
	saved := err == nil
	if saved && !info.Mode().IsRegular() || !saved && !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	text, err = r.Files.ReadText(ctx, p.Real)
	known := err == nil && (saved || text != "") // editors have an empty text for a file that does not exist
	return text, known && int64(len(text)) <= limit && IsText([]byte(text))
}

// Binary returns the error for a file of size bytes that begins so and is not text.
func Binary(shown string, begin []byte, size int64) error {
	if StyleOf(begin).Wide {
		return fmt.Errorf("%s %w in UTF-8 but in UTF-16; iconv -f UTF-16 -t UTF-8 converts it", shown, errBinary)
	}
	return fmt.Errorf("%s %w but binary data of %d bytes", shown, errBinary, size)
}

// Describe returns an error of the file system with a text for a model: with the path as
// the model wrote it, and without the name of a system call.
func Describe(shown string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &describedError{shown + ": no such file or directory", err}
	case errors.Is(err, fs.ErrPermission):
		return &describedError{shown + ": permission denied", err}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &describedError{shown + ": " + e.Err.Error(), err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return &describedError{shown + ": " + e.Err.Error(), err}
	}
	return fmt.Errorf("%s: %w", shown, err)
}

// describedError replaces the text of another error.
type describedError struct {
	text string
	err  error
}

func (e *describedError) Error() string { return e.text }

func (e *describedError) Unwrap() error { return e.err }
