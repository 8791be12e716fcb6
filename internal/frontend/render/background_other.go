//go:build !linux && !darwin

package render

import "os"

// Background is a question for the color of a terminal's background. It is not asked on
// this system.
type Background struct{}

// AskBackground returns nil.
func AskBackground() *Background { return nil }

// Settle returns that nothing is known.
func (*Background) Settle() (dark, known bool) { return false, false }

// LostInput returns "".
func (*Background) LostInput() string { return "" }

// TerminalSession returns "".
func TerminalSession(*os.File, func(string) string) string { return "" }
