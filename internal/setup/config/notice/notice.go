// Package notice collects what the user should know of the program where no request can show it.
package notice

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/file/atomicfile"
	"loki/internal/setup/config"
)

// fileName is the file that holds, in the state directory, the keys of the notices that the user has
// seen, one a line.
const fileName = "notices"

// Board has the texts that the user should know. Its methods may be called from several goroutines.
type Board struct {
	Paths   *config.Paths
	Looking bool // nothing is written

	mu    sync.Mutex
	texts []string // guarded by mu
}

// Take returns the texts that have not been returned before.
func (b *Board) Take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts := b.texts
	b.texts = nil
	return texts
}

// Later has [Board.Take] return a text.
func (b *Board) Later(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts = append(b.texts, text)
}

// Once shows text, once for each key: never again on this machine, as far as the state
// directory can be read and written.
func (b *Board) Once(key, text string, show func(text string)) {
	file := filepath.Join(b.Paths.StateDir, fileName)
	src, err := os.ReadFile(file)
	if err == nil && slices.Contains(strings.Split(string(src), "\n"), key) {
		return
	}
	show(text)
	if b.Looking {
		return // it is shown again
	}
	_ = atomicfile.Append(file, []byte(key+"\n")) // what is not written is shown once more
}
