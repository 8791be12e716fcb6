package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"loki/internal/environ"
)

// plain reports whether a text has only characters that all shells read alike, so that words and operators are where
// they seem to be.
func plain(text string) bool {
	text = strings.NewReplacer(" 2>/dev/null", "", " 2>&1", "").Replace(text)
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./=,:@+|&;<>'\"-") == "" && !strings.Contains(text, " =") && !strings.Contains(text, "<<")
}

// readers are programs that only read, or only print, with the letters of the options with which they do. Words that are
// not options are files, but for those after the ! of a program, which are text.
var readers = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"pwd": "LP", "ls": "laAhrtRS1dFsiGp", "cat": "nbsvET", "head": "nc0123456789q", "tail": "nc0123456789q", "wc": "lwcmL", "nl": "ba", "tac": "", "rev": "", "file": "bi",
		"stat": "", "du": "shac", "df": "hT", "md5sum": "", "sha1sum": "", "sha256sum": "", "cmp": "s", "comm": "123", "diff": "uqwbB", "sort": "nrufk0123456789", "cut": "dfc0123456789,-", "tree": "adL0123456789", "basename": "", "dirname": "", "realpath": "",
		"grep": "nirlcvwEFHhosx", "rg": "nilcwF", "cd": "", "uniq": "cdui",
		"echo": "!n", "true": "!", "false": "!", "whoami": "!", "id": "!un", "uname": "!asrm", "nproc": "!", "uptime": "!", "groups": "!", "which": "!a", "type": "!",
	}
})

// gitReaders are the subcommands of git that only read, with gitOptions; branch and remote only without other words. Those
// that look at contents or commits are not among them, such as status, diff and log: the configuration of a repository
// has them run programs, by filters, textconv, diff.external, log.showSignature or the transport of a partial clone.
//
// Source: gitattributes(5), git-config(1).
const (
	gitReaders = " branch remote rev-parse ls-files version "
	gitOptions = " --list --show-current --abbrev-ref --show-toplevel --others --exclude-standard --cached --all -a -r -- "
)

// exactCommands are read as they are.
const exactCommands = "\ndate\ndate -u\ndate +%s\nhostname\ngo version\ngo env\nls --version\ngit --version\ncommand -v git\n"

// reads returns why a command is not on the short list of those that only read, in the workspace; empty if it is.
func (j *Judge) reads(c *command) string {
	none := "no rule allows " + shown(c.words)
	if strings.Contains(exactCommands, "\n"+shown(c.words)+"\n") {
		return ""
	}
	name, args := programName(c.words[0].text), c.words[1:]
	if name == "git" && len(args) > 0 {
		return j.gitReads(c, args)
	}
	letters, ok := readers()[name]
	if !ok {
		return none
	}
	letters, text := strings.TrimPrefix(letters, "!"), strings.HasPrefix(letters, "!")
	var files []word
	for _, w := range args {
		switch {
		case text && (!w.isOption() || w.text[0] == hole):
		case !w.known():
			return none
		case len(w.text) > 1 && w.text[0] == '-' && strings.Trim(w.text[1:], letters) == "" && letters != "":
		case len(w.text) > 1 && w.text[0] == '-' || w.text != "" && w.text[0] == '@':
			return none
		default:
			files = append(files, w)
		}
	}
	switch {
	case name == "uniq" && len(files) > 1, name == "cd" && len(files) != 1:
		return none
	case (name == "grep" || name == "rg") && len(files) > 0:
		files = files[1:]
		if len(files) == 0 {
			files = []word{{text: "."}}
		}
	}
	return j.readable(c, files)
}

// readable returns why files are not ones to read unasked.
func (j *Judge) readable(c *command, files []word) string {
	for _, w := range files {
		if !w.known() || strings.ContainsAny(w.text, "=:") {
			return "it is not known what " + shown(c.words) + " reads"
		}
		if l := j.tree.locate(w.text, c.dirs); (!l.inside || l.closed != "") && !j.readingAllowed(l) {
			return w.text + " is outside the workspace " + j.tree.root
		}
	}
	return ""
}

// readingAllowed reports whether a rule with a path allows shell tools to read a file.
func (j *Judge) readingAllowed(l located) bool {
	var best match
	for _, r := range j.rules(j.o.ShellTools[0], "") {
		if n, ok := j.tree.matches(r, l); ok && r.Access != Writing && len(r.Paths) > 0 {
			best.add(r, n)
		}
	}
	return best.rule != nil && best.rule.Action == Allow
}

// gitReads is reads for git.
func (j *Judge) gitReads(c *command, args []word) string {
	if args[0].is("--no-pager") && len(args) > 1 {
		args = args[1:]
	}
	none := "no rule allows " + shown(c.words)
	if !strings.Contains(gitReaders, " "+args[0].text+" ") {
		return none
	}
	for _, dir := range c.dirs {
		if found := bare(dir); found != "" {
			return found + " looks like a repository whose settings could run programs"
		}
	}
	for _, w := range args[1:] {
		if strings.Contains(gitOptions, " "+w.text+" ") && w.text != "" {
			continue
		}
		if strings.HasPrefix(w.text, "-") || args[0].is("branch") || args[0].is("remote") {
			return none
		}
		if why := j.readable(c, []word{w}); why != "" {
			return why
		}
	}
	return ""
}

// bare returns the directory that git would take for a repository without a .git of its own,
// if it is run in dir: dir or one above it, up to the first that has a .git. Git asks for more
// than is looked for here, but another call may write the rest meanwhile.
//
// Source: gitrepository-layout(5).
func bare(dir string) string {
	for {
		if has(dir, ".git") {
			return ""
		}
		if has(dir, "HEAD") && (has(dir, "commondir") || has(dir, "objects") || has(dir, "refs") || has(dir, "config")) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// has reports whether there is an entry of that name in dir, a broken link included.
func has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// HarmlessEnvironment returns an environment, as from os.Environ, for a command that runs
// because it is known to only read: the repository that git finds is then not one that was
// put together in a directory (safe.bareRepository, since git 2.38), and it starts neither a
// file monitor nor a hook. It closes the time
// between the judgment and the run.
func HarmlessEnvironment(env []string) []string {
	n, err := strconv.Atoi(environ.Get(env, "GIT_CONFIG_COUNT"))
	if err != nil || n < 0 {
		n = 0
	}
	env = slices.Clone(env)
	for _, setting := range [...][2]string{{"safe.bareRepository", "explicit"}, {"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}} {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, setting[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, setting[1]))
		n++
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
}
