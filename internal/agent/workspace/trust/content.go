package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/text"
)

// Bounds of what is read of one directory. One that exceeds them cannot be trusted.
const (
	maxEntries = 20_000   // files and directories, including the ones that do not count
	maxFiles   = 5_000    // that count
	maxBytes   = 32 << 20 // of them
)

// Content is what a directory has that can run or instruct.
type Content struct {
	Dir   string // absolute, without links
	Sum   string // SHA-256 of all below, in hexadecimal
	Files []File // ascending by name
	Tests []File // test cases and what is beside them, ascending by name: not part of Sum, since an agent runs without them
}

// File is a file that counts.
type File struct {
	// Name is its path in the directory with slashes, or the absolute one of a file outside.
	Name string `json:"name"`
	// Mode is file, executable, link, or missing for a file outside that is not there. A mode with one of the bits
	// setuid and setgid ends in a plus sign.
	Mode string `json:"mode"`
	// Sum is the SHA-256 of what the file holds, in hexadecimal: for a link where it points to and what is there.
	Sum string `json:"sum"`
}

// Holds reports whether a file of the directory has this very text. Name is as in [File].
func (c Content) Holds(name string, text []byte) bool {
	i, ok := slices.BinarySearchFunc(c.Files, File{Name: name}, byName)
	return ok && c.Files[i].Mode != link && c.Files[i].Sum == textSum(text)
}

// Modes of files.
const (
	plain      = "file"
	executable = "executable"
	link       = "link"
	missing    = "missing"
)

// Read reads what counts below a directory, and the files at more, absolute paths, which it runs or reads wherever they are.
//
// All files count but for these: those in .git, texts in sessions and knowledge bases at the top, which the program writes
// itself, bytecode in __pycache__, which Python does not use where PYTHONPYCACHEPREFIX is set, and data by its
// ending: logs, tables, pictures and PDF. Those count, too, if they are executable or among more.
//
// A link counts with where it points to, and with the file that is there. The error is that of ctx, or says which file
// keeps the directory from being trusted: it cannot be read, is neither a file nor a directory, is a link to a directory
// outside, or is one too many.
func Read(ctx context.Context, dir string, more ...string) (Content, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return Content{}, err
	}
	if dir, err = Resolve(given); err != nil {
		return Content{}, err
	}
	r := reader{ctx: ctx, dir: dir, left: maxBytes, named: make(map[string]bool)}
	for _, path := range more {
		rel, ok := inside(dir, path)
		if !ok {
			rel, ok = inside(given, path) // by the name of a link to the directory
		}
		if ok {
			r.named[filepath.ToSlash(rel)] = true
		} else if !slices.Contains(r.outside, path) {
			r.outside = append(r.outside, path)
		}
	}
	if err := filepath.WalkDir(dir, r.visit); err != nil {
		return Content{}, err
	}
	for _, path := range r.outside {
		if err := r.addOutside(path); err != nil {
			return Content{}, err
		}
	}
	slices.SortFunc(r.files, byName)
	slices.SortFunc(r.tests, byName)
	return Content{Dir: dir, Sum: sumOf(r.files), Files: r.files, Tests: r.tests}, nil
}

// Resolve returns the path by which a directory is known: absolute and without links.
func Resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// inside returns path as seen from dir, if it is below it.
func inside(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel) && rel != "."
}

// sumOf returns the digest of a list of files. Each text goes in with its length, so that no two lists are alike.
func sumOf(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d:%s%d:%s%d:%s", len(f.Name), f.Name, len(f.Mode), f.Mode, len(f.Sum), f.Sum)
	}
	return hexSum(h)
}

func byName(a, b File) int { return strings.Compare(a.Name, b.Name) }

func textSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// reader reads the files of a directory.
type reader struct {
	ctx     context.Context
	dir     string
	named   map[string]bool // files that count wherever they are, by name
	outside []string
	files   []File
	tests   []File
	entries int
	left    int64 // bytes
}

// visit implements [fs.WalkDirFunc].
func (r *reader) visit(path string, d fs.DirEntry, err error) error {
	if err == nil {
		err = r.ctx.Err()
	}
	if err != nil {
		return err
	}
	if path == r.dir {
		if !d.IsDir() {
			return fmt.Errorf("%s is not a directory", path)
		}
		return nil
	}
	if r.entries++; r.entries > maxEntries {
		return fmt.Errorf("%s has more than %s", r.dir, text.Count(maxEntries, "file"))
	}
	rel, _ := filepath.Rel(r.dir, path)
	name := filepath.ToSlash(rel)
	if d.IsDir() {
		if d.Name() == ".git" {
			return r.skip(name)
		}
		return nil
	}
	if d.Type() == fs.ModeSymlink {
		return r.addLink(path, name)
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	unused := !r.named[name] && info.Mode()&0o111 == 0
	if unused && isData(name) {
		return nil
	}
	if unused && isTest(name) {
		f := File{Name: name}
		err := r.read(path, &f)
		r.tests = append(r.tests, f)
		return err
	}
	return r.add(path, File{Name: name})
}

// skip passes a directory over, but for files in it that are named.
func (r *reader) skip(name string) error {
	for named := range r.named {
		if strings.HasPrefix(named, name+"/") {
			if err := r.addOutside(filepath.Join(r.dir, filepath.FromSlash(named))); err != nil {
				return err
			}
		}
	}
	return fs.SkipDir
}

// isTest reports whether a file has test cases, or is a text beside them.
func isTest(name string) bool {
	if strings.HasSuffix(name, ".test.yaml") {
		return true
	}
	return strings.HasPrefix(name, "tests/") && slices.Contains([]string{".yaml", ".yml", ".json", ".txt", ".md"}, path.Ext(name))
}

// isData reports whether a file is what the program keeps, data by its ending, or the copy of an editor.
func isData(name string) bool {
	top, rest, nested := strings.Cut(name, "/")
	ext := strings.ToLower(filepath.Ext(name))
	switch {
	case nested && top == "sessions":
		return rest != "" && slices.Contains([]string{".yaml", ".json", ".jsonl", ".ndjson", ".md", ".lock", ".db", ".db-wal", ".db-shm"}, ext)
	case !nested && slices.Contains([]string{".db", ".db-wal", ".db-shm", ".db-journal", ".lock"}, ext):
		return true
	case strings.HasSuffix(name, "~"), ext == ".swp", ext == ".bak":
		return true
	case ext == ".pyc":
		return path.Base(path.Dir(name)) == "__pycache__"
	}
	return slices.Contains([]string{
		".log", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg",
	}, ext)
}

// addLink adds a symbolic link.
func (r *reader) addLink(path, name string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	f := File{Name: name, Mode: link}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.Sum = digest(target)
		return r.keep(f)
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if rel, within := inside(r.dir, real); info.IsDir() {
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if !within || slices.Contains(parts, ".git") || parts[0] == "sessions" {
			return fmt.Errorf("%s is a link to the directory %s, which is not checked", path, real)
		}
		f.Sum = digest(target, real)
		return r.keep(f)
	}
	of := File{}
	if err := r.read(real, &of); err != nil {
		return err
	}
	f.Sum = digest(target, real, of.Mode, of.Sum)
	return r.keep(f)
}

// digest returns the digest of a list of texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return hexSum(h)
}

// addOutside adds a file by its path. One that is not there counts as well.
func (r *reader) addOutside(path string) error {
	f := File{Name: filepath.ToSlash(path)}
	if rel, ok := inside(r.dir, path); ok {
		f.Name = filepath.ToSlash(rel)
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.Mode = missing
		return r.keep(f)
	}
	if err != nil {
		return err
	}
	return r.add(real, f)
}

// add adds a file with what it holds.
func (r *reader) add(path string, f File) error {
	if err := r.read(path, &f); err != nil {
		return err
	}
	return r.keep(f)
}

func (r *reader) keep(f File) error {
	if len(r.files) >= maxFiles {
		return fmt.Errorf("%s has more than %s that can run or instruct", r.dir, text.Count(maxFiles, "file"))
	}
	r.files = append(r.files, f)
	return nil
}

// read sets the mode and the sum of f to those of the file at path.
func (r *reader) read(path string, f *File) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return fmt.Errorf("%s is not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return err
	}
	f.Mode = plain
	if info.Mode()&0o111 != 0 {
		f.Mode = executable
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		f.Mode += "+"
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(file, r.left+1))
	if err != nil {
		return err
	}
	if r.left -= n; r.left < 0 {
		return fmt.Errorf("%s has more than %d MiB of files that can run or instruct", r.dir, maxBytes>>20)
	}
	f.Sum = hexSum(h)
	return nil
}
