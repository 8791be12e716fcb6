package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// State says what became of a file.
type State string

// The states.
const (
	Used      State = "used"
	Untrusted State = "untrusted" // the user does not trust it
	Changed   State = "changed"   // the user trusted it as it was before
	Cut       State = "cut"       // it is used in part, since all files together are too long
	Shadowed  State = "shadowed"  // another file of its directory counts
	Hidden    State = "hidden"    // an ignore file hides it
	Deeper    State = "deeper"    // it counts where a model works in its directory
	Unusable  State = "unusable"  // see [File.Fault]
)

// File is a file with instructions.
type File struct {
	Path  string `json:"path"`  // absolute
	Name  string `json:"file"`  // from the root of the workspace with slashes; of the user's own file the path
	Sum   string `json:"sum"`   // SHA-256 in hexadecimal; "" if it was not read
	Bytes int    `json:"bytes"` // of what is used, or would be
	State State  `json:"state"`
	Fault string `json:"fault,omitempty"` // why it is unusable
	From  string `json:"from,omitempty"`  // name of the file that imports it
	Of    string `json:"skill,omitempty"` // name of the skill that it belongs to

	text string
	user bool // it is the user's own
}

// Text returns what the file holds, whatever its state.
func (f File) Text() string { return f.text }

// Reader reads the instructions of workspaces. Its fields are not changed while it is used; it may be used from several goroutines.
type Reader struct {
	Names    []string // of the files, in the order in which they count
	MaxBytes int      // of all files together
	User     string   // path of the user's own file; "" for none
	Home     string   // home directory; "" for none

	// Trust returns what tells [Used], [Untrusted] or [Changed] of a file of the workspace at root. A nil Trust trusts all.
	Trust func(root string) func(name, sum string) State
	// Hides reports whether an ignore file hides a path. A nil Hides hides nothing.
	Hides func(path string) bool
}

// Instructions are what a workspace says.
type Instructions struct {
	Root  string `json:"root"`
	Files []File `json:"files"` // the user's own first, then from the root down; what a file imports follows it

	reader Reader
	dir    string
}

// Bounds of files.
const (
	maxFile    = 1 << 20 // bytes; a larger one is not read
	maxImports = 5       // levels
	maxFiles   = 200     // with what they import
)

// Read reads the instructions for work in a directory, which is absolute.
func (r Reader) Read(dir string) Instructions {
	in := Instructions{Root: Root(dir, r.Home), reader: r, dir: ResolvePath(dir)}
	seen, trusts := make(map[string]bool), r.trusts(in.Root)
	if r.User != "" {
		if f := (File{Path: r.User, Name: r.User, user: true}); r.load(&f, filepath.Dir(r.User), nil) {
			in.Files = append(in.Files, r.withImports(f, filepath.Dir(r.User), nil, seen, 0)...)
		}
	}
	for _, at := range chain(in.Root, ResolvePath(dir)) {
		in.Files = append(in.Files, r.of(at, in.Root, trusts, seen)...)
	}
	r.fit(in.Files)
	return in
}

// trusts tells the state of a file by its name and digest; nil trusts all.
type trusts func(name, sum string) State

func (r Reader) trusts(root string) trusts {
	if r.Trust == nil {
		return nil
	}
	return r.Trust(root)
}

// of returns the files of one directory.
func (r Reader) of(dir, root string, trusts trusts, seen map[string]bool) (files []File) {
	found := false
	for _, path := range r.paths(dir, root) {
		f := File{Path: path, Name: path}
		if rel, ok := below(root, path); ok {
			f.Name = rel
		}
		switch there := r.load(&f, root, trusts); {
		case !there:
		case found:
			f.State = Shadowed
			files = append(files, f)
		default:
			found = true
			files = append(files, r.withImports(f, root, trusts, seen, 0)...)
		}
	}
	return files
}

// claudeFile and claudeDir are the file of Claude Code and the directory of its settings, in which the file may be, too.
const claudeFile, claudeDir = "CLAUDE.md", ".claude"

// paths returns where the files of one directory are, in the order in which they count.
func (r Reader) paths(dir, root string) (paths []string) {
	for _, name := range r.Names {
		if name != claudeFile || filepath.Base(dir) != claudeDir || dir == root { // else it is that of the directory above
			paths = append(paths, filepath.Join(dir, name))
		}
		if name == claudeFile {
			paths = append(paths, filepath.Join(dir, claudeDir, name))
		}
	}
	return paths
}

// Load reads a file, and reports whether it is there and not empty. Its content has to be within root.
func (r Reader) Load(f *File, root string) (there bool) { return r.load(f, root, r.trusts(root)) }

func (r Reader) load(f *File, root string, trusts trusts) (there bool) {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	unusable := func(why string) bool {
		f.State, f.Fault, f.text = Unusable, why, ""
		return true
	}
	real, linkErr := filepath.EvalSymlinks(f.Path)
	_, inside := below(ResolvePath(root), real)
	switch {
	case err != nil:
		return unusable(err.Error())
	case linkErr != nil || !inside:
		return unusable("it is outside of the workspace")
	case !info.Mode().IsRegular():
		return unusable("it is not a regular file")
	case info.Size() == 0:
		return false
	case info.Size() > maxFile:
		return unusable(fmt.Sprintf("it has more than %d bytes", maxFile))
	case r.Hides != nil && !f.user && (r.Hides(f.Path) || r.Hides(real)):
		f.State = Hidden
		return true
	}
	data, err := read(real)
	switch {
	case err != nil:
		return unusable(err.Error())
	case !utf8.Valid(data) || slices.Contains(data, 0):
		return unusable("it is not a text in UTF-8")
	case strings.TrimSpace(string(data)) == "":
		return false
	}
	sum := sha256.Sum256(data)
	f.Sum, f.text, f.State = hex.EncodeToString(sum[:]), strings.TrimPrefix(string(data), "\ufeff"), Used
	f.Bytes = len(f.text)
	if trusts != nil {
		f.State = trusts(f.Name, f.Sum)
	}
	return true
}

// read reads a file that was found to be a regular one.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile+1))
}

// withImports returns a file, followed by the files that it imports, each file once.
func (r Reader) withImports(f File, root string, trusts trusts, seen map[string]bool, level int) []File {
	seen[ResolvePath(f.Path)] = true
	files := []File{f}
	if f.text == "" || level == maxImports {
		return files
	}
	for _, name := range imports(f.text) {
		path := filepath.Join(filepath.Dir(f.Path), filepath.FromSlash(name))
		if filepath.IsAbs(name) {
			path = filepath.Clean(name)
		}
		if seen[ResolvePath(path)] || len(seen) >= maxFiles {
			continue
		}
		imported := File{Path: path, Name: path, From: f.Name, user: f.user}
		if rel, ok := below(root, path); ok && !f.user {
			imported.Name = rel
		}
		if info, err := os.Lstat(path); err != nil || info.IsDir() || !r.load(&imported, root, trusts) {
			continue // it stays text
		}
		files = append(files, r.withImports(imported, root, trusts, seen, level+1)...)
	}
	return files
}

// fit cuts the files that are used to the limit. The user's own count first, then the nearest.
func (r Reader) fit(files []File) {
	left := r.MaxBytes
	cut := func(f *File) {
		if f.State != Used {
			return
		}
		if len(f.text) > left {
			f.text, f.State = firstLines(f.text, left), Cut
			f.Bytes = len(f.text)
		}
		left -= len(f.text)
	}
	for i := range files {
		if files[i].user {
			cut(&files[i])
		}
	}
	for i := range slices.Backward(files) {
		if !files[i].user {
			cut(&files[i])
		}
	}
}

// firstLines returns as many whole lines of a text as fit into n bytes.
func firstLines(text string, n int) string {
	return text[:strings.LastIndexByte(text[:max(n, 0)], '\n')+1]
}

// preamble says how instructions rank.
const preamble = "Instructions of the user and of the workspace follow. Where they disagree, a later file counts for what is in its directory, and what the user says counts most."

// Text returns the instructions as models get them, "" for none: the same bytes for the same files.
func (in Instructions) Text() string {
	var b strings.Builder
	for _, f := range in.Files {
		if !f.counts() {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(preamble)
		}
		b.WriteString("\n\n" + f.block(""))
	}
	return b.String()
}

// counts reports whether models get something of the file.
func (f File) counts() bool { return (f.State == Used || f.State == Cut) && f.text != "" }

// block returns the file between marks. The nonce, if there is one, is part of them, so that nothing in between can be taken for one.
func (f File) block(nonce string) string {
	mark := "instructions"
	if nonce != "" {
		mark += "-" + nonce
	}
	text := strings.ReplaceAll(strings.TrimRight(f.text, "\n"), "</"+mark, "<\\/"+mark)
	more := ""
	if f.State == Cut {
		more = "\n[The rest of the file is left out: it is too long.]"
	}
	return fmt.Sprintf("<%s file=%q>\n%s%s\n</%s>", mark, f.Name, text, more, mark)
}

// Findings returns messages about files that are not used, or not whole, a line each.
func (in Instructions) Findings() (lines []string) {
	for _, f := range in.Files {
		switch f.State {
		case Unusable:
			lines = append(lines, fmt.Sprintf("%s is not used: %s", f.Name, f.Fault))
		case Cut:
			lines = append(lines, fmt.Sprintf("%s is cut to %d bytes: all instructions together are longer than instruction_max_bytes", f.Name, f.Bytes))
		}
	}
	return lines
}

// Unknown returns the files that the user has to trust before they count.
func (in Instructions) Unknown() (files []File) {
	for _, f := range in.Files {
		if f.Unknown() {
			files = append(files, f)
		}
	}
	return files
}

// Unknown reports whether the user has to trust the file before it counts.
func (f File) Unknown() bool { return f.State == Untrusted || f.State == Changed }
