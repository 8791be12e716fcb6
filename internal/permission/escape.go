package permission

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// escapeWords are the words that make a program run others, or write what the next one runs, by the name of the program: long
// options, which may be abbreviated; letters of options after one dash; other words as they are. A word at the end of which is a
// star is the begin of such a word.
var escapeWords = sync.OnceValue(func() map[string][]string {
	table := map[string]string{
		"git": "--exec-path --config-env --upload-pack --receive-pack --ext-diff --open-files-in-pager --exec --template --sendmail-cmd --smtp-server --to-cmd --cc-cmd --header-cmd --extcmd --httpd --output " +
			"ext::* !* remote-ext for-each-repo config filter-branch hook difftool mergetool instaweb daemon",
		"git clone": "-u -c --config", "git rebase": "-x", "git grep": "-O", "git bisect": "run", "git submodule": "foreach", "git format-patch": "-o", "git archive": "-o",
		"tar":   "--to-command --use-compress-program --checkpoint-action --rsh-command --info-script --new-volume-script --rmt-command -I -F",
		"rsync": "--rsh --rsync-path -e", "ssh": "-o -F -S -J", "scp": "-o -F -S -J", "sftp": "-o -F -S -J", "split": "--filter", "hg": "--config", "svn": "--config-option --diff-cmd --diff3-cmd --editor-cmd",
		"npm": "--script-shell --node-options --prefix --userconfig --globalconfig -C", "pnpm": "--script-shell --node-options --dir --config* -C", "yarn": "--script-shell --node-options --cwd --use-yarnrc --modules-folder",
		"wget": "--use-askpass --execute --config -e", "tcpdump": "-z", "gcc": "-wrapper -fplugin* -specs* --specs -B @*", "find": "-delete -fprint* -fls -ok*", "fd": "-x -X --exec --exec-batch",
		"rg": "--pre --hostname-bin", "sort": "--compress-program", "go": "-exec -toolexec* -vettool* --exec --toolexec --vettool -C -o *-extld* -w generate run", "vim": "-c +* --cmd -S -u -s -e",
		"make": "--eval --file --makefile --directory *=* -f -C -E", "curl": "--config -K", "zip": "-TT --unzip-command", "man": "-P --pager -H --html -o -O", "less": "-o -O +*",
		"cargo": "--config --manifest-path -C", "eslint": "-c --config --plugin --parser --resolve-plugins-relative-to --rulesdir --format -f", "prettier": "--plugin --config --plugin-search-dir", "pytest": "-p -c --rootdir --confcutdir -o --override-ini",
		"node": "-r --require --import --loader --experimental-loader -e --eval -p --print --env-file --experimental-default-config-file", "jest": "-c --config --rootDir --globalSetup", "vitest": "-c --config --root -r", "mypy": "--config-file", "ruff": "--config",
		"docker": "-v --volume --mount --privileged --device", "kubectl": "--kubeconfig", "pip": "--index-url --extra-index-url -i", "gradle": "-I --init-script -p -b", "mvn": "-f --file -s", "terraform": "-chdir*", "tsc": "-p --project",
	}
	words := make(map[string][]string, len(table))
	for name, list := range table {
		words[name] = strings.Fields(list)
	}
	for alias, name := range map[string]string{
		"gtar": "tar", "bsdtar": "tar", "g++": "gcc", "cc": "gcc", "c++": "gcc", "clang": "gcc", "clang++": "gcc", "fdfind": "fd", "vi": "vim", "nvim": "vim", "ex": "vim", "view": "vim",
		"gmake": "make", "more": "less", "pip3": "pip", "podman": "docker",
	} {
		words[alias] = words[name]
	}
	return words
})

// escapes returns why a command may do something else than its name says, although a rule with a wildcard allows it; empty
// if it does not. A rule that spells the word out means it: spelled are the words before the wildcard.
func escapes(c *command, spelled []string) string {
	name := programName(c.words[0].text)
	table := escapeWords()[name]
	if i := subcommandOf(c.words); i > 0 {
		if name == "git" && slices.ContainsFunc(c.words[1:i], func(w word) bool {
			return w.isOption() && !slices.Contains(spelled, w.text) && !slices.ContainsFunc([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}, w.is)
		}) {
			return "options of git itself can make it run other programs"
		}
		table = slices.Concat(table, escapeWords()[name+" "+c.words[i].text])
	}
	for i, w := range c.words[1:] {
		if slices.ContainsFunc(spelled, func(s string) bool { return s != "" && strings.HasPrefix(w.text, s) }) {
			continue
		}
		if i == 0 && strings.HasSuffix(name, "tar") && !strings.HasPrefix(w.text, "-") {
			w.text = "-" + w.text // the letters may come without a dash
		}
		for _, e := range table {
			if escapeMatches(name, e, w.text) && (strings.ContainsAny(e, "-*") || i+1 == subcommandOf(c.words) || !w.known() || name == "git" && (e == "foreach" || e == "run")) {
				return "the word " + shown([]word{w}) + " of " + name + " can run other programs, or write what they run"
			}
		}
	}
	switch operand := subcommandOf(c.words); {
	case spelled != nil && len(spelled) == len(c.words):
	case name == "sed" || name == "gsed":
		if operand == 0 || !substitution().MatchString(c.words[operand].text) || slices.ContainsFunc(c.words[1:], func(w word) bool {
			return w.isOption() && !strings.HasPrefix(w.text, "-i") && strings.Trim(w.text, "-nErsuz") != ""
		}) {
			return "a sed script that may write or run something"
		}
	case strings.HasSuffix(name, "awk"):
		if slices.ContainsFunc(c.words[1:], func(w word) bool {
			return w.isOption() && !strings.HasPrefix(w.text, "-F") || strings.ContainsAny(w.text, "|>@<`\x02") || strings.Contains(w.text, "system") || strings.Contains(w.text, "getline")
		}) {
			return "an awk program that may write or run something"
		}
	}
	return ""
}

// subcommandOf returns the index of the first word that is not an option, 0 if there is none.
func subcommandOf(words []word) int {
	valued := []string{"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--attr-source"}
	for i := 1; i < len(words); i++ {
		if prev := words[i-1].text; !words[i].isOption() && !(words[0].is("git") && slices.Contains(valued, prev)) {
			return i
		}
	}
	return 0
}

// substitution matches sed scripts that only print and substitute.
var substitution = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(s/[^/\\\[\n;]*/[^/\\\n;]*/[gpiI0-9]*|[0-9$]+(,[0-9$]+)?[pdq])$`)
})

// escapeMatches compares a word with one of [escapeWords].
func escapeMatches(name, e, w string) bool {
	long, _, _ := strings.Cut(w, "=")
	switch {
	case strings.Contains(e, "*"):
		return glob(e, w)
	case strings.HasPrefix(e, "--"):
		return len(long) > 2 && strings.HasPrefix(e, long)
	case len(e) == 2 && e[0] == '-' && name != "go" && name != "find":
		return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, e[1:])
	}
	return long == e
}
