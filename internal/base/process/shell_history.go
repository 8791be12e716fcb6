package process

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/base/file/atomicfile"
)

// ShellHistory is the file in which a shell remembers commands. The zero ShellHistory is that of
// a shell whose history is not known, and keeps nothing.
type ShellHistory struct {
	File   string
	format func(command string, at time.Time) string
}

// History returns where s keeps its history on the platform goos, as in runtime.GOOS. home
// is the user's home directory and configDir that of configuration; getenv returns the
// value of a variable, empty if it is not set.
func (s Shell) History(goos, home, configDir string, getenv func(name string) string) ShellHistory {
	raw := func(command string, _ time.Time) string { return command + "\n" }
	at := func(elems ...string) string { return filepath.Join(append([]string{home}, elems...)...) }
	switch s.Name {
	case "bash", "sh":
		return ShellHistory{cmp.Or(getenv("HISTFILE"), at(".bash_history")), raw}
	case "zsh":
		return ShellHistory{cmp.Or(getenv("HISTFILE"), at(".zsh_history")), func(command string, now time.Time) string {
			return fmt.Sprintf(": %d:0;%s\n", now.Unix(), command)
		}}
	case "fish":
		return ShellHistory{at(".local", "share", "fish", "fish_history"), func(command string, now time.Time) string {
			command = strings.ReplaceAll(command, `\`, `\\`) // fish reads \n and \\ as escapes
			return fmt.Sprintf("- cmd: %s\n  when: %d\n", command, now.Unix())
		}}
	case "nushell":
		return ShellHistory{filepath.Join(configDir, "nushell", "history.txt"), raw}
	case "powershell", "pwsh":
		if goos == "windows" {
			return ShellHistory{filepath.Join(getenv("APPDATA"), "Microsoft", "Windows", "PowerShell", "PSReadLine", "ConsoleHost_history.txt"), raw}
		}
		return ShellHistory{at(".local", "share", "powershell", "PSReadLine", "ConsoleHost_history.txt"), raw}
	case "ksh":
		return ShellHistory{at(".ksh_history"), raw}
	case "tcsh":
		return ShellHistory{at(".history"), raw}
	}
	return ShellHistory{}
}

// Append adds a command that succeeded at the given time. Line feeds in it become blanks.
// The file is made if it does not exist.
func (h ShellHistory) Append(command string, at time.Time) error {
	if h.File == "" {
		return nil
	}
	return atomicfile.Append(h.File, []byte(h.format(strings.ReplaceAll(command, "\n", " "), at)))
}
