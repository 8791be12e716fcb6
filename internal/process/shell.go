package process

import "strings"

// Shell is a program that runs commands.
type Shell struct {
	Path string // program, with or without its directory
	Name string // such as bash, zsh, nushell or powershell
	Flag string // the argument that comes before a command
}

// FindShell returns the user's shell on the platform goos, as in runtime.GOOS: the one
// that LOKI_SHELL names, or else SHELL; on Windows the PowerShell that this process seems
// to run in, or else cmd.exe; everywhere else /bin/sh. getenv returns the value of a
// variable, empty if it is not set.
func FindShell(goos string, getenv func(name string) string) Shell {
	path := getenv("LOKI_SHELL")
	switch {
	case path != "":
	case goos == "windows":
		path = windowsShell(getenv)
	default:
		path = getenv("SHELL")
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
