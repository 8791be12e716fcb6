package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// History is the file in which a shell remembers commands. The zero History is that of
// a shell whose history is not known, and keeps nothing.
type History struct {
	File   string
	format func(command string, at time.Time) string
}

// History returns where s keeps its history on the platform goos, as in runtime.GOOS. home
// is the user's home directory and configDir that of configuration; getenv returns the
// value of a variable, empty if it is not set.
func (s Shell) History(goos, home, configDir string, getenv func(name string) string) History {
	raw := func(command string, _ time.Time) string { return command + "\n" }
	at := func(elems ...string) string { return filepath.Join(append([]string{home}, elems...)...) }
	switch s.Name {
	case "bash", "sh":
		return History{cmp.Or(getenv("HISTFILE"), at(".bash_history")), raw}
	case "zsh":
		return History{cmp.Or(getenv("HISTFILE"), at(".zsh_history")), func(command string, now time.Time) string {
			return fmt.Sprintf(": %d:0;%s\n", now.Unix(), command)
		}}
	case "fish":
		return History{at(".local", "share", "fish", "fish_history"), func(command string, now time.Time) string {
			command = strings.ReplaceAll(command, `\`, `\\`) // fish reads \n and \\ as escapes
			return fmt.Sprintf("- cmd: %s\n  when: %d\n", command, now.Unix())
		}}
	case "nushell":
		return History{filepath.Join(configDir, "nushell", "history.txt"), raw}
	case "powershell", "pwsh":
		if goos == "windows" {
			return History{filepath.Join(getenv("APPDATA"), "Microsoft", "Windows", "PowerShell", "PSReadLine", "ConsoleHost_history.txt"), raw}
		}
		return History{at(".local", "share", "powershell", "PSReadLine", "ConsoleHost_history.txt"), raw}
	case "ksh":
		return History{at(".ksh_history"), raw}
	case "tcsh":
		return History{at(".history"), raw}
	}
	return History{}
}

// Append adds a command that succeeded at the given time. Line feeds in it become blanks.
// The file is made if it does not exist.
func (h History) Append(command string, at time.Time) error {
	if h.File == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.File), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(h.format(strings.ReplaceAll(command, "\n", " "), at))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
