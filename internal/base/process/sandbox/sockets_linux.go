package sandbox

import (
	"os"
	"slices"
	"strings"
)

// closeSockets closes the sockets in places of the child at which programs outside of the sandbox listen, since neither a read-only mount
// nor Landlock keeps a child from connecting to them. One that is made while the child is at work stays open, and so does one that its
// program has bound by a relative path outside of the workspace.
func (l *limits) closeSockets() {
	text, _ := os.ReadFile("/proc/net/unix") // without it none is known
	within := func(places []string, path string) bool {
		return slices.ContainsFunc(places, func(p string) bool { return contains(p, path) })
	}
	for line := range strings.Lines(string(text)) {
		_, name, ok := strings.Cut(line, " /")
		if !ok {
			continue
		}
		path := resolve("/" + strings.TrimSuffix(name, "\n"))
		if (within(l.read, path) || within(l.write, path)) && !within(l.needs.Read, path) && !within(l.needs.Write, path) {
			l.closed[path] = "a program outside of the sandbox listens there"
		}
	}
}
