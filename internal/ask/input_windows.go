package ask

import (
	"os"

	"golang.org/x/sys/windows"
)

// dropInput drops what was typed and not read yet.
func dropInput(in *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(in.Fd())) }
