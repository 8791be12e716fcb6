package line

import "golang.org/x/sys/windows"

// watchMode has the console pass on each key without showing it. Ctrl-C stays a signal.
func watchMode(fd uintptr) error {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(fd), &mode); err != nil {
		return err
	}
	mode &^= windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT
	mode |= windows.ENABLE_PROCESSED_INPUT | windows.ENABLE_VIRTUAL_TERMINAL_INPUT
	return windows.SetConsoleMode(windows.Handle(fd), mode)
}
