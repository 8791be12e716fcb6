package chat

import "fmt"

// Mode says what the tools of a conversation may change.
type Mode string

// The modes.
const (
	ModeAsk   Mode = "ask"   // the user is asked about changes; the default
	ModePlan  Mode = "plan"  // nothing is changed until the user accepts a plan
	ModeWrite Mode = "write" // programs change files of the workspace without asking
)

// Modes returns the names of all modes.
func Modes() []string { return []string{string(ModeAsk), string(ModePlan), string(ModeWrite)} }

// ParseMode reads a mode that the user has typed.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case ModeAsk, ModePlan, ModeWrite:
		return m, nil
	}
	return "", fmt.Errorf("want ask, plan or write, not %q", text)
}

// ParseFileMode reads a mode from a file. ModeWrite is consent, which no file gives.
func ParseFileMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case ModeAsk, ModePlan:
		return m, nil
	case ModeWrite:
		return "", fmt.Errorf("want ask or plan: %s is consent, which only the user gives, with --mode write or .mode write", text)
	}
	return "", fmt.Errorf("want ask or plan, not %q", text)
}
