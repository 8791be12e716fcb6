// Package pattern is the language in which users and models name files, in all places
// where they do. It is that of package doublestar:
//
//   - any text without a slash
//     **       as a whole name: any number of directories, also none
//     ?        one character, not a slash
//     [a-z]    one of these characters; [!a-z] and [^a-z] one of the others
//     {a,b}    a or b
//     \x       x itself
//
// A path has slashes, and a pattern matches all of it. Names in which letters with marks are
// composed or decomposed are equal, and so are letters in either case on systems whose
// file systems do not distinguish them.
//
// Names with brackets and braces are common. A pattern has two readings: in the plain one these
// characters are special, in the literal one they are themselves. [Literal] chooses the
// literal reading of what exists, and [CompileBoth] compiles both.
package pattern

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// ErrMalformed reports a pattern that cannot be read. Errors of [Compile] wrap it.
var ErrMalformed = errors.New("malformed pattern")

// Limits of a pattern.
const (
	maxText     = 4096 // bytes
	maxBranches = 256
)

// special are the characters that mean something in patterns.
const special = `*?[]{}\`

// Pattern is a compiled pattern. It may be used from several goroutines.
type Pattern struct{ branches []Branch }

// Branch is one of the patterns without alternatives that a pattern consists of.
type Branch struct {
	// Dir is what it begins with up to the first wildcard: a clean path with slashes, and "" if
	// the wildcard is in the first name.
	Dir string
	// Glob is the rest in the language of doublestar, without braces, and "" without a wildcard.
	Glob string

	dir, glob string // folded
}

// Compile reads a pattern.
func Compile(text string) (*Pattern, error) {
	return compile(text, false)
}

// CompileBoth reads a pattern in both readings: it matches what either of them matches, with
// each pair of brackets or braces taken either way. It is for rules that must not miss a file.
func CompileBoth(text string) (*Pattern, error) {
	p, err := compile(text, true)
	if !errors.Is(err, errMany) {
		return p, err
	}
	if p, err = compile(text, false); err != nil {
		return nil, err
	}
	literal, err := compile(escape(text, `[]{}\`), false)
	if err != nil {
		return nil, err
	}
	p.branches = append(p.branches, literal.branches...)
	return p, nil
}

func compile(text string, both bool) (*Pattern, error) {
	text = toSlashes(text)
	if len(text) > maxText {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, maxText)
	}
	texts, err := expand(text, both)
	if err == nil && both && strings.Contains(text, `\`) {
		literal := strings.ReplaceAll(text, `\`, `\\`)
		more, wrong := expand(literal, true)
		if wrong != nil {
			more, wrong = expand(escape(text, `[]{}\`), false)
		}
		texts, err = append(texts, more...), wrong
	}
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrMalformed, text, err)
	}
	p := &Pattern{}
	for _, t := range texts {
		p.branches = append(p.branches, newBranch(clean(t)))
	}
	return p, nil
}

// toSlashes returns text with slashes between names. Where names are separated by backslashes,
// these are no escapes.
func toSlashes(text string) string {
	if filepath.Separator == '\\' {
		return filepath.ToSlash(text)
	}
	return text
}

// Exactly returns the pattern of one path.
func Exactly(path string) *Pattern {
	return &Pattern{branches: []Branch{newBranch(clean(Escape(filepath.ToSlash(path))))}}
}

// Branches returns what p consists of, at least one.
func (p *Pattern) Branches() []Branch { return p.branches }

// Match reports whether p matches a path with slashes.
func (p *Pattern) Match(path string) bool {
	path = fold(path)
	for i := range p.branches {
		if rest, ok := p.branches[i].rest(path); ok && p.branches[i].match(rest) {
			return true
		}
	}
	return false
}

// Covers reports whether p matches a path or a directory that it is in.
func (p *Pattern) Covers(path string) bool {
	path = fold(path)
	for i := range p.branches {
		b := &p.branches[i]
		if rest, ok := b.rest(path); ok && (b.glob == "" || b.match(rest) || rest != "" && doublestar.MatchUnvalidated(b.glob+"/**", rest)) {
			return true
		}
	}
	return false
}

// Reaches reports whether p may match something below a directory.
func (p *Pattern) Reaches(dir string) bool {
	dir = fold(dir)
	for i := range p.branches {
		b := &p.branches[i]
		if below(dir, b.dir) != "" || dir == "" {
			return true
		}
		rest, ok := b.rest(dir)
		if ok && b.glob != "" && (strings.Contains(b.glob, "**") || rest == "" || strings.Count(rest, "/") < strings.Count(b.glob, "/")) {
			return true
		}
	}
	return false
}

// At returns the branch with its Dir below another directory.
func (b Branch) At(dir string) Branch {
	b.Dir = strings.TrimSuffix(dir, "/") + "/" + strings.TrimPrefix(b.Dir, "/")
	if b.Dir != "/" {
		b.Dir = strings.TrimSuffix(b.Dir, "/")
	}
	b.dir = fold(b.Dir)
	return b
}

// In returns the branch with another Dir in place of its own.
func (b Branch) In(dir string) Branch {
	b.Dir, b.dir = dir, fold(dir)
	return b
}

// String returns the branch as a pattern.
func (b Branch) String() string {
	switch {
	case b.Glob == "":
		return Escape(b.Dir)
	case b.Dir == "":
		return b.Glob
	}
	return strings.TrimSuffix(Escape(b.Dir), "/") + "/" + b.Glob
}

// MarshalText implements [encoding.TextMarshaler].
func (b Branch) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (b *Branch) UnmarshalText(text []byte) error {
	*b = newBranch(string(text))
	return nil
}

// Of returns the pattern of branches.
func Of(branches ...Branch) *Pattern { return &Pattern{branches: branches} }

func newBranch(text string) Branch {
	b := Branch{Dir: unescape(text)}
	if at := firstWildcard(text); at < len(text) {
		slash := strings.LastIndexByte(text[:at], '/')
		b.Dir, b.Glob = unescape(text[:max(slash, 0)]), text[slash+1:]
		if slash == 0 {
			b.Dir = "/"
		}
	}
	if b.Dir != "" {
		b.Dir = path.Clean(b.Dir)
	}
	b.dir, b.glob = fold(b.Dir), fold(b.Glob)
	return b
}

// rest returns what a folded path has after the directory of b.
func (b *Branch) rest(path string) (rest string, ok bool) {
	switch {
	case path == b.dir:
		return "", true
	case b.dir == "":
		return path, !strings.HasPrefix(path, "/")
	}
	rest = below(b.dir, path)
	return rest, rest != ""
}

// below returns path relative to dir, "" if it is not below that.
func below(dir, path string) string {
	rest, ok := strings.CutPrefix(path, dir)
	if !ok || dir == "" {
		return ""
	}
	if !strings.HasSuffix(dir, "/") {
		if rest, ok = strings.CutPrefix(rest, "/"); !ok {
			return ""
		}
	}
	return rest
}

func (b *Branch) match(rest string) bool {
	if b.glob == "" || rest == "" { // ** may be no directory at all
		return rest == "" && strings.Trim(b.glob, "*/") == "" && !strings.Contains("/"+b.glob+"/", "/*/")
	}
	return doublestar.MatchUnvalidated(b.glob, rest)
}

// anyCase says that names differ by more than the case of their letters.
const anyCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// fold makes names equal that mean the same file.
func fold(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			text = norm.NFC.String(text)
			break
		}
	}
	if anyCase {
		return strings.ToLower(text)
	}
	return text
}

// Special reports whether text has a character that is special in patterns.
func Special(text string) bool { return strings.ContainsAny(toSlashes(text), special) }

// Escape returns the pattern that matches only text.
func Escape(text string) string { return escape(text, special) }

func escape(text, characters string) string {
	if !strings.ContainsAny(text, characters) {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(characters, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Literal returns a pattern, absolute or relative to dir, in which the names at the start that exist as
// they are written are literal.
func Literal(dir, text string) string {
	text = toSlashes(text)
	if !Special(text) {
		return text
	}
	volume := filepath.VolumeName(text)
	at, rest := dir, text[len(volume):]
	if strings.HasPrefix(rest, "/") {
		at = volume + "/"
	}
	var done strings.Builder
	done.WriteString(volume)
	for {
		name, more, found := strings.Cut(rest, "/")
		if at = filepath.Join(at, name); name != "" && !exists(at) {
			return done.String() + rest
		}
		done.WriteString(Escape(name))
		if !found {
			return done.String()
		}
		done.WriteByte('/')
		rest = more
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Split returns the directory that a pattern begins with up to the first wildcard, "" for none, and the
// pattern below it, "" without a wildcard.
func Split(text string) (dir, rest string) {
	text = toSlashes(text)
	at := firstWildcard(text)
	if at == len(text) {
		return unescape(text), ""
	}
	slash := strings.LastIndexByte(text[:at], '/')
	return unescape(text[:slash+1]), text[slash+1:]
}

// firstWildcard returns the index of the first special character that no backslash precedes, or the
// length of text.
func firstWildcard(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '*', '?', '[', '{':
			return i
		}
	}
	return len(text)
}

// Text reports whether a text that is no path matches pattern, in which * matches any text, perhaps
// none. It backtracks to the last * only, which is enough and takes at most quadratic time.
func Text(pattern, text string) bool {
	p, t, star, resume := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
