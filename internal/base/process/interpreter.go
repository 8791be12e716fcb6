package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Ext returns the extension of a script's path, with its dot and as it is spelled. A
// file name that only starts with a dot, such as ".sh", has none.
func Ext(path string) string {
	name := filepath.Base(path)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[i:]
	}
	return ""
}

// Supported reports whether scripts with this extension can be run: .sh, .py and .ts,
// in any case.
func Supported(ext string) bool {
	switch strings.ToLower(ext) {
	case ".sh", ".py", ".ts":
		return true
	}
	return false
}

// Interpreter returns the program that runs scripts with the given extension (see
// [Ext]), and the arguments that come before the script's path:
//
//   - .sh: bash;
//   - .py: python3, on Windows also "py -3" or python;
//   - .ts: tsx from node_modules/.bin in dir, that of the script, or in one above it, or from PATH,
//     and otherwise Node.js from 22.6 on, which leaves out the types itself.
//
// A python3 that is a pyenv shim is replaced by the interpreter the shim would choose,
// which saves 0.1 s at each start.
//
// look finds a program; nil means exec.LookPath. The error for an extension that is
// not [Supported] names it; that for an interpreter which is not installed is a
// [*StartError]. Nothing is cached: the whole takes some ten microseconds.
func Interpreter(ext, dir string, look func(file string) (string, error)) (argv []string, err error) {
	if look == nil {
		look = exec.LookPath
	}
	switch strings.ToLower(ext) {
	case ".sh":
		return firstFound(look, []string{"bash"})
	case ".py":
		return python(look)
	case ".ts":
		return typescript(dir, look)
	case "":
		return nil, errors.New("no file extension to choose an interpreter by (known: .sh, .py, .ts)")
	}
	return nil, fmt.Errorf("no interpreter for %q scripts (known: .sh, .py, .ts)", ext)
}

// firstFound returns the first of commands whose program look finds, with its path.
func firstFound(look func(string) (string, error), commands ...[]string) ([]string, error) {
	for _, command := range commands {
		// A program found through a relative PATH entry is not wanted; look says
		// so with an error.
		if path, err := look(command[0]); err == nil {
			return append([]string{path}, command[1:]...), nil
		}
	}
	return nil, notFound(commands[0][0])
}

func python(look func(string) (string, error)) ([]string, error) {
	commands := [][]string{{"python3"}}
	if runtime.GOOS == "windows" {
		commands = append(commands, []string{"py", "-3"}, []string{"python"})
	}
	argv, err := firstFound(look, commands...)
	if err == nil {
		argv[0] = unshim(argv[0], os.LookupEnv, os.Getwd)
	}
	return argv, err
}

func typescript(dir string, look func(string) (string, error)) ([]string, error) {
	for filepath.IsAbs(dir) {
		if argv, err := firstFound(look, []string{filepath.Join(dir, "node_modules", ".bin", "tsx")}); err == nil {
			return argv, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if argv, err := firstFound(look, []string{"tsx"}); err == nil {
		return argv, nil
	}
	if node, err := look("node"); err == nil && stripsTypes(node) {
		return []string{node, "--experimental-strip-types", "--disable-warning=ExperimentalWarning"}, nil
	}
	return nil, &StartError{Program: "tsx", Reason: "is not installed, and Node.js 22.6 or newer is not there to do without it; install it with: npm install -g tsx", Err: exec.ErrNotFound}
}

// stripped has what stripsTypes found out, by the path of Node.js.
var stripped sync.Map

// stripsTypes reports whether a Node.js runs TypeScript itself, as 22.6 and later do. It asks each once.
func stripsTypes(node string) bool {
	if known, ok := stripped.Load(node); ok {
		return known.(bool)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, "--version").Output() // such as v22.6.0
	var major, minor int
	_, scanErr := fmt.Sscanf(string(out), "v%d.%d.", &major, &minor)
	can := err == nil && scanErr == nil && (major > 22 || major == 22 && minor >= 6)
	stripped.Store(node, can)
	return can
}
