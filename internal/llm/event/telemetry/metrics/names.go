package metrics

import (
	"sync"

	"loki/internal/base/text"
)

// mostNames is how many values a label of names has, and longest how long one is, in bytes.
const (
	mostNames = 200
	longest   = 128
)

// Other is the value that replaces all names above the limit.
const Other = "other"

// Names bounds the values of a label: each of the first 200 names is its own value, all others are [Other]. It may be
// used from several goroutines. The zero Names has seen none.
type Names struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Value returns the value for a name. The empty name is a value of its own.
func (n *Names) Value(name string) string {
	if name == "" {
		return ""
	}
	name = text.Cut(name, longest)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.seen[name]:
		return name
	case len(n.seen) >= mostNames:
		return Other
	case n.seen == nil:
		n.seen = make(map[string]bool)
	}
	n.seen[name] = true
	return name
}
