package permission

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
)

// about reports whether a rule asks about or denies paths for a use of them; an empty use is any.
func (r *Rule) about(use Access) bool {
	return len(r.Paths) > 0 && r.Action != Allow && r.isFor(use)
}

// isFor reports whether a rule about paths is about a use of them; an empty use is any.
func (r *Rule) isFor(use Access) bool { return r.Access == "" || use == "" || r.Access == use }

// forPaths returns the rules about paths and a use of them; an empty use is any.
func forPaths(rules []*Rule, use Access) []*Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return len(r.Paths) == 0 || !r.isFor(use) })
}

// hidden returns what reports whether a rule denies or asks about a file that was found for a call, or the file is not to be read
// unasked although no rule mentions it; nil if there is no such file. A call that names such a place was asked about itself.
func (j *Judge) hidden(t target) func(path string) bool {
	dirs := []string{j.tree.root}
	if len(t.found) > 0 {
		dirs = nil
	}
	for _, l := range t.found {
		dirs = append(dirs, l.all...)
	}
	closed := t.use == Reading && slices.ContainsFunc(dirs, j.tree.closesBelow) && !slices.ContainsFunc(t.found, func(l located) bool { return l.closed != "" })
	rules := forPaths(t.rules, t.use)
	if !closed && !slices.ContainsFunc(rules, func(r *Rule) bool { return r.Action != Allow }) {
		return nil
	}
	if i := slices.IndexFunc(rules, func(r *Rule) bool { return r.Action != Allow && r.hides == nil }); i < 0 && !closed {
		r := rules[slices.IndexFunc(rules, func(r *Rule) bool { return r.hides != nil })]
		return func(path string) bool { // a link that is found was not followed
			_, ok := r.hides(path)
			return ok || r.twin(path)
		}
	}
	return func(path string) bool {
		l := j.tree.locate(path, []string{""})
		if best := j.tree.best(rules, l); best != nil {
			return best.Action != Allow
		}
		return closed && l.closed != ""
	}
}

// KeptError reports that a rule denies a file to the tools that read files, or asks about it.
type KeptError struct {
	Path, Rule string
	Asks       bool // the rule asks
	Ignored    bool // an ignore file hides it; Rule says which
}

// Error implements error.
func (e *KeptError) Error() string {
	if e.Asks {
		return fmt.Sprintf("a rule asks about %s: %s", e.Path, e.Rule)
	}
	if e.Ignored {
		return e.Rule
	}
	return fmt.Sprintf("a rule keeps %s from models: %s", e.Path, e.Rule)
}

// Unreadable returns what reports, by its absolute path, that a rule denies a file to the tools that read files, or asks about it,
// as a [*KeptError]. It is nil if there is no such rule, and may be called from several goroutines. The links are those of now.
func (j *Judge) Unreadable() func(path string) error {
	rules := slices.DeleteFunc(forPaths(j.rules("fs_cat", ""), Reading), func(r *Rule) bool { return len(r.Arguments) > 0 })
	if r := j.ignoreRule("fs_cat", false, true); r != nil {
		rules = append(rules, r)
	}
	if !slices.ContainsFunc(rules, func(r *Rule) bool { return r.Action != Allow }) {
		return nil
	}
	return func(path string) error {
		l := j.tree.locate(path, []string{j.tree.root})
		if r := j.tree.best(rules, l); r != nil && r.Action != Allow {
			return &KeptError{Path: path, Rule: cmp.Or(r.why([]located{l}), r.String()), Asks: r.Action == Ask, Ignored: r.hides != nil}
		}
		return nil
	}
}

// best returns the one of rules with paths that decides about a file, nil if there is none.
func (w workspace) best(rules []*Rule, l located) *Rule {
	var best match
	for _, r := range rules {
		if n, ok := w.matches(r, l); ok {
			best.add(r, n)
		}
	}
	return best.rule
}

// leavers are tools that leave out what is hidden from them.
var leavers = []string{"fs_grep", "fs_glob", "fs_ls", "fs_read", "fs_cat"}

// below judges a call about directories in which a file is that a rule denies or asks about. stopped is false if there is
// none, or the tool leaves it out.
func (j *Judge) below(t target) (v Verdict, stopped bool) {
	if slices.Contains(leavers, t.Tool) {
		return v, false
	}
	for _, r := range t.rules {
		if r.wide && !slices.Contains(writingTools, t.Tool) {
			continue // what a tool of the user does with a directory is not known
		}
		for _, l := range t.found {
			if r.about(t.use) && slices.ContainsFunc(l.all, func(dir string) bool { return holds(dir, r) }) && stricter(v.Action, r.Action) != v.Action {
				v, stopped = ruleVerdict(r), true
				v.Reason = "a file in " + l.shown + " is what a rule is about: " + v.Rule
				if r.hides != nil {
					v.Reason = "ignore files are in " + l.shown + ", or hide files there"
				}
			}
		}
	}
	return v, stopped
}

// holds reports whether a file below a directory is, or may be, what a rule is about.
func holds(dir string, r *Rule) bool {
	most := 5000 // entries that are looked at
	if r.hides != nil {
		most = 200_000 // nothing can be said otherwise of a directory that builds fill
	}
	seen := 0
	return nil != filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		seen++
		if _, ok := matchOne(r, path); ok && path != dir || seen > most {
			return fs.ErrExist
		}
		return nil
	})
}

// mention notes whether a command may use a file that a rule with a path denies or asks about. A file that a rule denies and that
// the text names is noted apart.
func (s *shellText) mention(c *command) {
	for _, r := range s.rules {
		use := no
		if r.about("") {
			use = s.uses(c, r)
		}
		if use == no {
			continue
		}
		s.files = s.files || r.Action == Ask && r.about(Reading)
		from := sandbox.Read // the lowest level at which that matters
		switch {
		case s.hasCopy(c, r, use):
		case r.Access == Writing:
			from = sandbox.Write
		case r.Action == Deny && s.o.Sandboxed: // which keeps the file below Full
			from = sandbox.Full
		}
		s.mentioned[from] = cmp.Or(s.mentioned[from], doubt(commandText(c.words)+" may use a file that a rule is about: "+r.String()))
		if use == yes && r.Action == Deny && r.Access != Writing && r.hides == nil {
			s.named = cmp.Or(s.named, r)
		}
	}
}

// Words by which it is known whether a command uses files: of commands whose words are not files, of git for what shows or copies
// contents and for what changes many files, and of programs that go through the directory they are in.
const (
	speakers = " echo printf true false : test [ pwd cd sleep exit set export command type which date kill wait "
	copiers  = ` show diff grep cat-file archive blame annotate format-patch whatchanged range-diff diff-tree diff-index diff-files fast-export bundle` +
		` read-tree checkout-index worktree clone -p -u --cc --patch `
	changers  = " stash checkout restore reset "
	searchers = " rg ag ack grep zip tar rsync "
)

// among reports whether a word is in a list of the constants above.
func among(list, word string) bool { return word != "" && strings.Contains(list, " "+word+" ") }

// uses reports whether a command uses a file that a rule is about: yes if one of its words is such a file in plain text, and maybe
// for a directory with one, a pattern, the history of git, and what is not known.
func (s *shellText) uses(c *command, r *Rule) (use truth) {
	const most = 64 // words for which directories are looked through
	name := programName(c.words[0].text)
	if among(speakers, name) {
		return no
	}
	if len(c.words) > most || name == "git" && slices.ContainsFunc(c.words[1:], func(w word) bool { return copies(w) || among(changers, w.text) }) {
		use = maybe
	}
	_, runs := wrappers()[name]
	for i, w := range c.words {
		if i == 0 && !strings.Contains(w.text, "/") {
			continue
		}
		for _, part := range fileParts(w.text) {
			l := s.tree.locate(part, s.dirs)
			_, hit := s.tree.matches(r, l)
			there := hit && slices.ContainsFunc(l.all, exists)
			if there && (w.glob || w.known()) || hit && w.known() && !strings.ContainsAny(part, " \n") {
				return yes // words with a blank are messages more often than files, and a pattern that no file matches is a name
			}
			wild := strings.IndexByte(part, hole)
			if w.glob {
				wild = strings.IndexAny(part, "*?[\x02")
			}
			if wild >= 0 { // the directory of the part that is not known
				l = s.tree.locate(cmp.Or(part[:max(strings.LastIndexByte(part[:wild], '/'), 0)], "."), s.dirs)
				_, hit = s.tree.matches(r, l)
				if !w.glob && !runs && w.many && name != "xargs" {
					use = maybe
				}
			}
			if use == no && (hit || slices.ContainsFunc(l.all, func(dir string) bool { return holds(dir, r) })) {
				use = maybe
			}
		}
	}
	if use == no && among(searchers, name) && len(c.words) < 4 && slices.ContainsFunc(s.dirs, func(dir string) bool { return holds(dir, r) }) {
		return maybe
	}
	return use
}

// copyOption begins an option with which git shows contents.
var copyOption = text.Regexp(`^(-U|-L|--unified|--pa|--word-diff|--color-words)`)

// copies reports whether a word of git has it show, or copy, contents.
func copies(w word) bool { return among(copiers, w.text) || copyOption().MatchString(w.text) }

// hasCopy reports whether a command gets at a copy of a file which a rule is about, or may do so, that a program of version control keeps:
// the sandbox does not close that. use is what [shellText.uses] says.
func (s *shellText) hasCopy(c *command, r *Rule, use truth) bool {
	name := programName(c.words[0].text)
	if use == yes {
		return among(" git hg svn jj sl bzr fossil ", name)
	}
	return name == "git" && slices.ContainsFunc(c.words[1:], func(w word) bool {
		return w.is("cat-file") || w.is("archive") || copies(w) && slices.ContainsFunc(s.dirs, func(dir string) bool { return tracks(dir, r) })
	})
}

// tracks reports whether the index of git in a directory, or in one above it, has a file that a rule is about, or cannot be read.
func tracks(dir string, r *Rule) bool {
	top := dir
	for ; !exists(filepath.Join(top, ".git")); top = filepath.Dir(top) {
		if top == filepath.Dir(top) {
			return true
		}
	}
	index, err := os.ReadFile(filepath.Join(top, ".git", "index"))
	if errors.Is(err, fs.ErrNotExist) { // nothing was added yet, or it is a directory of work beside another one
		return !exists(filepath.Join(top, ".git", "HEAD"))
	}
	found := false
	rest, ok := sandbox.Index(index, func(name []byte) {
		_, matched := matchOne(r, filepath.Join(top, string(name)))
		found = found || matched || bytes.HasSuffix(name, []byte("/")) // the latter in a sparse index
	})
	return found || !ok || bytes.Contains(rest, []byte("link\x00")) // part of it is in another file
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fileParts returns the parts of a word that may name files: itself, the value of a long option, what follows the letter of
// a short one, a revision or an @.
func fileParts(text string) []string {
	parts := []string{text}
	for i := range len(text) - 1 {
		if strings.IndexByte("=:@", text[i]) >= 0 || i == 1 && text[0] == '-' && text[1] != '-' {
			parts = append(parts, text[i+1:])
		}
	}
	return parts
}
