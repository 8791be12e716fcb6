package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/text"
)

// maxOutput bounds what git prints, such as the commits of a worktree as a pack, in bytes.
const maxOutput = 1 << 30

// git is how git runs in a repository. Neither a setting of that repository nor a variable of the user makes it run a program.
type git struct {
	environ []string // of this process
	dir     string   // where it runs
	set     map[string]string
	quiet   map[string]string          // settings that switch off the filters and merge drivers of the repository
	confine func() process.Confinement // nil: not confined
}

// harmless are settings under which git runs no program but itself.
var harmless = map[string]string{
	"core.hooksPath": os.DevNull, "core.fsmonitor": "false", "core.sshCommand": "false", "core.pager": "cat", "core.editor": "false",
	"core.askPass": "", "core.alternateRefsCommand": "true", "core.safecrlf": "false", "credential.helper": "", "protocol.allow": "never",
	"commit.gpgSign": "false", "merge.verifySignatures": "false", "merge.autoStash": "false", "log.showSignature": "false", "submodule.recurse": "false",
	"gc.auto": "0", "maintenance.auto": "false", "diff.external": "", "status.showUntrackedFiles": "all", "user.useConfigOnly": "false",
}

// kept are the variables of git that stay: they say where git and its settings are.
var kept = []string{"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

// LeavingVariables returns the variables of git in an environment that would lead it to another repository.
func LeavingVariables(entries []string) (names []string) {
	for _, entry := range entries {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name) {
			names = append(names, name)
		}
	}
	return names
}

// run returns what git prints with args and in as its input. The error of a git that failed is a [*process.ExitError].
func (g git) run(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	set := map[string]string{
		"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_LFS_SKIP_SMUDGE": "1",
		"GIT_ALLOW_PROTOCOL": "none", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C",
	}
	n := 0
	for _, settings := range []map[string]string{harmless, g.quiet} {
		for key, value := range settings {
			set["GIT_CONFIG_KEY_"+strconv.Itoa(n)], set["GIT_CONFIG_VALUE_"+strconv.Itoa(n)] = key, value
			n++
		}
	}
	set["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	c := process.Command{
		Path: "git", Args: args, Dir: g.dir, Env: environ.Merge(environ.Merge(g.environ, nil, LeavingVariables(g.environ)...), set),
		MaxStdout: maxOutput, Timeout: 10 * time.Minute, HasTimeout: true,
	}
	c.Env = environ.Merge(c.Env, g.set)
	if in != nil {
		c.Stdin = bytes.NewReader(in)
	}
	if g.confine != nil {
		c.Confinement = g.confine()
	}
	result, err := process.Run(ctx, c)
	if _, ok := errors.AsType[*process.StartError](err); ok && g.confine == nil {
		return nil, fault.New(fault.Tool, "worktrees need git, and it cannot be started").WithHint("install git 2.38 or newer")
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return result.Stdout, &gitError{args[0], text.Visible(strings.TrimSpace(exit.Stderr)), exit}
	}
	return result.Stdout, err
}

// gitError is what git said when it failed.
type gitError struct {
	command, said string
	exit          *process.ExitError
}

func (e *gitError) Error() string { return "git " + e.command + ": " + e.said }
func (e *gitError) Unwrap() error { return e.exit }

// failed reports whether err says that git ended with a status.
func failed(err error, status int) bool {
	exit, ok := errors.AsType[*process.ExitError](err)
	return ok && exit.Code == status
}

// line returns the only line that git prints.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// names returns what git prints, with a NUL after each.
func (g git) names(ctx context.Context, args ...string) ([]string, error) {
	out, err := g.run(ctx, nil, args...)
	all := strings.Split(string(out), "\x00")
	return all[:len(all)-1], err
}

// with returns g with variables for git.
func (g git) with(set map[string]string) git {
	g.set = set
	return g
}

// commit returns the id of a commit.
func (g git) commit(ctx context.Context, name string) (string, error) {
	return g.line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
}

// settings returns what is set of the repository or the user, of the settings whose names, in lower case, match a regular expression.
func (g git) settings(ctx context.Context, pattern string) (map[string]string, error) {
	found, err := g.names(ctx, "config", "--null", "--get-regexp", pattern)
	if err != nil && !failed(err, 1) { // 1: there is none
		return nil, err
	}
	set := make(map[string]string)
	for _, each := range found {
		name, value, _ := strings.Cut(each, "\n")
		set[name] = value // the last one counts
	}
	return set, nil
}

// changedFiles returns the files that differ between two trees; with added only the files that are new in the second.
func (g git) changedFiles(ctx context.Context, from, to string, added bool) ([]string, error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames"}
	if added {
		args = append(args, "--diff-filter=A")
	}
	return g.names(ctx, append(args, from, to)...)
}

// repo is a repository: that of the user, or a worktree.
type repo struct {
	git
	root   string   // of the checkout, or of a bare repository
	prefix string   // of the directory below it in which it was opened, "" for the root
	own    string   // its git directory
	common string   // likewise; working trees of one repository share it
	bare   bool     // there is no checkout
	driven []string // the filters that its settings have
	who    [2]string
}

// openRepo opens the repository around g.dir.
func openRepo(ctx context.Context, g git) (r repo, err error) {
	r.git = g
	paths, ask := []*string{&r.common, &r.own, &r.root, &r.prefix}, []string{"--git-common-dir", "--absolute-git-dir", "--show-toplevel", "--show-prefix"}
	out, err := g.run(ctx, nil, append([]string{"rev-parse", "--path-format=absolute", "--is-bare-repository"}, ask...)...)
	lines := strings.Split(string(out), "\n")
	if r.bare = lines[0] == "true"; r.bare && len(lines) > 3 { // it fails at --show-toplevel only
		paths, err = paths[:2], nil
	}
	for i, path := range paths {
		if len(lines) == len(paths)+2 {
			*path = lines[1+i]
		} else if err == nil { // one of them has a line break
			*path, err = g.line(ctx, "rev-parse", "--path-format=absolute", ask[i])
		}
	}
	switch exit, ok := errors.AsType[*gitError](err); {
	case ok:
		said, _, _ := strings.Cut(exit.said, "\n")
		return r, fault.New(fault.Usage, "a worktree needs a git repository with a checkout, and there is none at %s: %s", g.dir, said)
	case err != nil:
		return r, err
	}
	if r.bare {
		r.root = r.own
	}
	r.prefix = strings.TrimSuffix(r.prefix, "/")
	r.dir = r.root
	return r, r.calm(ctx)
}

// calm finds out which settings switch off the programs that the settings of the repository name.
func (r *repo) calm(ctx context.Context) error {
	set, err := r.settings(ctx, `^(user\.(name|email)|(filter|merge)\..*\.(clean|smudge|process|required|driver))$`)
	if err != nil {
		return err
	}
	r.who = [2]string{cmp.Or(set["user.name"], "Loki"), cmp.Or(set["user.email"], "loki@localhost")}
	r.quiet = map[string]string{"user.name": r.who[0], "user.email": r.who[1]}
	for key := range set {
		switch filepath.Ext(key) {
		case ".name", ".email":
		case ".driver", ".required":
			r.quiet[key] = "false" // a driver that fails is a conflict
		default:
			r.quiet[key] = ""
			name, _ := strings.CutPrefix(strings.TrimSuffix(key, filepath.Ext(key)), "filter.")
			r.driven = append(r.driven, name)
		}
	}
	return nil
}

// filteredFiles returns the files that a filter of the user would change, which does not run here.
func (r repo) filteredFiles(ctx context.Context, files []string) (named []string, err error) {
	if len(r.driven) == 0 || len(files) == 0 {
		return nil, nil
	}
	out, err := r.run(ctx, []byte(strings.Join(files, "\x00")+"\x00"), "check-attr", "-z", "--stdin", "filter")
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if slices.Contains(r.driven, fields[i+2]) {
			named = append(named, fields[i])
		}
	}
	return named, err
}

// send copies commits with all that they need, but for what the receiver has with not.
func send(ctx context.Context, from, to git, commits, not []string) error {
	revs := strings.Join(commits, "\n") + "\n--not\n" + strings.Join(not, "\n") + "\n"
	pack, err := from.run(ctx, []byte(revs), "pack-objects", "--quiet", "--revs", "--stdout", "--delta-base-offset")
	if err != nil {
		return err
	}
	_, err = to.run(ctx, pack, "index-pack", "--strict", "--stdin")
	return err
}

// objects returns the directories of objects that a repository needs to be read: that of its git directory, and the ones from which it borrows.
func objects(dir string, depth int) []string {
	all := []string{dir}
	data, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
	if err != nil || depth == 0 {
		return all
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' || line[0] == '"' { // what is quoted has odd characters
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		all = append(all, objects(filepath.Clean(line), depth-1)...)
	}
	return all
}

// quotePath writes a path as git reads it in alternates: a name may have the character that separates two.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// InRepository reports whether there seems to be a repository around a directory.
func InRepository(dir string) bool {
	for {
		_, checkout := os.Lstat(filepath.Join(dir, ".git"))
		_, bare := os.Lstat(filepath.Join(dir, "objects", "pack"))
		if checkout == nil || bare == nil || dir == filepath.Dir(dir) {
			return checkout == nil || bare == nil
		}
		dir = filepath.Dir(dir)
	}
}
