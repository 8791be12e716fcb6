package script

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"loki/internal/base/process"
)

// shebang returns the program and arguments that the first line of a script names, nil if
// it names none.
func shebang(src []byte) []string {
	line, _, _ := strings.Cut(string(src), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	rest = strings.TrimSpace(rest)
	rest, _ = strings.CutPrefix(rest, "/usr/bin/env ")
	words := strings.Fields(rest)
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	return words
}

// interpreter returns the program that runs a script, and the arguments in front of the
// script's path. The first line decides, except that the usual interpreter of a language
// means the best available one of its kind. A script that is free takes none from a working directory that is not trusted.
func (s *script) interpreter(src []byte, free bool) ([]string, error) {
	words := shebang(src)
	if len(words) == 0 || s.usual(words) {
		return s.usualInterpreter(free)
	}
	program := words[0]
	if strings.ContainsAny(program, `/\`) {
		if _, err := os.Stat(program); err != nil {
			program = filepath.Base(program) // a path of another machine
		}
	}
	path, err := s.o.look(program)
	if err != nil {
		return nil, fmt.Errorf("%s, which the first line of %s asks for, is not installed or not in PATH", words[0], filepath.Base(s.file))
	}
	return append([]string{path}, words[1:]...), nil
}

// usual reports whether words name the usual interpreter of the language.
func (s *script) usual(words []string) bool {
	switch strings.Join(words, " ") {
	case "bash", "/bin/bash", "/usr/bin/bash":
		return s.lang == bash
	case "python", "python3":
		return s.lang == python
	case "tsx", "npx tsx":
		return s.lang == typescript
	}
	return false
}

func (s *script) usualInterpreter(free bool) ([]string, error) {
	switch {
	case s.lang == bash && runtime.GOOS == "windows":
		return gitBash(os.Getenv, s.o.look)
	case s.lang == python && !(free && s.o.Apart != nil):
		if path, err := s.o.look(s.venv()); err == nil {
			return []string{path}, nil
		}
	}
	return process.Interpreter(string(s.lang), filepath.Dir(s.file), s.o.look)
}

// venv returns where Python is in the virtual environment of the working directory.
func (s *script) venv() string {
	dir := s.o.Dir
	if dir == "" {
		dir, _ = os.Getwd() // without one there is no virtual environment
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(dir, ".venv", "Scripts", "python.exe")
	}
	return filepath.Join(dir, ".venv", "bin", "python")
}

// gitBash returns the bash of Git for Windows. The bash.exe that Windows itself has in PATH
// belongs to WSL, which does not know Windows paths.
func gitBash(getenv func(string) string, look func(string) (string, error)) ([]string, error) {
	var places []string
	for _, variable := range []string{"ProgramFiles", "ProgramW6432", "LocalAppData"} {
		if base := getenv(variable); base != "" {
			if variable == "LocalAppData" {
				base = filepath.Join(base, "Programs")
			}
			places = append(places, filepath.Join(base, "Git", "bin", "bash.exe"))
		}
	}
	if git, err := look("git"); err == nil {
		root := filepath.Dir(filepath.Dir(git)) // git is in cmd, bin or mingw64\bin
		places = append(places, filepath.Join(root, "bin", "bash.exe"), filepath.Join(filepath.Dir(root), "bin", "bash.exe"))
	}
	for _, place := range places {
		if path, err := look(place); err == nil {
			return []string{path, "--noprofile", "--norc"}, nil
		}
	}
	return nil, fmt.Errorf("bash tools need Git for Windows, which is not installed")
}
