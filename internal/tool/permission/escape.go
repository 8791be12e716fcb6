package permission

import (
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/text/pattern"
)

// escapeTable has the words that make programs run others, or write what the next one runs, see [escapeMatches]. They matter where
// a rule with a wildcard allows a program whose operands alone run nothing.
const escapeTable = `
git: --exec-path --config-env --upload-pack --receive-pack --ext-diff --open-files-in-pager --exec --template --sendmail-cmd --smtp-server --to-cmd --cc-cmd --header-cmd --extcmd --httpd --output
git: ext::* !* remote-ext for-each-repo config filter-branch hook difftool mergetool instaweb daemon
git clone: -u -c --config
git rebase: -x
git grep: -O
git bisect: run
git submodule: foreach
git format-patch, git archive: -o
tar, gtar, bsdtar: --to-command --use-compress-program --checkpoint-action --rsh-command --info-script --new-volume-script --rmt-command -I -F
rsync: --rsh --rsync-path -e
ssh, scp, sftp: -o -F -S -J
npm, pnpm, yarn: --script-shell --node-options --prefix --userconfig --globalconfig --dir --config* --cwd --use-yarnrc --modules-folder -C
docker, podman: -v --volume --mount --privileged --device
kubectl: --kubeconfig
gcc, g++, cc, c++, clang, clang++: -wrapper -fplugin* -specs* --specs -B @*
find: -delete -fprint* -fls -ok*
fd, fdfind: -x -X --exec --exec-batch
rg: --pre --hostname-bin
sort, split: --compress-program --filter
go: -exec -toolexec* -vettool* --exec --toolexec --vettool -C -o *-extld* -w generate run
make, gmake: --eval --file --makefile --directory *=* -f -C -E
curl: --config -K
wget: --use-askpass --execute --config -e
hg, svn: --config --config-option --diff-cmd --diff3-cmd --editor-cmd
zip: -TT --unzip-command
man: -P --pager -H --html
less, more: -o -O +*
tcpdump: -z
`

// escapeWords returns the words of a program in [escapeTable].
func escapeWords(name string) (words []string) {
	for line := range strings.Lines(escapeTable) {
		if names, list, _ := strings.Cut(line, ": "); slices.Contains(strings.Split(names, ", "), name) {
			words = append(words, strings.Fields(list)...)
		}
	}
	return words
}

// escapes returns why a command may do something else than its name says, although a rule with a wildcard allows it; empty
// if it does not. A rule that spells the word out means it: spelled are the words before the wildcard.
func escapes(c *command, spelled []string) string {
	name, operand := programName(c.words[0].text), subcommandOf(c.words)
	table := escapeWords(name)
	if operand > 0 {
		if name == "git" && slices.ContainsFunc(c.words[1:operand], func(w word) bool {
			return w.isOption() && !slices.Contains(spelled, w.text) && !slices.ContainsFunc([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}, w.is)
		}) {
			return "options of git itself can make it run other programs"
		}
		table = append(table, escapeWords(name+" "+c.words[operand].text)...)
	}
	for i, w := range c.words[1:] {
		if slices.ContainsFunc(spelled, func(s string) bool { return s != "" && strings.HasPrefix(w.text, s) }) {
			continue
		}
		if i == 0 && strings.HasSuffix(name, "tar") && !strings.HasPrefix(w.text, "-") {
			w.text = "-" + w.text // the letters may come without a dash
		}
		for _, e := range table {
			if escapeMatches(name, e, w.text) && (strings.ContainsAny(e, "-*") || i+1 == operand || !w.known() || name == "git" && (e == "foreach" || e == "run")) {
				return "the word " + commandText([]word{w}) + " of " + name + " can run other programs, or write what they run"
			}
		}
	}
	if len(spelled) < len(c.words) && !prints(name, c.words[1:]) {
		return "a script for " + name + " that may write or run something"
	}
	return ""
}

// What the words of sed look like, each after a NUL, if the script only prints or substitutes, such as s/a/b/g and 1,$p, and what makes
// a word of awk do more.
var (
	sedPrints = text.Regexp(`(?s)^(\x00-(i[^\x00]*|[nErsuz]*))*\x00(s/[^/\\\n;\[\x00]*/[^/\\\n;\[\x00]*/[gpiI0-9]*|[0-9$,]*[pdq])(\x00(-i[^\x00]*|-[nErsuz]*|([^-*?[\x00\x02][^\x00\x02]*)?))*$`)
	awkEffect = text.Regexp("(?s)^(-([^F].*)?$|[*?[])|[|>@<`\x02]|system|getline")
)

// prints reports whether a program only prints and substitutes, if it is one that runs a script of its own language.
func prints(name string, args []word) bool {
	switch {
	case strings.HasSuffix(name, "awk"):
		return !slices.ContainsFunc(args, func(w word) bool { return awkEffect().MatchString(w.text) })
	case name != "sed" && name != "gsed":
		return true
	}
	script := ""
	for _, w := range args {
		script += "\x00" + w.text
	}
	return sedPrints().MatchString(script)
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

// escapeMatches compares a word with one of [escapeTable]: a pattern with *; a long option, which may be abbreviated; a letter of
// options after one dash; or a word as it is.
func escapeMatches(name, e, w string) bool {
	long, _, _ := strings.Cut(w, "=")
	switch {
	case strings.Contains(e, "*"):
		return pattern.Text(e, w)
	case strings.HasPrefix(e, "--"):
		return len(long) > 2 && strings.HasPrefix(e, long)
	case len(e) == 2 && e[0] == '-' && name != "go" && name != "find":
		return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, e[1:])
	}
	return long == e
}
