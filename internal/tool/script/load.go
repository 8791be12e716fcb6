package script

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/script/argc"
	"loki/internal/tool/script/signature"
)

// script is a file that gives tools. Its methods may be called from several goroutines.
type script struct {
	file string // absolute
	stem string
	lang language
	o    Options

	mu     sync.Mutex
	parsed *source // as it was last read; nil before the first call
	built  string  // sum of the contents that have the code that parses a command line
}

func open(file string, o Options) (*script, error) {
	stem, lang, ok := languageOf(file)
	if !ok {
		return nil, fault.New(fault.Config, "script %s: scripts end in .sh, .py or .ts", file)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", file, err)
	}
	return &script{file: path, stem: stem, lang: lang, o: o}, nil
}

// ErrNoTool is in the chain of the error about a file that is not a tool: a module without
// the function of a tool, or a bash library that describes no tool.
var ErrNoTool = errors.New("no tool")

// noTool is an error about a file that is not a tool.
type noTool struct{ error }

// Is makes noTool errors ErrNoTool.
func (noTool) Is(target error) bool { return target == ErrNoTool }

// Load returns the tools of a script, in the order of the source, without the one that
// [Instructions] returns. The source is parsed
// only if it is not in the cache. The error is a *fault.Error with code NotFound or
// Config, which names the file and, for a mistake in it, the line.
//
// A call uses the current script: changes take effect at once, but a tool whose name is no
// longer in it fails, and new names need another Load.
func Load(file string, o Options) ([]tool.Tool, error) {
	tools, _, err := load(file, o)
	return tools, err
}

// Instructions returns the function _instructions of an agent's script, which writes the
// instructions of the agent and is not for models; nil if there is none. The error is that of
// [Load].
func Instructions(file string, o Options) (tool.Tool, error) {
	_, instructions, err := load(file, o)
	return instructions, err
}

func load(file string, o Options) (tools []tool.Tool, instructions tool.Tool, err error) {
	s, err := open(file, o)
	if err != nil {
		return nil, nil, err
	}
	k, err := s.summary()
	if err != nil {
		return nil, nil, err
	}
	for _, d := range k.Tools {
		d.Hints.Timeout = cmp.Or(d.Hints.Timeout, o.Timeout)
		d.Hints.MaxOutput = o.MaxOutput
		if d.Instructions {
			d.Hints.Interactive = true // it works for the user, and may ask them what the agent is to know
			instructions = &scriptTool{s, d.Tool, d.Hints, d.Accepts}
			continue
		}
		tools = append(tools, &scriptTool{s, d.Tool, d.Hints, d.Accepts})
	}
	return tools, instructions, nil
}

// summary returns the declarations, from the cache if they are there.
func (s *script) summary() (summary, error) {
	src, err := read(s.file)
	if err != nil {
		return summary{}, err
	}
	if k, ok := s.cachedSummary(s.sum(src)); ok {
		return k, nil
	}
	p, err := s.current(src)
	if err != nil {
		return summary{}, err
	}
	k := p.summary()
	s.keep(p.sum, k)
	return k, nil
}

// current returns the functions of the script, whose contents are src.
func (s *script) current(src []byte) (*source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parsed != nil && bytes.Equal(s.parsed.src, src) {
		return s.parsed, nil
	}
	p, err := s.parse(src)
	if err != nil {
		return nil, err
	}
	s.parsed = p
	return p, nil
}

// Names returns the names of the tools of a script. If the file name determines the only
// tool's name, the script has to exist but is not parsed, so that a mistake in it may go
// unnoticed. Errors are those of [Load].
func Names(file string, o Options) ([]string, error) {
	s, err := open(file, o)
	if err != nil {
		return nil, err
	}
	if name, ok, err := s.plainName(); ok || err != nil {
		return []string{name}, err
	}
	k, err := s.summary()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(k.Tools))
	for _, t := range k.Tools {
		if !t.Instructions {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// plainName returns the name of the only tool of a script, if the file name determines it.
func (s *script) plainName() (name string, ok bool, err error) {
	if s.o.Agent != nil {
		return "", false, nil
	}
	src, err := read(s.file)
	if err != nil {
		return "", false, err
	}
	if s.lang != bash {
		return signature.Normal(s.stem), true, nil
	}
	for _, tag := range []string{"@cmd", "binname"} {
		if bytes.Contains(src, []byte(tag)) {
			return "", false, nil
		}
	}
	return strings.ReplaceAll(s.stem, "-", "_"), true, nil
}

// scriptTool is one function of a script.
type scriptTool struct {
	script   *script
	declared chat.Tool
	hints    tool.Hints
	accepts  json.RawMessage // nil for what is declared
}

var _ tool.FromFile = (*scriptTool)(nil)

// File implements [tool.FromFile].
func (t *scriptTool) File() string { return filepath.Base(t.script.file) }

// Declaration implements [tool.Tool].
func (t *scriptTool) Declaration() chat.Tool { return t.declared }

// Hints implements [tool.Tool].
func (t *scriptTool) Hints() tool.Hints { return t.hints }

// Reading implements [tool.Reading].
func (t *scriptTool) Reading() (chat.Tool, bool) {
	f := function{hints: t.hints}
	return t.declared, !t.script.free(f) && t.script.declarationOf(f).Level == sandbox.Read
}

// Fit implements [tool.Fitter]. A bash script reports unknown arguments itself.
func (t *scriptTool) Fit(args json.RawMessage) (json.RawMessage, error) {
	words, schema := t.script.lang == bash, t.declared.Parameters
	if t.accepts != nil {
		schema = t.accepts
	}
	return tool.Fit(schema, args, tool.FitOptions{Known: !words, Words: words})
}

// Source implements [tool.FromFile].
func (t *scriptTool) Source() (path string, text []byte, err error) {
	text, err = read(t.script.file)
	if t.script.lang == bash {
		text = argc.Source(text)
	}
	return t.script.file, text, err
}

// writable reports whether the file may be replaced: it is the user's and has no other name. Replacing a file that has two
// leaves the other name with the old file, and this one with a file that only the program wrote.
func (s *script) writable() bool {
	info, err := os.Stat(s.file)
	uid, _, known := strings.Cut(atomicfile.Owner(s.file), ":")
	return err == nil && sandbox.Names(info) == 1 && (!known || uid == strconv.Itoa(os.Geteuid()))
}

// build puts the code that parses the command line into a bash script, unless it is
// there. If the file cannot or must not be written, it returns the complete script to run.
func (s *script) build(p *source) (copied []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.built == p.sum {
		return nil, nil
	}
	code, err := argc.Build(p.src, argc.Options{})
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(code, p.src) {
		if !s.writable() {
			return code, nil
		}
		if _, err := argc.BuildFile(s.file, argc.Options{}); err != nil {
			return code, nil
		}
	}
	s.built = s.sum(code)
	if s.built != p.sum && s.parsed == p {
		// The declarations are unchanged, and need not be read again.
		s.parsed = &source{src: code, sum: s.built, functions: p.functions}
		s.keep(s.built, s.parsed.summary())
	}
	return nil, nil
}
