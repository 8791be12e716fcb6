package render

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether f is a terminal that understands escape sequences: it is
// a terminal at all, TERM is not dumb and, on Windows, the console could be set to obey them.
func IsTerminal(f *os.File, getenv func(string) string) bool {
	return term.IsTerminal(int(f.Fd())) && getenv("TERM") != "dumb" && enableEscapes(f)
}

// Size returns a function that asks for the current size of the terminal f, in columns
// and rows. If the terminal does not report it, it is 80 by 24.
func Size(f *os.File) func() (columns, rows int) {
	return func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0
		}
		return columns, rows
	}
}
