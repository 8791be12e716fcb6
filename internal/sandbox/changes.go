//go:build (linux && (amd64 || arm64)) || darwin

package sandbox

import (
	"io/fs"
	"strings"
)

// maxChanges is how many paths [Changes] has.
const maxChanges = 10_000

// Changes are the paths that changed in the workspace while a child was at work, relative to it and with slashes, in the order in which
// directories list them. Of a directory that was removed or renamed only its own name is removed. What other programs changed at
// the same time is among them.
type Changes struct {
	Created, Changed, Removed []string
	More                      bool // there are more than 10,000
}

// Changes returns what changed since the child of the box was started. It examines the files of the workspace, so it takes about as long
// as the start of a box, and is called after the child has ended. At level [Read], and at [Full], it is empty.
func (b *Box) Changes() (c Changes) {
	if b.found == nil || !b.held.level.Covers(Write) {
		return c
	}
	add := func(list *[]string, path string) {
		if len(c.Created)+len(c.Changed)+len(c.Removed) == maxChanges {
			c.More = true
		} else {
			*list = append(*list, strings.TrimPrefix(path, b.held.workspace+"/"))
		}
	}
	s := newSurvey()
	w := b.walk(&b.held, &s)
	w.visit = func(f *frame) {
		before := make(map[string]bool)
		if l := b.found.listed[f.id]; l != nil {
			for _, e := range l.entries {
				before[e.name] = true
			}
		}
		for _, e := range f.list.entries {
			if !before[e.name] {
				add(&c.Created, join(f.path, e.name))
			} else if e.kind != fs.ModeDir {
				if s, err := statAt(f.fd, e.name); err == nil && s.changed >= b.found.began {
					add(&c.Changed, join(f.path, e.name))
				}
			}
			delete(before, e.name)
		}
		for name := range before {
			add(&c.Removed, join(f.path, name))
		}
	}
	_ = w.root(b.held.workspace) // what cannot be examined is closed to the child
	return c
}
