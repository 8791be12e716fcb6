package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/script/argc"
	"loki/internal/tool/script/bashdecl"
	"loki/internal/tool/script/pydecl"
	"loki/internal/tool/script/signature"
	"loki/internal/tool/script/tsdecl"
)

// source is a version of a script. It is immutable.
type source struct {
	src       []byte
	sum       string // identifies what is declared: contents, language, name and mode
	functions []function
}

// function is a function of a script. Only one of shell and fn is set.
type function struct {
	declared chat.Tool
	shell    *bashdecl.Function
	fn       *signature.Function
	hints    tool.Hints
}

// real returns the function's name in the script, empty for a bash script without
// subcommands.
func (f function) real() string {
	if f.shell != nil {
		return f.shell.Subcommand
	}
	return f.fn.Name
}

// line returns the line of the @cmd of a bash script's subcommand, from 1, and 0 for all
// other functions.
func (f function) line() int {
	if f.shell != nil {
		return f.shell.Line
	}
	return 0
}

// find returns the function that is declared under a name.
func (s *source) find(name string) (function, bool) {
	i := slices.IndexFunc(s.functions, func(f function) bool { return f.declared.Name == name })
	if i < 0 {
		return function{}, false
	}
	return s.functions[i], true
}

// maxSource is how large a script may be, in bytes.
const maxSource = 8 << 20

// read returns the contents of a script.
func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if target, linked := linkTarget(file); linked && (err != nil || !info.Mode().IsRegular()) {
		why := "is not a file"
		if failed, ok := errors.AsType[*fs.PathError](err); errors.Is(err, fs.ErrNotExist) {
			why = "does not exist"
		} else if ok {
			why = "cannot be read: " + failed.Err.Error()
		}
		return nil, fault.New(fault.NotFound, "script %s is a link to %s, which %s", file, target, why).
			WithHint("put the script there, or remove the link: rm %s", argc.Quote(file))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "no script at %s", file)
	case err != nil:
		return nil, fault.Wrap(fault.Config, err, "script %s", file)
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Config, "script %s is not a file", file)
	case info.Size() > maxSource:
		return nil, fault.New(fault.Config, "script %s is larger than %d MiB", file, maxSource>>20)
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "script %s", file)
	}
	return src, nil
}

// linkTarget returns where a file leads that is a symbolic link; linked is false for others.
func linkTarget(file string) (target string, linked bool) {
	target, err := os.Readlink(file)
	if err != nil {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real, true
	}
	if filepath.IsAbs(target) {
		return target, true
	}
	dir := filepath.Dir(file)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, target), true
}

// format is the version of cached summaries. It changes with their format, and
// with how sources are read.
const format = "7"

func (s *script) sum(src []byte) string {
	h := sha256.New()
	mode := "tool"
	if s.o.Agent != nil {
		mode = "agent"
	}
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", format, s.lang, s.stem, mode)
	h.Write(src)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// parse reads the functions of a script.
func (s *script) parse(src []byte) (*source, error) {
	p := &source{src: src, sum: s.sum(src)}
	var err error
	if s.lang == bash {
		err = s.parseBash(p)
	} else {
		err = s.parseFunctions(p)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "script %s", s.file)
	}
	of, err := hints(src, s.lang)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "script %s", s.file)
	}
	for i, f := range p.functions {
		p.functions[i].hints = of[0]
		if own, ok := of[f.line()]; ok {
			p.functions[i].hints = own
		}
	}
	return p, nil
}

func (s *script) parseBash(p *source) error {
	list, err := bashdecl.Parse(p.src, s.stem)
	if err != nil {
		if wrong, ok := errors.AsType[*argc.Error](err); ok {
			err = fmt.Errorf("line %d: %s", wrong.Line, wrong.Msg)
		}
		if !bytes.Contains(p.src, []byte("@describe")) && !bytes.Contains(p.src, []byte("@cmd")) {
			err = noTool{err}
		}
		return err
	}
	for _, f := range list {
		p.functions = append(p.functions, function{declared: f.Tool, shell: &f})
	}
	return nil
}

// parseFunctions reads a script in Python or TypeScript.
func (s *script) parseFunctions(p *source) error {
	parse := tsdecl.Parse
	if s.lang == python {
		parse = s.pythonReader().Parse
	}
	want := func(name string) bool { return name == "run" }
	if s.o.Agent != nil {
		want = signature.Public
	}
	list, err := parse(p.src, want)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return noTool{s.nothing()}
	}
	for _, f := range list {
		name := s.stem
		if s.o.Agent != nil {
			name = f.Name
		}
		declared, err := f.Declare(signature.Normal(name))
		if err != nil {
			return err
		}
		if _, taken := p.find(declared.Name); taken {
			return &signature.Error{Line: f.Line, Msg: fmt.Sprintf("two functions are called %s", declared.Name)}
		}
		p.functions = append(p.functions, function{declared: declared, fn: &f})
	}
	return nil
}

// pythonReader returns the reader of scripts in Python. Its interpreter is not the one of a working directory that is not trusted,
// as scripts are read without a question.
func (s *script) pythonReader() pydecl.Reader {
	env := s.o.Environ
	if s.o.Apart != nil {
		env = s.o.Apart(env)
	}
	look := s.o.Look
	if look == nil {
		look = func(file string) (string, error) { return process.Find(file, env) }
	}
	return pydecl.Reader{
		Python:  func() ([]string, error) { return process.Interpreter(string(python), "", look) },
		Environ: env,
		Cache:   s.o.Cache,
	}
}

// nothing returns the error for a script without functions.
func (s *script) nothing() error {
	what, how := "def ", "at the top level of the file"
	if s.lang == typescript {
		what, how = "export function ", "; arrow functions and functions in variables do not count"
	}
	if s.o.Agent == nil {
		return fmt.Errorf("the script has no function run: write %srun(...) %s", what, strings.TrimLeft(how, "; "))
	}
	return fmt.Errorf("the script has no public function: write %sNAME(...) %s", what, strings.TrimLeft(how, "; "))
}

// hints reads the tags in the comments of a script. Those of the whole script have key 0.
// A subcommand of a bash script with tags of its own, between its @cmd and its function, has
// the line of its @cmd for a key, and its hints are both together. The error is about a @sandbox, with its line.
func hints(src []byte, lang language) (map[int]tool.Hints, error) {
	mark := "#"
	if lang == typescript {
		mark = "//"
	}
	all := map[int]tool.Hints{0: {Interactive: lang == bash && bytes.Contains(src, []byte("LLM_PROMPT_UTILS_FILE"))}}
	if !bytes.Contains(src, []byte("@meta")) && !bytes.Contains(src, []byte("@sandbox")) {
		return all, nil
	}
	type tag struct {
		line, subcommand int
		words            []string
	}
	var tags []tag
	number, subcommand := 0, 0
	for line := range strings.Lines(string(src)) {
		number++
		line = strings.TrimSpace(line)
		comment, ok := strings.CutPrefix(line, mark)
		words := strings.Fields(comment)
		switch {
		case !ok && line != "":
			subcommand = 0 // its function
		case ok && len(words) > 0 && words[0] == "@cmd" && lang == bash:
			subcommand = number
		case ok && len(words) > 1 && words[0] == "@meta":
			tags = append(tags, tag{number, subcommand, words[1:]})
		case ok && len(words) > 0 && words[0] == "@sandbox":
			tags = append(tags, tag{number, subcommand, words})
		}
	}
	// Those of the script come first, as they are part of the others.
	slices.SortStableFunc(tags, func(a, b tag) int { return a.subcommand - b.subcommand })
	for _, t := range tags {
		h, ok := all[t.subcommand]
		if !ok {
			h = all[0]
		}
		if h = withTag(h, t.words); t.words[0] == "@sandbox" {
			var err error
			if h.Sandbox, err = sandbox.ParseDeclaration(t.words[1:]); err != nil {
				return nil, fmt.Errorf("line %d: %w", t.line, err)
			}
		}
		all[t.subcommand] = h
	}
	return all, nil
}

// withTag returns hints with what the words behind a @meta say.
func withTag(h tool.Hints, words []string) tool.Hints {
	switch words[0] {
	case "interactive":
		h.Interactive = true
	case "read-only":
		h.ReadOnly = true
	case "destructive":
		h.Destructive = true
	case "timeout":
		if limit, err := time.ParseDuration(strings.Join(words[1:], "")); err == nil && limit > 0 {
			h.Timeout = limit
		}
	}
	return h
}

// summary is the cached part of a source.
type summary struct {
	Tools []declaration `json:"tools"`
}

// declaration is the cached part of a function.
type declaration struct {
	chat.Tool
	Hints tool.Hints `json:"hints"`
	// Accepts is the schema of the arguments that a call may have, nil for Parameters.
	Accepts      json.RawMessage `json:"accepts,omitempty"`
	Instructions bool            `json:"instructions,omitempty"` // it is the function _instructions
}

func (p *source) summary() summary {
	var s summary
	for _, f := range p.functions {
		d := declaration{Tool: f.declared, Hints: f.hints, Instructions: f.real() == signature.Instructions}
		if f.fn != nil {
			d.Accepts = f.fn.Accepts()
		}
		s.Tools = append(s.Tools, d)
	}
	return s
}

// cachedSummary returns the summary in the cache under a sum.
func (s *script) cachedSummary(sum string) (summary, bool) {
	if s.o.Cache == "" {
		return summary{}, false
	}
	doc, err := os.ReadFile(s.cacheFile(sum))
	if err != nil {
		return summary{}, false
	}
	var k summary
	if err := json.Unmarshal(doc, &k); err != nil || len(k.Tools) == 0 {
		return summary{}, false // damaged: as good as missing
	}
	return k, true
}

// keep puts a summary into the cache. A failure is ignored: it only costs time.
func (s *script) keep(sum string, k summary) {
	if s.o.Cache == "" {
		return
	}
	if doc, err := json.Marshal(k); err == nil {
		_ = atomicfile.Write(s.cacheFile(sum), doc, atomicfile.Options{Mode: atomicfile.Private, NoSync: true})
	}
}
