package permission

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/sandbox"
)

// about reports whether a rule asks about or denies paths for a use of them; an empty use is any.
func (r *Rule) about(use Access) bool {
	return len(r.Paths) > 0 && r.Action != Allow && (r.Access == "" || use == "" || r.Access == use)
}

// hidden returns what reports whether a rule denies or asks about a file that was found for a call, or the file is not to be read
// unasked although no rule mentions it; nil if there is no such file. A call that names such a place was asked about itself.
func (j *Judge) hidden(t target) func(path string) bool {
	var dirs []string
	for _, l := range t.found {
		dirs = append(dirs, l.all...)
	}
	if len(t.found) == 0 {
		dirs = []string{j.tree.root}
	}
	closed := t.use == Reading && slices.ContainsFunc(dirs, j.tree.closesBelow) && !slices.ContainsFunc(t.found, func(l located) bool { return l.closed != "" })
	rules := slices.DeleteFunc(slices.Clone(t.rules), func(r *Rule) bool { return len(r.Paths) == 0 || r.Access != "" && r.Access != t.use })
	if !closed && !slices.ContainsFunc(rules, func(r *Rule) bool { return r.about(t.use) }) {
		return nil
	}
	return func(path string) bool {
		var best match
		for _, r := range rules {
			if n, ok := j.tree.matchOne(r, path); ok {
				best.add(r, n)
			}
		}
		if best.rule == nil {
			return closed && j.tree.closes(path) != ""
		}
		return best.rule.Action != Allow
	}
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
		for _, l := range t.found {
			if r.about(t.use) && slices.ContainsFunc(l.all, func(dir string) bool { return j.holds(dir, r) }) && stricter(v.Action, r.Action) != v.Action {
				v, stopped = ruled(r), true
				v.Reason = "a file in " + l.shown + " is what a rule is about: " + v.Rule
			}
		}
	}
	return v, stopped
}

// holds reports whether a file below a directory is, or may be, what a rule is about.
func (j *Judge) holds(dir string, r *Rule) (found bool) {
	const most = 5000 // entries that are looked at
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		if seen++; seen > most {
			found = true
		}
		if _, ok := j.tree.matchOne(r, path); ok && path != dir {
			found = true
		}
		if found {
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// mention notes whether a command may use a file that a rule with a path denies or asks about. A file that a rule denies and that
// the text names is noted apart.
func (j *Judge) mention(o *outcome, c *command, rules []*Rule) {
	for _, r := range rules {
		if !r.about("") {
			continue
		}
		from := sandbox.Read // the lowest level at which that matters
		switch {
		case r.Access == Writing:
			from = sandbox.Write
		case r.Action == Deny && j.o.Sandboxed: // which keeps the file below Full
			from = sandbox.Full
		}
		if use := j.uses(c, r); use != no {
			o.mentioned[from] = cmp.Or(o.mentioned[from], shown(c.words)+" may use a file that a rule is about: "+r.String())
			if use == yes && r.Action == Deny && r.Access != Writing {
				o.named = cmp.Or(o.named, r)
			}
		}
	}
}

// Words by which it is known whether a command uses files: of commands whose words are not files, of git for what looks into its
// history or changes many files, and of programs that go through the directory they are in.
const (
	speakers  = " echo printf true false : test [ pwd cd sleep exit set export command type which date kill wait "
	lookers   = " show diff grep cat-file archive blame stash format-patch -p -u --patch checkout restore reset "
	searchers = " rg ag ack grep zip tar rsync "
)

// uses reports whether a command uses a file that a rule is about: yes if one of its words is such a file in plain text, and maybe
// for a directory with one, a pattern, the history of git, and what is not known.
func (j *Judge) uses(c *command, r *Rule) (use truth) {
	const most = 64 // words for which directories are looked through
	name := programName(c.words[0].text)
	among := func(list, word string) bool { return strings.Contains(list, " "+word+" ") }
	if among(speakers, name) {
		return no
	}
	if len(c.words) > most || name == "git" && slices.ContainsFunc(c.words[1:], func(w word) bool { return w.text != "" && among(lookers, w.text) }) {
		use = maybe
	}
	_, runs := wrappers()[name]
	for i, w := range c.words {
		if i == 0 && !strings.Contains(w.text, "/") {
			continue
		}
		for _, part := range fileParts(w.text) {
			unknown := strings.IndexByte(part, hole)
			if w.glob {
				unknown = strings.IndexAny(part, "*?[\x02")
			}
			if unknown >= 0 { // the directory of the part that is not known
				part = cmp.Or(part[:max(strings.LastIndexByte(part[:unknown], '/'), 0)], ".")
				if !w.glob && !runs && w.many && name != "xargs" {
					use = maybe
				}
			}
			for _, path := range j.tree.locate(part, c.dirs).all {
				_, hit := j.tree.matchOne(r, path)
				if hit && w.known() && (!strings.ContainsAny(part, " \n") || exists(path)) {
					return yes // words with a blank are messages more often than files
				}
				if use == no && (hit || j.holds(path, r)) {
					use = maybe
				}
			}
		}
	}
	if use == no && among(searchers, name) && len(c.words) < 4 && slices.ContainsFunc(c.dirs, func(dir string) bool { return j.holds(dir, r) }) {
		return maybe
	}
	return use
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fileParts returns the parts of a word that may name files: itself, the value of a long option, what follows the letter of
// a short one, a revision or an @.
func fileParts(text string) []string {
	parts := []string{text}
	for i := 0; i < len(text); i++ {
		if strings.IndexByte("=:@", text[i]) >= 0 && i+1 < len(text) {
			parts = append(parts, text[i+1:])
		}
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		parts = append(parts, text[2:])
	}
	return parts
}
