package ptytest

import (
	"math/rand/v2"
	"strings"
)

// TypedAhead returns n texts as users type and paste them before a question is there: letters, digits, line ends, sequences of keys.
// They are the same in each run.
func TypedAhead(n int) (texts []string) {
	pieces := []string{
		"y", "n", "a", "e", "1", "2", "9", "j", "k", "g", "G", " ", "\r", "\n", "y\n", "yes\r", "drop\r", "make test\n", "\t", "\x7f", "ä", "漢",
		"\x1b[A", "\x1b[B", "\x1bOB", "\x1b[5~", "\x1b", "\x1b[", "\x1b]11;rgb:ee", "\x1b]11;rgb:ee/ee/ee\x07", "\x1b[200~e\ry\n\x1b[201~", "\x1b[200~y", "\x15",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		var b strings.Builder
		for range 1 + random.IntN(6) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	return texts
}
