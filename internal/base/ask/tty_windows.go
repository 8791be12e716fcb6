package ask

import (
	"os"

	"golang.org/x/sys/windows"
)

// ansiWithoutTerm is true if a terminal without the variable TERM understands escape
// sequences: a Windows console does not set it.
const ansiWithoutTerm = true

func openTTY() (in, out *os.File, err error) {
	in, err = os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		_ = in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// enableANSI makes the console interpret escape sequences, as newer ones do
// anyway.
func enableANSI(out *os.File) {
	console := windows.Handle(out.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) == nil {
		_ = windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}

// waiting reports that nothing is known to be typed: a console is also ready for events that are no keys.
func waiting(*os.File) bool { return false }
