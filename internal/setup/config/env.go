package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"loki/internal/base/file/userfile"
)

// Env is what the program knows as its environment: the variables of the process,
// and below them those of the env file, which fill in what the process does not
// set. A variable that is set to the empty string is set.
//
// An Env never changes and never touches the environment of the process; the
// children of the program get [Env.Environ]. The zero Env is empty. It may be used
// from several goroutines.
type Env struct {
	goos  string
	vars  []Var          // in the order first seen; the first fromProcess of them are the process's
	index map[string]int // into vars, by folded name

	fromProcess int
}

// Var is one environment variable.
type Var struct {
	Name, Value string
}

// NewEnv returns the Env of a process on the platform goos (as in runtime.GOOS)
// whose environment is environ (as from os.Environ). Of entries with the same name
// the last counts. On Windows names are the same regardless of case.
func NewEnv(goos string, environ []string) Env {
	e := Env{goos: goos, index: make(map[string]int, len(environ))}
	for _, entry := range environ {
		// Windows keeps the current directory of each drive in names that begin
		// with an equals sign.
		if i := strings.IndexByte(entry[min(1, len(entry)):], '=') + 1; i > 0 {
			e.set(Var{entry[:i], entry[i+1:]})
		}
	}
	e.fromProcess = len(e.vars)
	return e
}

func (e *Env) set(v Var) {
	name := e.fold(v.Name)
	if i, ok := e.index[name]; ok {
		e.vars[i].Value = v.Value
		return
	}
	e.index[name] = len(e.vars)
	e.vars = append(e.vars, v)
}

func (e Env) fold(name string) string {
	if e.goos == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// Lookup returns the value of the variable called name; ok is false if neither the
// process nor the env file sets it.
func (e Env) Lookup(name string) (value string, ok bool) {
	i, ok := e.index[e.fold(name)]
	if !ok {
		return "", false
	}
	return e.vars[i].Value, true
}

// Get returns the value of the variable called name, empty if it is not set.
func (e Env) Get(name string) string {
	v, _ := e.Lookup(name)
	return v
}

// first returns the first of some variables that is not empty, and its value; both are empty if all are.
func (e Env) first(names []string) (name, value string) {
	for _, name := range names {
		if value := e.Get(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// Environ returns all variables as "name=value", for the environment of a child
// process: those of the process in their order, then what the env file added.
func (e Env) Environ() []string {
	list := make([]string, len(e.vars))
	for i, v := range e.vars {
		list[i] = v.Name + "=" + v.Value
	}
	return list
}

// With returns e with vars filling in what e does not set. Of vars with the same
// name the last counts.
func (e Env) With(vars []Var) Env {
	below := Env{goos: e.goos, index: make(map[string]int, len(vars))}
	for _, v := range vars {
		if _, ok := e.Lookup(v.Name); !ok {
			below.set(v)
		}
	}
	filled := Env{goos: e.goos, vars: slices.Clone(e.vars), index: make(map[string]int, len(e.vars)+len(below.vars))}
	for i, v := range filled.vars {
		filled.index[e.fold(v.Name)] = i
	}
	for _, v := range below.vars {
		filled.set(v)
	}
	filled.fromProcess = e.fromProcess
	return filled
}

// Override returns e with the variable called name set to value.
func (e Env) Override(name, value string) Env {
	changed := e.With(nil)
	changed.set(Var{name, value})
	return changed
}

// process returns the part of e that the process brought.
func (e Env) process() Env {
	p := Env{goos: e.goos, index: make(map[string]int, e.fromProcess)}
	for _, v := range e.vars[:e.fromProcess] {
		p.set(v)
	}
	return p
}

// LoadEnvFile returns e with the variables of the env file, whose place
// [Paths.EnvFile] describes. A missing file is not an error. A file that exists and
// cannot be read leaves e as it is. The error is meant for a warning; it also
// names lines that other programs read differently.
func (e Env) LoadEnvFile() (Env, error) {
	path, ok := envFile(e)
	if !ok {
		return e, nil
	}
	src, err := userfile.ReadFile(context.Background(), path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, nil
	case err != nil:
		return e, fmt.Errorf("env file: %w", err)
	}
	return e.With(ParseEnvFile(src)), envFileProblems(path, src)
}
