package process

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Shell is a program that runs commands.
type Shell struct {
	Path string // program, with or without its directory
	Name string // such as bash, zsh, nushell or powershell
	Flag string // the argument that comes before a command
}

// FindShell returns the user's shell on the platform goos, as in runtime.GOOS: the one
// that LOKI_SHELL names, or else SHELL; on Windows the PowerShell that this process seems
// to run in, or else cmd.exe; everywhere else /bin/sh. getenv returns the value of a
// variable, empty if it is not set. A SHELL that is not there, or that of accounts without a login,
// such as nologin, is replaced by bash or /bin/sh. look finds a program; nil means exec.LookPath.
func FindShell(goos string, getenv func(name string) string, look func(file string) (string, error)) Shell {
	if look == nil {
		look = exec.LookPath
	}
	path := getenv("LOKI_SHELL")
	switch {
	case path != "":
	case goos == "windows":
		path = windowsShell(getenv)
	default:
		path = getenv("SHELL")
		if path != "" && !runsCommands(path, look) {
			path, _ = look("bash") // "" without it
		}
		if path == "" {
			path = "/bin/sh"
		}
	}
	name := path
	if goos == "windows" {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[:dot]
	}
	s := Shell{Path: path, Name: name, Flag: "-c"}
	switch name {
	case "nu":
		s.Name = "nushell"
	case "powershell":
		s.Flag = "-Command"
	case "cmd":
		s.Flag = "/C"
	}
	return s
}

// runsCommands reports whether a shell is there and is not one that only refuses a login.
func runsCommands(shell string, look func(string) (string, error)) bool {
	_, err := look(shell)
	return err == nil && !slices.Contains([]string{"nologin", "false", "true", "sync", "halt", "shutdown"}, filepath.Base(shell))
}

// windowsShell recognizes PowerShell by the module path, where it puts the user's own
// modules at the front of.
func windowsShell(getenv func(string) string) string {
	modules := strings.ToLower(getenv("PSModulePath"))
	profile := strings.ToLower(getenv("USERPROFILE"))
	switch {
	case profile == "" || !strings.HasPrefix(modules, profile+`\`):
		return "cmd.exe"
	case strings.Contains(modules, `\powershell\7`):
		return "pwsh.exe"
	}
	return "powershell.exe"
}
