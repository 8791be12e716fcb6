package render

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes sets the console behind f to obey escape sequences. Consoles older than
// Windows 10 1511 cannot.
func enableEscapes(f *os.File) bool {
	h := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
