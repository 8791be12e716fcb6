package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
	"loki/internal/tool/permission"
)

// driver is the program that runs a model's code.
//
//go:embed driver.py
var driver string

type codeArgs struct {
	Code string `json:"code"`
}

func (b *base) executePyCode() tool.Tool {
	params := []param{{name: "code", kind: "string", description: "The Python code to run."}}
	return &confinedTool{confiner: confiner{b.Sandbox}, root: b.root, guardedTool: guardedTool{
		native: native{
			name: "execute_py_code",
			description: "Run Python code on the user's computer and return what it prints, and the value of its last statement if that is an expression or an assignment. " +
				"The code gets no input; each call starts a new interpreter.",
			params: params,
			hints:  tool.Hints{Destructive: true, Timeout: b.CommandTimeout},
			run: run(params, func(ctx context.Context, args codeArgs, call tool.Call) (tool.Result, error) {
				python, err := b.python()
				if err != nil {
					return tool.Result{}, err
				}
				env := map[string]string{"PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
				return b.program(ctx, call, confiner{b.Sandbox}, process.Command{
					Path:  python[0],
					Args:  append(python[1:], "-c", driver),
					Stdin: strings.NewReader(args.Code),
				}, env)
			}),
		},
		consent: consent(params, func(args codeArgs) (string, error) {
			return runQuestion("this Python code", "", args.Code), nil
		}),
	}}
}

// confinedTool is a tool whose code, its argument "code", runs in the sandbox.
type confinedTool struct {
	guardedTool
	confiner
	root fsys.Root
}

var (
	_ tool.Confined = (*confinedTool)(nil)
	_ tool.Opener   = (*confinedTool)(nil)
	_ tool.Reading  = (*confinedTool)(nil)
)

// Reading implements [tool.Reading].
func (t *confinedTool) Reading() (chat.Tool, bool) {
	d := t.guardedTool.Declaration()
	d.Description += readLevel
	return d, t.holds()
}

// Declaration implements [tool.Tool].
func (t *confinedTool) Declaration() chat.Tool {
	d := t.guardedTool.Declaration()
	if t.holds() {
		d.Description += levels
		d.Parameters = schema(slices.Concat(t.params, confinedParams))
	}
	return d
}

// Opens implements [tool.Opener]: the texts in the code may be names of files.
func (t *confinedTool) Opens(call tool.Call) (files []string, use permission.Access) {
	r, err := t.Request(call)
	if err != nil {
		return nil, ""
	}
	if r.Level == sandbox.Read {
		use = permission.Reading
	}
	return slices.DeleteFunc(quotedTexts(r.Text), func(text string) bool {
		p, err := t.root.Resolve(text)
		if strings.ContainsAny(text, `/\`) {
			return false
		}
		info, statErr := os.Stat(p.Abs)
		return err != nil || statErr != nil || info.IsDir()
	}), use
}

// quotedText finds a text in quotes, in Python and in SQL.
var quotedText = text.Regexp(`'([^'\n]+)'|"([^"\n]+)"`)

// quotedTexts returns the texts in code that are short enough to be the names of files, each once.
func quotedTexts(code string) (texts []string) {
	const longest, most = 1024, 1000
	for _, m := range quotedText().FindAllStringSubmatch(code, most) {
		if text := m[1] + m[2]; len(text) < longest && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// Request implements [tool.Confined].
func (t *confinedTool) Request(call tool.Call) (tool.Request, error) {
	args, err := tool.Decode[codeArgs](call)
	if err != nil {
		return tool.Request{}, err
	}
	return t.request(call, args.Code)
}

// python returns the command of the interpreter: that of the virtual environment in the
// working directory, or the system's.
func (b *base) python() ([]string, error) {
	venv := filepath.Join(b.Dir, ".venv", "bin", "python")
	if runtime.GOOS == "windows" {
		venv = filepath.Join(b.Dir, ".venv", "Scripts", "python.exe")
	}
	if info, err := os.Stat(venv); err == nil && !info.IsDir() {
		path, err := filepath.Abs(venv)
		return []string{path}, err
	}
	argv, err := process.Interpreter(".py", "", b.look)
	if err != nil {
		return nil, fmt.Errorf("there is no Python on the user's computer: %w", err)
	}
	return argv, nil
}

// look finds a program on the PATH of programs that tools start.
func (b *base) look(file string) (string, error) {
	if strings.ContainsRune(file, filepath.Separator) {
		return file, nil
	}
	extensions := []string{""}
	if runtime.GOOS == "windows" {
		extensions = []string{".exe", ".cmd", ".bat"}
	}
	for _, dir := range filepath.SplitList(environ.Get(b.Child.Environ, "PATH")) {
		if !filepath.IsAbs(dir) { // it would run what lies in the working directory
			continue
		}
		for _, ext := range extensions {
			path := filepath.Join(dir, file+ext)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not on PATH", file)
}

// program runs a program for a call, as confined has it and with variables set besides those of Environ.
func (b *base) program(ctx context.Context, call tool.Call, confined confiner, c process.Command, set map[string]string) (tool.Result, error) {
	c.Dir, c.MaxStdout, c.Env = b.Dir, maxPrinted, environFor(call, b.Child.Environ, set)
	r, err := confined.run(ctx, call, c, sandbox.Needs{Consented: call.Consented, Read: call.Readable})
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return r, exitError(call.Name, exit, b.Child, "")
	}
	return r, err
}
