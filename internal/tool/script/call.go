package script

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

//go:embed launch
var launch embed.FS

// launcher returns the program that calls a function in Python or TypeScript, of the parts
// that have these names.
func launcher(parts ...string) []byte {
	var code []byte
	for _, part := range parts {
		text, err := launch.ReadFile("launch/" + part)
		if err != nil {
			panic(err) // a part is missing in this program, which every test would show
		}
		code = append(code, text...)
	}
	return code
}

const (
	// maxPrinted is how many bytes a script may print on standard output before it is killed.
	maxPrinted = 64 << 20
	// maxShown is how many bytes of it the user is shown.
	maxShown = 256 << 10
	// maxResult is how many bytes of a result are read. The model gets far less.
	maxResult = 4 << 20
	// maxWord is how long a word of a command line can be on Linux, including the final
	// NUL.
	maxWord = 128 << 10
)

// Call implements [tool.Tool].
func (t *scriptTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	s := t.script
	if s.o.Prepare != nil {
		if err := s.o.Prepare(); err != nil {
			_ = event.FromContext(ctx).Emit(ctx, event.Warning{Text: err.Error(), Once: true}) // the script may not need it
		}
	}
	src, err := read(s.file)
	if err != nil {
		return tool.Result{}, err
	}
	p, err := s.current(src)
	if err != nil {
		return tool.Result{}, err
	}
	f, ok := p.find(t.declared.Name)
	if !ok {
		return tool.Result{}, fmt.Errorf("%s was changed and has no %s any more", filepath.Base(s.file), t.declared.Name)
	}
	dir, err := tempdir.Make(s.o.Temp, "eval")
	if err != nil {
		return tool.Result{}, fmt.Errorf("a directory for the call: %w", err)
	}
	defer os.RemoveAll(dir)
	at := places{output: filepath.Join(dir, "output")}
	command, child, err := s.command(dir, p, f, call, &at)
	if err != nil {
		return tool.Result{}, err
	}
	t.attend(ctx, &command)
	box, held, err := s.confine(&command, p, f, dir)
	if err != nil {
		return tool.Result{}, err
	}
	printed, err := process.Run(ctx, command)
	r := tool.Result{}
	var unread error
	if r.Output, unread = result(at.output); unread != nil && err == nil {
		err = unread
	}
	if left := box.LeftNote(); left != "" && err == nil {
		err = event.FromContext(ctx).Emit(ctx, event.Warning{Text: fmt.Sprintf("tool %s at level %s %s", t.declared.Name, held.Level, left)})
	}
	if err != nil {
		r.Stderr = plain(printed.Stderr)
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		if out := s.outOfReach(box, held, exit.Stderr); out != nil {
			return r, out
		}
		name := t.declared.Name
		if f.real() == "_"+name { // such as _instructions, which is not a tool
			name = f.real()
		}
		err = &tool.ExitError{
			Tool: name, Code: exit.Code, Signal: exit.Signal,
			Note: failureNote(child.Note(remedy, exit.Stderr, string(src)), box, held, s.lang, exit.Stderr, src),
		}
	}
	return r, err
}

// attend connects a script with the user: its terminal and its output.
func (t *scriptTool) attend(ctx context.Context, c *process.Command) {
	o := t.script.o
	c.Dir, c.MaxStdout = o.Dir, maxPrinted
	if o.Output != nil {
		name := t.declared.Name
		shown := 0
		c.OnStdout = func(line string) {
			switch before := shown; {
			case before > maxShown:
				return
			case before+len(line)+1 > maxShown:
				line = fmt.Sprintf("(%s prints more than %d KiB; the rest is not shown)", name, maxShown>>10)
				shown = maxShown
			}
			shown += len(line) + 1
			o.Output(ctx, name, line)
		}
	}
	if t.hints.Interactive && o.Terminal {
		c.Terminal = true
		if o.Stdin != nil {
			c.Stdin = o.Stdin
		}
		if o.Echo != nil {
			c.Echo, c.OnStdout = o.Echo, nil
		}
	}
}

// remedy explains how a script gets a variable.
const remedy = "the script gets what a comment in it declares: # @env NAME"

// command returns the command that makes a call, with its environment, and writes the
// files it needs into dir.
func (s *script) command(dir string, p *source, f function, call tool.Call, at *places) (process.Command, environ.Child, error) {
	argv, err := s.interpreter(p.src, s.free(f))
	if err != nil {
		return process.Command{}, environ.Child{}, err
	}
	var args []string
	if s.lang == bash {
		args, err = s.shellArgs(dir, p, f, call)
	} else {
		args, err = s.launchArgs(dir, f, call, at)
	}
	if err != nil {
		return process.Command{}, environ.Child{}, err
	}
	child, lines, err := s.environ(call, p.src, f, *at)
	if err != nil {
		return process.Command{}, environ.Child{}, err
	}
	args = append(argv[1:len(argv):len(argv)], args...)
	if len(lines) > 0 {
		args = append([]string{"-c", strings.Join(lines, "\n") + "\nexec \"$0\" \"$@\"", argv[0]}, args...)
		if argv, err = s.usualInterpreter(true); err != nil {
			return process.Command{}, environ.Child{}, err
		}
	}
	return process.Command{Path: argv[0], Args: args, Env: child.Environ}, child, nil
}

// shellArgs returns the path of a bash script and the words of its command line.
func (s *script) shellArgs(dir string, p *source, f function, call tool.Call) ([]string, error) {
	words, err := f.shell.Args(call.Arguments)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		if len(word) >= maxWord {
			name, _, _ := strings.Cut(word, "=")
			return nil, fmt.Errorf("the value of %s has %d bytes, and a bash tool takes at most %d; write it to a file or in parts", name, len(word)-len(name)-1, maxWord-len(name)-2)
		}
	}
	file := s.file
	code, err := s.build(p)
	if err != nil {
		return nil, err
	}
	if code != nil {
		file = filepath.Join(dir, filepath.Base(s.file))
		if err := os.WriteFile(file, code, 0o700); err != nil {
			return nil, err
		}
	}
	return append([]string{s.path(file)}, words...), nil
}

// launchArgs returns the arguments that make an interpreter call a function.
func (s *script) launchArgs(dir string, f function, call tool.Call, at *places) ([]string, error) {
	arguments, err := f.fn.Bind(call.Arguments)
	if err != nil {
		return nil, err
	}
	at.arguments = filepath.Join(dir, "arguments.json")
	if err := os.WriteFile(at.arguments, arguments, 0o600); err != nil {
		return nil, err
	}
	program, code := "launch.py", launcher("call.py", "once.py")
	if s.lang == typescript {
		program, code = "launch.mjs", launcher("call.mjs", "once.mjs")
	}
	program = filepath.Join(dir, program)
	if err := os.WriteFile(program, code, 0o600); err != nil {
		return nil, err
	}
	args := []string{program, s.file, f.fn.Name}
	for _, p := range f.fn.Params {
		args = append(args, p.Name)
	}
	return args, nil
}

// result returns the text that a script left for the model; of a long one the
// two ends.
func result(file string) (string, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("$LLM_OUTPUT, which the script wrote, is not a file")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() <= maxResult {
		text, err := io.ReadAll(io.LimitReader(f, maxResult))
		return string(text), err
	}
	half := make([]byte, maxResult)
	if _, err := io.ReadFull(f, half[:maxResult/2]); err != nil {
		return "", err
	}
	if _, err := f.ReadAt(half[maxResult/2:], info.Size()-maxResult/2); err != nil {
		return "", err
	}
	note := fmt.Sprintf("\n[%d of %d bytes left out here]\n", info.Size()-maxResult, info.Size())
	return string(half[:maxResult/2]) + note + string(half[maxResult/2:]), nil
}

// sequences matches the control sequences of terminals, which are useless to
// models.
var sequences = text.Regexp("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[()][0-9A-B]|[@-Z\\\\^_=>])")

// plain returns text without colors and the like.
func plain(text string) string {
	if !strings.ContainsRune(text, '\x1b') {
		return text
	}
	return sequences().ReplaceAllString(text, "")
}
