package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/tool/script/argc"
	"loki/internal/tool/script/signature"
)

// runnerMark marks runners, in their first or second line.
const runnerMark = "Made by loki --build-tools. Changes will be lost."

// Build makes scripts ready to be run by hand, and returns the files it wrote.
//
// Each bash script of the user that has no second name gets the code that parses its command line, and is made executable. For
// each script Build writes a runner into o.Bin, which it creates if necessary: a program
// with the name of the script, or of the agent if it is an agent's. A runner of a tool
// takes the arguments as a JSON object; a runner of an agent takes the name of a function
// before that. It sets the variables that scripts find, except for those of a call, and
// prints the result unless LLM_OUTPUT names a file for it. A runner for bash needs jq. On
// Windows it is a .cmd file.
//
// Files change only if they have to, all or nothing. If two scripts in different
// languages have the same name, the later one gets the runner. Runners in o.Bin without a
// script in files are removed; other files stay. An invalid script does not prevent the
// others from being built; the errors are joined.
func Build(files []string, o Options) (written []string, err error) {
	return buildFor(runtime.GOOS, files, o)
}

func buildFor(goos string, files []string, o Options) (written []string, err error) {
	if err := os.MkdirAll(o.Bin, 0o755); err != nil {
		return nil, fault.Wrap(fault.Config, err, "the directory of runners")
	}
	var errs []error
	runners := make(map[string][]byte)
	for _, file := range files {
		s, err := open(file, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		changed, err := s.prepare()
		if err == nil {
			err = s.runners(goos, runners)
		}
		if changed {
			written = append(written, s.file)
		}
		errs = append(errs, err)
	}
	for name, code := range runners {
		path := filepath.Join(o.Bin, name)
		changed, err := replace(path, code, 0o755)
		if changed {
			written = append(written, path)
		}
		errs = append(errs, err)
	}
	errs = append(errs, removeOthers(o.Bin, runners))
	slices.Sort(written)
	return written, errors.Join(errs...)
}

// prepare writes into a bash script what it needs to be run by hand.
func (s *script) prepare() (changed bool, err error) {
	if s.lang != bash {
		return false, nil
	}
	src, err := read(s.file)
	if err != nil {
		return false, err
	}
	if _, err := s.current(src); err != nil {
		return false, err // nothing is written into an invalid script
	}
	if !s.writable() {
		return false, nil
	}
	changed, err = argc.BuildFile(s.file, argc.Options{})
	if err != nil {
		return false, fault.Wrap(fault.Config, err, "script %s", s.file)
	}
	info, err := os.Stat(s.file)
	if err != nil || info.Mode()&0o111 != 0 || runtime.GOOS == "windows" {
		return changed, err
	}
	// Users who may read it may run it.
	return true, os.Chmod(s.file, info.Mode().Perm()|info.Mode().Perm()&0o444>>2)
}

// removeOthers removes runners that have no script.
func removeOthers(bin string, keep map[string][]byte) error {
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if _, ok := keep[e.Name()]; ok || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(bin, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if head := text[:min(len(text), 300)]; bytes.Contains(head, []byte(runnerMark)) {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// runnerConfig is the description of a script for its runner.
type runnerConfig struct {
	File      string                `json:"file"`
	Agent     string                `json:"agent"`
	Tool      string                `json:"tool"` // name of the only function
	Functions map[string]runnerFunc `json:"functions"`
	Env       map[string]string     `json:"env"`
	EnvFiles  []string              `json:"env_files"`
}

// runnerFunc is a function of a script in Python or TypeScript.
type runnerFunc struct {
	Name   string   `json:"name"`
	Params []string `json:"params"`
	Nulls  []string `json:"nulls"` // parameters that are null if they are missing
}

// runners adds the files of the script's runner by name.
func (s *script) runners(goos string, files map[string][]byte) error {
	src, err := read(s.file)
	if err != nil {
		return err
	}
	p, err := s.current(src)
	if err != nil {
		return err
	}
	name := s.stem
	if s.o.Agent != nil {
		name = s.o.Agent.Name
	}
	code, ext, comment := []byte(nil), string(s.lang), "# "
	switch s.lang {
	case bash:
		code = s.bashRunner(p)
	case python:
		code = s.runner(p, "runner(json.loads(%s))\n", "call.py", "runner.py")
	case typescript:
		ext, comment = ".mjs", "// "
		code = s.runner(p, "runner(JSON.parse(%s)).then(() => leave(process.exitCode ?? 0), fail);\n", "call.mjs", "runner.mjs")
	}
	code = append([]byte(comment+runnerMark+"\n"), code...)
	words := s.runnerInterpreter(p.src)
	inner := "run-" + name + ext
	switch command := strings.Join(words, " "); {
	case goos == "windows":
		files[inner] = code
		files[name+".cmd"] = fmt.Appendf(nil, "@echo off\r\nrem %s\r\n%s \"%%~dp0%s\" %%*\r\n", runnerMark, command, inner)
	case s.lang == typescript:
		files[inner] = code
		files[name] = fmt.Appendf(nil, "#!/bin/sh\n# %s\nexec %s \"$(dirname \"$0\")/%s\" \"$@\"\n", runnerMark, command, inner)
	case len(words) > 1:
		files[name] = append([]byte("#!/usr/bin/env -S "+command+"\n"), code...)
	default:
		files[name] = append([]byte("#!/usr/bin/env "+command+"\n"), code...)
	}
	return nil
}

// runnerInterpreter returns the command that runs a runner.
func (s *script) runnerInterpreter(src []byte) []string {
	if words := shebang(src); len(words) > 0 {
		return words
	}
	switch {
	case s.lang == bash:
		return []string{"bash"}
	case s.lang == python && runtime.GOOS == "windows":
		return []string{"python"}
	case s.lang == python:
		return []string{"python3"}
	}
	if argv, err := s.usualInterpreter(true); err == nil && len(argv) == 1 {
		return []string{argc.Quote(argv[0])}
	}
	return []string{"npx", "tsx"}
}

// runner returns a runner in Python or JavaScript.
func (s *script) runner(p *source, last string, parts ...string) []byte {
	c := runnerConfig{File: s.file, Functions: make(map[string]runnerFunc), Env: s.constants(), EnvFiles: s.envFiles()}
	if s.o.Agent != nil {
		c.Agent = s.o.Agent.Name
	}
	for _, f := range p.functions {
		c.Tool = f.declared.Name
		c.Functions[f.declared.Name] = runnerOf(f.fn)
	}
	return fmt.Appendf(launcher(parts...), last, jsonOf(jsonOf(c)))
}

func runnerOf(f *signature.Function) runnerFunc {
	r := runnerFunc{Name: f.Name, Params: []string{}, Nulls: []string{}}
	for _, p := range f.Params {
		r.Params = append(r.Params, p.Name)
		if p.Type.Null && !p.Default {
			r.Nulls = append(r.Nulls, p.Name)
		}
	}
	return r
}

// jsonOf returns a value made of strings as JSON. JavaScript and Python read a JSON
// string as a literal of their own.
func jsonOf(v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		panic(err) // values made of strings have a JSON form
	}
	return string(doc)
}

// bashRunner returns a runner for bash.
func (s *script) bashRunner(p *source) []byte {
	var b strings.Builder
	put := func(name, v string) { fmt.Fprintf(&b, "%s=%s\n", name, argc.Quote(v)) }
	put("file", s.path(s.file))
	agent := ""
	if s.o.Agent != nil {
		agent = s.o.Agent.Name
	}
	put("agent", agent)
	subcommands := make(map[string]string)
	switches := make(map[string]map[string]switchOf)
	only := ""
	for _, f := range p.functions {
		name := f.declared.Name
		only = name
		subcommands[name] = f.real()
		switches[name] = switchesOf(f)
	}
	if len(p.functions) > 1 || agent != "" {
		only = "" // the function must be named
	}
	put("tool", only)
	put("subcommands", jsonOf(subcommands))
	put("switches", jsonOf(switches))
	b.WriteString("env_files=(")
	for _, file := range s.envFiles() {
		b.WriteString(argc.Quote(s.path(file)) + " ")
	}
	b.WriteString(")\nenvironment=(")
	constants := s.constants()
	for _, key := range slices.Sorted(maps.Keys(constants)) {
		b.WriteString(argc.Quote(key+"="+constants[key]) + " ")
	}
	b.WriteString(")\n")
	b.Write(launcher("runner.sh"))
	return []byte(b.String())
}

// switchOf is how an option of a bash script is written on the command line.
type switchOf struct {
	Flag  string `json:"flag"`  // for true; empty if it takes a value
	Value string `json:"value"` // in front of a value
}

// switchesOf returns the options of a function by property. It finds them by building a
// command line with a mark, since only bashdecl knows how a property is written.
func switchesOf(f function) map[string]switchOf {
	const mark = "\x01"
	var schema struct {
		Properties map[string]struct{ Type string }
	}
	list := make(map[string]switchOf)
	if err := json.Unmarshal(f.declared.Parameters, &schema); err != nil {
		return list
	}
	for key, p := range schema.Properties {
		example := any(mark)
		if p.Type == "boolean" {
			example = true
		}
		doc, err := json.Marshal(map[string]any{key: example})
		if err != nil {
			continue
		}
		words, err := f.shell.Args(doc)
		if err != nil || len(words) == 0 {
			continue
		}
		word := words[len(words)-1]
		if p.Type == "boolean" {
			list[key] = switchOf{Flag: word, Value: word + "="}
		} else {
			list[key] = switchOf{Value: strings.TrimSuffix(word, mark)}
		}
	}
	return list
}
