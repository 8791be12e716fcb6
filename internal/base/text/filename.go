package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFileName is the longest name of a file that a user chooses, in bytes: with an extension it
// is still valid on every system.
const MaxFileName = 200

// FileNameFault returns why a file that a user names, with an extension to follow, cannot be called
// name on every system, "" if it can.
func FileNameFault(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > MaxFileName:
		return fmt.Sprintf("it is longer than %d bytes", MaxFileName)
	case !utf8.ValidString(name):
		return "it is not valid UTF-8"
	case strings.HasPrefix(name, "."):
		return "it begins with a dot"
	case strings.HasSuffix(name, "."):
		return "it ends with a dot"
	case strings.TrimSpace(name) != name:
		return "there is white space around it"
	case isDevice(name):
		return "it is the name of a device on Windows"
	}
	for _, r := range name {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return fmt.Sprintf("it contains %q", r)
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return "it contains a control character"
		}
	}
	return ""
}

// isDevice reports whether Windows takes name, whatever its extension, for a device.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	for _, device := range []string{"COM", "LPT"} {
		if digit, ok := strings.CutPrefix(base, device); ok && utf8.RuneCountInString(digit) == 1 && strings.Contains("0123456789¹²³", digit) {
			return true
		}
	}
	return false
}
