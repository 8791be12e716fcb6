package permission

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// plain reports whether a text has only characters that all shells read alike, so that words and operators are where
// they seem to be.
func plain(text string) bool {
	text = strings.NewReplacer(" 2>/dev/null", "", " 2>&1", "").Replace(text)
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./=,:@+|&;<>'\"-") == "" && !strings.Contains(text, " =") && !strings.Contains(text, "<<")
}

// readers are programs that only read, or only print, with the letters of the options with which they do. Words that are not
// options are files, but for those after the ! of a program, which are text.
//
// Git is not among them: the configuration of a repository has it run programs.
var readers = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"pwd": "LP", "ls": "laAhrtRS1dFsiGp", "cat": "nbsvET", "head": "nc0123456789q", "tail": "nc0123456789q", "wc": "lwcmL", "nl": "ba", "tac": "", "rev": "", "file": "bi",
		"stat": "", "du": "shac", "df": "hT", "md5sum": "", "sha1sum": "", "sha256sum": "", "cmp": "s", "comm": "123", "diff": "uqwbB", "sort": "nrufk0123456789", "cut": "dfc0123456789,-", "tree": "adL0123456789", "basename": "", "dirname": "", "realpath": "",
		"grep": "nirlcvwEFHhosx", "rg": "nilcwF", "cd": "", "uniq": "cdui",
		"echo": "!n", "true": "!", "false": "!", "whoami": "!", "id": "!un", "uname": "!asrm", "nproc": "!", "uptime": "!", "groups": "!", "which": "!a", "type": "!",
	}
})

// exactCommands are read as they are.
const exactCommands = "\ndate\ndate -u\ndate +%s\nhostname\nls --version\ngit --version\ncommand -v git\n"

// reads returns why a command is not on the short list of commands that only read, in the workspace; empty if it is.
func (s *shellText) reads(c *command) string {
	none := "no rule allows " + commandText(c.words)
	if strings.Contains(exactCommands, "\n"+commandText(c.words)+"\n") {
		return ""
	}
	name := programName(c.words[0].text)
	options, ok := readers()[name]
	letters, prints := strings.CutPrefix(options, "!")
	if !ok {
		return none
	}
	var files []word
	for _, w := range c.words[1:] {
		isOption := len(w.text) > 1 && w.text[0] == '-'
		switch {
		case prints && (!w.isOption() || w.text[0] == hole):
		case w.known() && isOption && letters != "" && strings.Trim(w.text[1:], letters) == "":
		case !w.known(), isOption, strings.HasPrefix(w.text, "@"):
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
			return "it is not known what " + commandText(c.words) + " reads"
		}
		if l := s.tree.locate(w.text, s.dirs); !l.inside || l.closed != "" {
			if r := s.tree.best(forPaths(s.rules, Reading), l); r == nil || r.Action != Allow {
				return w.text + " is outside the workspace " + s.tree.root
			}
		}
	}
	return ""
}
