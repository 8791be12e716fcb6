package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"loki/internal/base/fault"
	"loki/internal/base/file/repository"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/text"
)

// The limits of a bundle. One that exceeds them is not installed.
const (
	maxClone   = 512 << 20 // bytes of a clone on the disk
	maxFiles   = 5000
	maxFile    = 16 << 20 // bytes
	maxBytes   = 64 << 20 // of all files
	maxPath    = 400      // bytes
	maxDepth   = 16       // directories
	maxServers = 1 << 20  // bytes of mcp.json
)

// Category is a part of a bundle.
type Category string

// The categories, in the order in which they are shown.
const (
	Agents    Category = "agents"
	Roles     Category = "roles"
	Macros    Category = "macros"
	Functions Category = "functions"
	Skills    Category = "skills"
	MCPConfig Category = "mcp_config"
)

// Categories returns the names of the categories.
func Categories() []string {
	return []string{string(Agents), string(Roles), string(Macros), string(Functions), string(Skills), string(MCPConfig)}
}

// layout is what a bundle may have in its top directory, and where each category is.
var layout = []struct {
	category Category
	path     string
}{{Agents, "agents"}, {Roles, "roles"}, {Macros, "macros"}, {Functions, "functions/tools"}, {Skills, "skills"}, {MCPConfig, serversPath}}

const serversPath = "functions/mcp.json"

// file is a file of a bundle.
type file struct {
	path     string // in the bundle, with slashes: agents/x/graph.yaml
	category Category
	content  []byte
	sum      string // see sumOf
}

// sumOf returns the SHA-256 of data in hexadecimal.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// content is what a bundle has.
type content struct {
	commit  string
	files   []file   // without servers
	servers []byte   // mcp.json; nil without one
	notes   []string // about what is left out
}

var (
	refPattern = text.Regexp(`^[A-Za-z0-9._/+-]+$`)
	hexPattern = text.Regexp(`^[0-9a-fA-F]{4,40}$`)
)

// splitRef splits an address with the name of a branch, a tag or a commit behind a #.
func splitRef(source string) (address, ref string, err error) {
	i := strings.LastIndexByte(source, '#')
	if i <= 0 {
		return source, "", nil
	}
	address, ref = source[:i], source[i+1:]
	switch {
	case ref == "":
		err = fault.New(fault.Usage, "nothing follows the # of the address")
	case strings.Contains(ref, "..") || strings.HasPrefix(ref, "-") || !refPattern().MatchString(ref):
		err = fault.New(fault.Usage, "%s is not the name of a branch, a tag or a commit", text.Name(ref)).
			WithHint("it has letters, digits and ._/+- only, no two dots in a row, and does not begin with -")
	}
	return address, ref, err
}

// parseAddress reads the address of a bundle. A path of a directory, which may be relative to dir, is one.
func parseAddress(address, dir string) (repository.Address, error) {
	hint := "bundles are Git repositories: https://host/path, git@host:path, or the path of a directory, with #BRANCH, #TAG or #COMMIT behind it"
	if strings.HasPrefix(address, "http") && strings.Contains(address, "?") {
		return repository.Address{}, fault.New(fault.Usage, "the address of a bundle has a ?, behind which secrets may stand").WithHint("%s", hint)
	}
	path := filepath.FromSlash(address)
	if address != "" && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(address, "-") {
		address = path
	}
	a, err := repository.ParseAddress(address)
	if err != nil {
		return a, fault.Wrap(fault.Usage, err, "this cannot be installed").WithHint("%s", hint)
	}
	return a, nil
}

// fetch clones the repository and reads what it has of the categories; none means all.
func (i *Installer) fetch(ctx context.Context, from repository.Address, ref string, only []Category) (content, error) {
	if i.Busy != nil {
		defer i.Busy("Fetching " + from.String())()
	}
	temp, err := tempdir.Make("", "bundle")
	if err != nil {
		return content{}, err
	}
	defer os.RemoveAll(temp)
	dir := filepath.Join(temp, "bundle.git")
	options := repository.CloneOptions{Branch: ref, Bare: true, MaxBytes: maxClone}
	commit := ""
	if hexPattern().MatchString(ref) {
		options.Branch, options.History, commit = "", true, ref
	}
	if err := i.Git.Clone(ctx, from, dir, options); err != nil {
		return content{}, err
	}
	var c content
	if c.commit, err = i.Git.Commit(ctx, dir, commit); err != nil {
		return content{}, err
	}
	listed, err := i.Git.List(ctx, dir, c.commit, "agents", "roles", "macros", "functions", "skills")
	if err != nil {
		return content{}, err
	}
	chosen, notes, err := choose(listed, only)
	if err != nil {
		return content{}, fault.Wrap(fault.CodeOf(err), err, "%s is not installed", from).WithHint("nothing was changed")
	}
	c.notes = notes
	contents, err := i.Git.Read(ctx, dir, chosen)
	for n, f := range chosen {
		switch {
		case err != nil:
		case f.Path == serversPath:
			c.servers = contents[n]
		default:
			category, _ := categoryOf(f.Path)
			c.files = append(c.files, file{path: f.Path, category: category, content: contents[n], sum: sumOf(contents[n])})
		}
	}
	return c, err
}

// categoryOf returns the category of a path in a bundle; ok is false for what is not installed.
func categoryOf(path string) (c Category, ok bool) {
	for _, l := range layout {
		if path == l.path && l.category == MCPConfig || strings.HasPrefix(path, l.path+"/") && l.category != MCPConfig {
			return l.category, true
		}
	}
	return "", false
}

// choose returns the files of the categories that are to be installed, none meaning all, and notes
// about what is left out. What could do harm is an error.
func choose(listed []repository.File, only []Category) (chosen []repository.File, notes []string, err error) {
	taken := make(map[string]taking)
	var sum int64
	for _, f := range listed {
		category, ok := categoryOf(f.Path)
		if !ok {
			if name := strings.Trim(f.Path, "/"); slices.Contains([]string{"agents", "roles", "macros", "functions", "functions/tools", "skills"}, name) {
				return nil, nil, fault.New(fault.Config, "%s is not a directory", name)
			}
			continue
		}
		if len(only) > 0 && !slices.Contains(only, category) {
			continue
		}
		if err := checkPath(f.Path); err != nil {
			return nil, nil, err
		}
		if err := takePath(taken, f.Path); err != nil {
			return nil, nil, err
		}
		switch limit := int64(maxFile); {
		case f.Kind == repository.Link:
			return nil, nil, fault.New(fault.Config, "%s is a symbolic link", f.Path)
		case f.Kind == repository.Module:
			notes = append(notes, f.Path+" is a submodule and was left out")
			continue
		case category == MCPConfig && f.Size > maxServers:
			limit = maxServers
			fallthrough
		case f.Size > limit:
			return nil, nil, fault.New(fault.Limit, "%s is larger than %d MiB", f.Path, limit>>20)
		}
		if sum += f.Size; sum > maxBytes {
			return nil, nil, fault.New(fault.Limit, "the files are larger than %d MiB together", maxBytes>>20)
		}
		if chosen = append(chosen, f); len(chosen) > maxFiles {
			return nil, nil, fault.New(fault.Limit, "it has more than %d files", maxFiles)
		}
	}
	return chosen, notes, nil
}

// checkPath returns an error unless a file can have the path on every system, below the directory
// that it is installed in.
func checkPath(path string) error {
	invalid := func(reason string) error {
		return fault.New(fault.Config, "a file is called %s: %s", text.Name(path), reason)
	}
	names := strings.Split(path, "/")
	switch {
	case len(path) > maxPath:
		return fault.New(fault.Config, "a file is called %s...: its path is longer than %d bytes", text.Name(path[:40]), maxPath)
	case len(names) > maxDepth:
		return invalid(fmt.Sprintf("it is below more than %d directories", maxDepth))
	}
	for _, name := range names {
		hidden := strings.TrimPrefix(name, ".")
		switch fault := text.FileNameFault(hidden); {
		case strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1"):
			return invalid("git keeps its own files there")
		case fault != "":
			return invalid(fault)
		case strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Cf, r) }):
			return invalid("it contains a character that is not shown")
		}
	}
	return nil
}

// taking is a path that is taken.
type taking struct {
	path string
	file bool
}

// takePath takes the path of a file and those of its directories. It is an error if some systems
// take one of them for another one that is taken already.
func takePath(taken map[string]taking, path string) error {
	for end := range len(path) + 1 {
		if end < len(path) && path[end] != '/' {
			continue
		}
		now := taking{path[:end], end == len(path)}
		key := norm.NFC.String(strings.ToLower(strings.ToUpper(now.path)))
		before, ok := taken[key]
		if ok && (before.path != now.path || before.file || now.file) {
			return fault.New(fault.Config, "%s and %s are the same file on some systems", before.path, now.path)
		}
		taken[key] = now
	}
	return nil
}
