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

// gitReads are the subcommands of git that only read, with the words that make them do
// something else. Options may be abbreviated.
var gitReads = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"status": {}, "log": {"--output", "--ext-diff"}, "diff": {"--output", "--ext-diff", "--no-index"}, "show": {"--output", "--ext-diff"},
		"shortlog": {"--output"}, "blame": {"--contents", "--ignore-revs-file"}, "rev-parse": {}, "ls-files": {}, "ls-tree": {}, "describe": {}, "cat-file": {"--textconv", "--filters"},
		"rev-list": {}, "name-rev": {}, "merge-base": {}, "diff-tree": {"--output", "--ext-diff"}, "diff-index": {"--output", "--ext-diff"},
		"diff-files": {"--output", "--ext-diff"}, "show-ref": {}, "for-each-ref": {}, "count-objects": {}, "whatchanged": {"--output", "--ext-diff"},
		"show-branch": {}, "cherry": {}, "range-diff": {"--output", "--ext-diff"}, "check-ignore": {}, "version": {}, "reflog": {"--output", "--ext-diff", "expire", "delete", "drop", "write"},
		"grep": {"--open-files-in-pager", "--no-index", "--ext-grep", "-O"},
	}
})

// gitLists are the subcommands that list only with these words.
var gitLists = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"branch":   {"--list", "-l", "-a", "-r", "-v", "-vv", "-av", "-avv", "-rv", "--all", "--remotes", "--show-current", "--no-color", "--verbose"},
		"tag":      {"--list", "-l", "-n"},
		"remote":   {"-v", "--verbose", "show"},
		"stash":    {"list"},
		"config":   {"--get", "--list", "-l", "--show-origin", "--local", "--global"},
		"worktree": {"list", "--porcelain"}, "submodule": {"status"}, "notes": {"list"}, "bisect": {"log"},
	}
})

// gitWords says when git only reads.
func gitWords(c *command) string {
	args := c.words[1:]
	for len(args) > 0 && (args[0].is("--no-pager") || args[0].is("-P") || args[0].is("--no-optional-locks") || args[0].is("--literal-pathspecs")) {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	if args[0].is("--version") || args[0].is("--help") && len(args) == 1 {
		return ""
	}
	if !args[0].known() || strings.HasPrefix(args[0].text, "-") {
		return "the option " + shown(args[:1]) + " of git"
	}
	for _, dir := range c.dirs {
		if found := bare(dir); found != "" {
			return found + " looks like a repository whose settings could run programs"
		}
	}
	sub, rest := args[0].text, args[1:]
	if allowed, ok := gitLists()[sub]; ok {
		return gitListing(sub, rest, allowed)
	}
	bad, ok := gitReads()[sub]
	if !ok {
		return "no rule allows " + shown(c.words[:len(c.words)-len(rest)])
	}
	paths := false
	for _, w := range rest {
		if w.is("--") {
			paths = true
			continue
		}
		if !w.known() && !w.glob && !w.numeric && !paths && w.isOption() || w.many && !paths {
			return "git " + sub + " may have an option that is not known"
		}
		if sub == "reflog" && slices.Contains(bad, w.text) {
			return "git reflog " + w.text
		}
		if w.glob && w.isOption() && !paths {
			return "git " + sub + " may have an option that is not known"
		}
		if paths || !strings.HasPrefix(w.text, "-") {
			if sub == "diff" && (!w.known() || strings.HasPrefix(w.text, "/") || slices.Contains(strings.Split(w.text, "/"), "..")) {
				return "git diff also compares files outside the repository"
			}
			continue
		}
		name, _, _ := strings.Cut(w.text, "=")
		for _, b := range bad {
			if len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(b, name) || b == "-O" && strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "O") {
				return "the option " + w.text + " of git " + sub
			}
		}
		if sub == "grep" && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "f") || sub == "blame" && name == "-S" || name == "--exclude-from" || name == "--from-file" {
			return "the option " + w.text + " of git " + sub
		}
	}
	return ""
}

// afterGitOptions returns the words from git's subcommand on: what comes before it is about git
// itself, and does not change what a rule such as "git push*" is about.
func afterGitOptions(words []word) []word {
	for len(words) > 0 && words[0].isOption() {
		valued := slices.ContainsFunc([]string{"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--attr-source"}, words[0].is)
		words = words[1:]
		if valued && len(words) > 0 {
			words = words[1:]
		}
	}
	return words
}

// gitListing judges a subcommand that changes something unless all of its words are known.
func gitListing(sub string, rest []word, allowed []string) string {
	for i, w := range rest {
		if !w.known() {
			return "git " + sub + " with words that are not known"
		}
		if slices.Contains(allowed, w.text) {
			continue
		}
		// After these, a name is one to look for.
		if i > 0 && !strings.HasPrefix(w.text, "-") && (rest[0].is("--list") || rest[0].is("-l") && sub != "config" || rest[0].is("show") && !strings.ContainsAny(w.text, ":/") || rest[0].is("--get") && i == 1 && !environ.SecretName(strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(w.text)))) {
			continue
		}
		return "git " + sub + " " + w.text + " may change something"
	}
	if sub == "config" && (len(rest) == 0 || !rest[0].is("--get")) {
		return "git config may print secrets"
	}
	if len(rest) > 0 || sub == "branch" || sub == "tag" || sub == "remote" {
		return ""
	}
	return "no rule allows git " + sub
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
// file monitor nor a hook, such as post-index-change of git status. It closes the time
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

// escapes returns why a command runs something else than its name says, although a rule
// with a wildcard allows it. A rule that spells the word out means it.
func escapes(c *command, pattern []string) string {
	name := programName(c.words[0].text)
	spelled := func(text string) bool {
		return slices.ContainsFunc(pattern, func(p string) bool { return strings.HasPrefix(p, text) && text != "" })
	}
	tells := func(w word, options ...string) string {
		for _, o := range options {
			long := strings.HasPrefix(o, "--")
			hit := strings.HasPrefix(w.text, o)
			if long {
				cutName, _, _ := strings.Cut(w.text, "=")
				hit = len(cutName) > 2 && strings.HasPrefix(o, cutName) || w.text == o
			}
			if hit && !spelled(o) {
				return "the option " + o + " of " + name + " can run other programs"
			}
		}
		return ""
	}
	sub := gitSubcommand(c.words)
	// letters tells of a word with one of the letters among its options, before one that
	// takes the rest of the word as its value.
	letters := func(w word, bad, values string) string {
		if !strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "--") {
			return ""
		}
		for _, l := range w.text[1:] {
			if strings.ContainsRune(bad, l) && !spelled(w.text) && !spelled("-"+string(l)) {
				return "the option -" + string(l) + " of " + name + " can run other programs"
			}
			if strings.ContainsRune(values, l) {
				return ""
			}
		}
		return ""
	}
	for i, w := range c.words[1:] {
		why := ""
		switch name {
		case "git":
			why = tells(w, "--exec-path", "--config-env", "--upload-pack", "--receive-pack", "--ext-diff", "--open-files-in-pager", "--exec", "--template", "--sendmail-cmd", "--smtp-server", "--extcmd")
			if why == "" && i+1 > sub && c.words[sub].is("clone") {
				why = tells(w, "-u", "-c", "--config")
			}
			if why == "" && i+1 > sub && c.words[sub].is("grep") {
				why = letters(w, "O", "efABCm")
			}
			if why == "" && (strings.HasPrefix(w.text, "-c") || strings.HasPrefix(w.text, "-C") || strings.HasPrefix(w.text, "--git-dir") || strings.HasPrefix(w.text, "--work-tree")) && beforeSubcommand(c.words, i+1) {
				why = tells(w, "-c", "-C", "--git-dir", "--work-tree")
			}
			if why == "" && (strings.HasPrefix(w.text, "ext::") || strings.HasPrefix(w.text, "!")) && !spelled("ext::") {
				why = "the address " + w.text + " runs a program"
			}
			if why == "" && i+1 == sub && (w.is("remote-ext") || w.is("for-each-repo") || w.is("config") || w.is("filter-branch") || w.is("hook") || w.is("difftool") || w.is("mergetool")) && !spelled(w.text) {
				why = "git " + w.text + " can make git run other programs"
			}
			if s := c.words[sub]; why == "" && (s.is("rebase") && strings.HasPrefix(w.text, "-x") && !spelled("-x") || s.is("bisect") && w.is("run") && !spelled("run") || s.is("submodule") && w.is("foreach") && !spelled("foreach")) {
				why = "git " + s.text + " " + w.text + " runs other programs"
			}
		case "tar", "gtar", "bsdtar":
			why = tells(w, "--to-command", "--use-compress-program", "--checkpoint-action", "--rsh-command", "--info-script", "--new-volume-script", "--rmt-command")
			if why == "" {
				old := w
				if i == 0 && !strings.HasPrefix(w.text, "-") {
					old.text = "-" + w.text // the letters may come without a dash, with all values after them
					why = letters(old, "IF", "")
				} else {
					why = letters(old, "IF", "fCTXbgNVKLH")
				}
			}
		case "rsync":
			if why = tells(w, "--rsh", "--rsync-path"); why == "" {
				why = letters(w, "e", "fMTB")
			}
		case "ssh", "scp", "sftp":
			why = letters(w, "oFSJ", "BbcDEeIiLlmOpQRWwDPd")
		case "split":
			why = tells(w, "--filter")
		case "npm", "pnpm", "yarn":
			why = tells(w, "--script-shell", "--node-options")
		case "hg":
			why = tells(w, "--config")
		case "svn":
			why = tells(w, "--config-option", "--diff-cmd", "--diff3-cmd", "--editor-cmd")
		case "wget":
			why = tells(w, "--use-askpass")
		case "tcpdump":
			why = tells(w, "-z")
		case "gcc", "g++", "cc", "c++", "clang", "clang++":
			why = tells(w, "-wrapper", "-fplugin", "-specs", "--specs", "-B")
		case "find", "fd", "fdfind":
			why = tells(w, "-delete", "-fprint", "-fls", "-ok")
		case "rg":
			why = tells(w, "--pre", "--hostname-bin")
		case "sort":
			why = tells(w, "--compress-program")
		case "go":
			if strings.Contains(w.text, "-extld") && !spelled(w.text) {
				why = "the linker that -extld names can be any program"
				break
			}
			why = tells(w, "-exec", "-toolexec", "-vettool", "--exec", "--toolexec", "--vettool", "-C", "-o")
			if why == "" && i == 0 && (w.is("generate") || w.is("run")) && !spelled(w.text) {
				why = "go " + w.text + " runs other programs"
			}
		case "vim", "vi", "nvim", "ex", "view":
			why = tells(w, "-c", "+", "--cmd", "-S", "-u", "-s", "-e")
		case "make", "gmake":
			if strings.Contains(w.text, "=") || strings.HasPrefix(w.text, "--ev") || strings.HasPrefix(w.text, "--fi") || strings.HasPrefix(w.text, "--mak") || strings.HasPrefix(w.text, "--di") || letters(w, "fCE", "jlIoW") != "" {
				if !spelled(w.text) && !slices.ContainsFunc(pattern, func(p string) bool {
					return strings.HasPrefix(w.text, strings.TrimRight(p, "*")) && strings.TrimRight(p, "*") != ""
				}) {
					why = "the word " + w.text + " of make can run other programs"
				}
			}
		case "curl":
			if why = tells(w, "--config"); why == "" {
				why = letters(w, "K", "AbcCdDeEFhHmoPQrtTuUwxXyYz")
			}
		case "zip":
			why = tells(w, "-TT", "--unzip-command")
		case "man", "less", "more":
			why = tells(w, "-P", "--pager", "-H", "+", "-o", "-O")
		}
		if why != "" {
			return why
		}
	}
	switch name {
	case "sed", "gsed":
		if why := sedWords(inPlace(c, spelled)); why != "" && !wordsSpelled(pattern) {
			return why
		}
	case "awk", "gawk", "mawk", "nawk":
		if why := awkWords(c); why != "" && !wordsSpelled(pattern) {
			return why
		}
	}
	return ""
}

// inPlace returns a sed command without the options that change files and those that are
// spelled out: what a rule for sed is about, unlike what its script runs.
func inPlace(c *command, spelled func(string) bool) *command {
	bare := *c
	bare.words = slices.DeleteFunc(slices.Clone(c.words), func(w word) bool {
		if !w.known() || len(w.text) < 2 || w.text[0] != '-' {
			return false
		}
		return strings.HasPrefix(w.text, "-i") || strings.HasPrefix(w.text, "--in-place") || strings.Trim(w.text[1:], "nErsuizb") == "" ||
			w.is("--debug") || w.is("--sandbox") || strings.HasPrefix(w.text, "-f") && spelled("-f")
	})
	return &bare
}

// gitSubcommand returns the index of git's subcommand in the words, 0 if there is none.
func gitSubcommand(words []word) int {
	for i := 1; i < len(words); i++ {
		if !beforeSubcommand(words, i+1) {
			return i
		}
	}
	return 0
}

// wordsSpelled reports whether a pattern has no wildcard, so that it means this very command.
func wordsSpelled(pattern []string) bool {
	return !slices.ContainsFunc(pattern, func(p string) bool { return strings.Contains(p, "*") })
}

// beforeSubcommand reports whether the words before index i of a git command are all
// options of git itself or their values.
func beforeSubcommand(words []word, i int) bool {
	for k := 1; k < i; k++ {
		w := words[k].text
		if strings.HasPrefix(w, "-") {
			continue
		}
		if prev := words[k-1].text; prev == "-c" || prev == "-C" || prev == "--git-dir" || prev == "--work-tree" || prev == "--namespace" {
			continue
		}
		return false
	}
	return true
}
