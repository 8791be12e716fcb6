package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/text"
)

// WorkspaceName returns the name of the directory with the facts of the workspace at root: all worktrees of a repository have one.
func WorkspaceName(root string) string {
	common := commonDir(root)
	named := root
	if filepath.Base(common) == ".git" {
		named = filepath.Dir(common)
	}
	return slug(filepath.Base(named)) + "-" + digest(common)
}

// digest returns eight hexadecimal digits for a text.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// commonDir returns the directory that the worktrees of the repository at root share, or root if it is none.
func commonDir(root string) string {
	git := filepath.Join(root, ".git")
	info, err := os.Stat(git)
	switch {
	case err != nil:
		return root
	case info.IsDir():
		return git
	}
	dir, ok := strings.CutPrefix(line(git), "gitdir: ")
	if !ok {
		return git
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	common := line(filepath.Join(dir, "commondir"))
	switch {
	case common == "": // of a submodule
		common = dir
	case !filepath.IsAbs(common):
		common = filepath.Join(dir, common)
	}
	if real, err := filepath.EvalSymlinks(common); err == nil {
		return real
	}
	return filepath.Clean(common)
}

// line returns the first line of a small file, "" if it cannot be read.
func line(path string) string {
	if info, err := os.Stat(path); err != nil || info.Size() > maxFile {
		return ""
	}
	data, _ := os.ReadFile(path)
	first, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(first)
}

var plainName = text.Regexp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// AgentName returns the name of the directory with the facts of an agent that is known by scope, see [agent.Ref].
func AgentName(scope string) string {
	if plainName().MatchString(scope) {
		return scope
	}
	return slug(filepath.Base(scope)) + "-" + digest(scope)
}

// OwnerName returns the name of the directory with the facts of a subject of a server, another one for each.
func OwnerName(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return slug(subject) + "-" + hex.EncodeToString(sum[:16])
}
