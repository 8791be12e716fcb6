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

// readers are programs and subcommands of git that only read, or only print, with the letters of the options with which they do,
// and after a blank other such words. Words that are not options are files, but for those after the ! of a program, which are
// text, and those after a =, which has none.
//
// Subcommands of git that look at contents or commits are not among them, such as status, diff and log: the configuration of a
// repository has them run programs, by filters, textconv, diff.external, log.showSignature or the transport of a partial clone.
//
// Source: gitattributes(5), git-config(1).
var readers = sync.OnceValue(func() map[string]string {
	const git = " --list --show-current --abbrev-ref --show-toplevel --others --exclude-standard --cached --all -a -r -- "
	return map[string]string{
		"pwd": "LP", "ls": "laAhrtRS1dFsiGp", "cat": "nbsvET", "head": "nc0123456789q", "tail": "nc0123456789q", "wc": "lwcmL", "nl": "ba", "tac": "", "rev": "", "file": "bi",
		"stat": "", "du": "shac", "df": "hT", "md5sum": "", "sha1sum": "", "sha256sum": "", "cmp": "s", "comm": "123", "diff": "uqwbB", "sort": "nrufk0123456789", "cut": "dfc0123456789,-", "tree": "adL0123456789", "basename": "", "dirname": "", "realpath": "",
		"grep": "nirlcvwEFHhosx", "rg": "nilcwF", "cd": "", "uniq": "cdui",
		"echo": "!n", "true": "!", "false": "!", "whoami": "!", "id": "!un", "uname": "!asrm", "nproc": "!", "uptime": "!", "groups": "!", "which": "!a", "type": "!",
		"git branch": "=" + git, "git remote": "=" + git, "git rev-parse": git, "git ls-files": git, "git version": git,
	}
})

// exactCommands are read as they are.
const exactCommands = "\ndate\ndate -u\ndate +%s\nhostname\nls --version\ngit --version\ncommand -v git\n"

// reads returns why a command is not on the short list of those that only read, in the workspace; empty if it is.
func (s *shellText) reads(c *command) string {
	none := "no rule allows " + shown(c.words)
	if strings.Contains(exactCommands, "\n"+shown(c.words)+"\n") {
		return ""
	}
	name, args := programName(c.words[0].text), c.words[1:]
	if name == "git" && len(args) > 0 {
		if args[0].is("--no-pager") && len(args) > 1 {
			args = args[1:]
		}
		name, args = "git "+args[0].text, args[1:]
	}
	options, ok := readers()[name]
	if !ok {
		return none
	}
	letters, others, _ := strings.Cut(strings.TrimLeft(options, "!="), " ")
	var files []word
	for _, w := range args {
		isOption := len(w.text) > 1 && w.text[0] == '-'
		switch {
		case strings.HasPrefix(options, "!") && (!w.isOption() || w.text[0] == hole):
		case !w.known():
			return none
		case isOption && (letters != "" && strings.Trim(w.text[1:], letters) == "" || strings.Contains(" "+others, " "+w.text+" ")):
		case isOption, strings.HasPrefix(options, "="), strings.HasPrefix(w.text, "@"):
			return none
		default:
			files = append(files, w)
		}
	}
	switch {
	case name == "uniq" && len(files) > 1, name == "cd" && len(files) != 1:
		return none
	case (name == "grep" || name == "rg") && len(files) > 0:
		if files = files[1:]; len(files) == 0 {
			files = []word{{text: "."}}
		}
	}
	for _, w := range files {
		if info, err := os.Stat(filepath.Join(s.tree.root, w.text)); name == "diff" && (err != nil || info.IsDir()) {
			return "the links in a directory may lead anywhere"
		}
		if strings.ContainsAny(w.text, "=:") {
			return "it is not known what " + shown(c.words) + " reads"
		}
		if l := s.tree.locate(w.text, s.dirs); !l.inside || l.closed != "" {
			if r := s.tree.best(forPaths(s.rules, Reading), l); r == nil || r.Action != Allow {
				return w.text + " is outside the workspace " + s.tree.root
			}
		}
	}
	return ""
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
