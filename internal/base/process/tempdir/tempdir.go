// Package tempdir makes the temporary directories of the program. What a process that was killed left behind is
// removed when a later process of the same user makes a directory at the same place.
package tempdir

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/identity"
	"loki/internal/base/text"
)

// swept has the places that this process has swept.
var swept sync.Map

// Make makes a directory that only its owner can read, below parent; "" means [os.TempDir]. kind, lower-case letters and hyphens, is a part
// of its name. The caller removes it.
func Make(parent, kind string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if _, done := swept.LoadOrStore(parent, true); !done {
		Sweep(parent)
	}
	p := identity.Self()
	return os.MkdirTemp(parent, fmt.Sprintf("loki-%s-%d-%s%s-", kind, p.PID, sum(p.Machine), sum(p.Born)))
}

// name is that of a directory: its process, with the sums of the machine and the birth.
var name = text.Regexp(`^loki-[a-z-]+-(\d+)-([0-9a-f]{8})([0-9a-f]{8})-\d+$`)

func sum(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%08x", h.Sum32())
}

// Sweep removes the directories in parent whose processes have ended. Directories of other users, and of processes that
// cannot be seen from here, such as those of other containers, stay.
func Sweep(parent string) {
	entries, _ := os.ReadDir(parent) // without it there is nothing to remove
	machine := sum(identity.Self().Machine)
	for _, e := range entries {
		m := name().FindStringSubmatch(e.Name())
		if m == nil || m[2] != machine || !e.IsDir() {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		if born, alive := identity.Born(pid); alive && (born == "" || sum(born) == m[3]) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if uid, _, known := strings.Cut(atomicfile.Owner(path), ":"); !known || uid == strconv.Itoa(os.Geteuid()) {
			_ = os.RemoveAll(path) // else the next process tries again
		}
	}
}
