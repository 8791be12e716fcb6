package builtin

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// maxPrinted is how many bytes a command may print before it is killed. The model gets
// far less; this only bounds memory.
const maxPrinted = 16 << 20

// executeCommand runs a command with the user's shell. The command has no input and no
// terminal, so that it cannot wait for a user.
type executeCommand struct {
	confiner
	jobs    Jobs // nil for none
	shell   process.Shell
	child   environ.Child
	dir     string
	timeout time.Duration

	terminal func(ctx context.Context, call tool.Call, c process.Command) (tool.Result, error) // see [Client]
}

var (
	_ tool.Guard    = (*executeCommand)(nil)
	_ tool.Confined = (*executeCommand)(nil)
	_ tool.Reading  = (*executeCommand)(nil)

	_ tool.Outliving = (*executeCommand)(nil)
)

// declaration returns the declaration without what is said of the sandbox, and the parameters.
func (e *executeCommand) declaration() (chat.Tool, []param) {
	return chat.Tool{
		Name: "execute_command",
		Description: fmt.Sprintf("Execute a shell command on the user's computer (%s, %s) and return what it prints. "+
			"The command gets no input and no terminal; each call starts a new shell.", runtime.GOOS, e.shell.Name),
	}, []param{{name: "command", kind: "string", description: "The command to execute."}}
}

// Reading implements [tool.Reading]. Without a sandbox the judge of calls knows which commands read.
func (e *executeCommand) Reading() (chat.Tool, bool) {
	d, params := e.declaration()
	if d.Parameters = schema(params); e.holds() {
		d.Description += readLevel
	} else {
		d.Description += " Only a few commands that read are run, such as ls, cat, head, grep and wc with plain names of files of the workspace."
	}
	return d, true
}

// Declaration implements [tool.Tool].
func (e *executeCommand) Declaration() chat.Tool {
	d, params := e.declaration()
	if e.holds() {
		d.Description += levels + ` Example: {"command": "go get golang.org/x/text", "sandbox": "network", "hosts": ["proxy.golang.org", "sum.golang.org"], "reason": "it downloads a module and writes go.mod"}.`
		params = append(params, confinedParams...)
	}
	if e.jobs != nil {
		d.Description += background
		params = append(params, backgroundParams...)
		if e.networks() {
			params = append(params, portsParam)
		}
		if e.jobs.Keeps() {
			params = append(params, keepParam)
		}
	}
	d.Parameters = schema(params)
	return d
}

// Request implements [tool.Confined].
func (e *executeCommand) Request(call tool.Call) (tool.Request, error) {
	command, err := commandOf(call)
	if err != nil { // the call fails with it
		return e.request(call, "")
	}
	return e.request(call, command)
}

// Hints implements [tool.Tool].
func (e *executeCommand) Hints() tool.Hints {
	return tool.Hints{Destructive: true, Timeout: e.timeout}
}

// Consent implements [tool.Guard]. A call without a command does nothing and needs none.
func (e *executeCommand) Consent(call tool.Call) string {
	question, _ := e.question(call)
	return question
}

func (e *executeCommand) question(call tool.Call) (string, error) {
	command, err := commandOf(call)
	if err != nil {
		return "", err
	}
	how, more := " with "+e.shell.Name, ""
	if e.jobs != nil {
		args, err := e.backgroundOf(call)
		if err != nil {
			return "", err
		}
		how, more = how+args.how(), args.opens()
	}
	return runQuestion("this command", how, command) + more, nil
}

// Call implements [tool.Tool].
func (e *executeCommand) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	command, err := commandOf(call)
	if err != nil {
		return tool.Result{}, err
	}
	program := process.Command{
		Path:      e.shell.Path,
		Args:      []string{e.shell.Flag, command},
		Dir:       e.dir,
		Env:       environFor(call, e.child.Environ, make(map[string]string)),
		MaxStdout: maxPrinted,
	}
	needs := sandbox.Needs{Consented: call.Consented, Read: call.Readable}
	if e.jobs != nil {
		args, err := e.backgroundOf(call)
		if err != nil {
			return tool.Result{}, err
		}
		if args.Background {
			return e.start(ctx, call, command, program, needs, args)
		}
		if call.Sandbox.Level != sandbox.Full {
			needs.Reach = e.jobs.Reach()
		}
	}
	run := func(ctx context.Context, call tool.Call, c process.Command) (tool.Result, error) {
		return e.run(ctx, call, c, needs)
	}
	if e.terminal != nil && call.Sandbox.Level == sandbox.Full {
		run = e.terminal
	}
	r, err := run(ctx, call, program)
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return r, exitError(call.Name, exit, e.child, command)
	}
	return r, err
}

func commandOf(call tool.Call) (string, error) {
	args, err := tool.Decode[struct {
		Command string `json:"command"`
	}](call)
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(args.Command) == "":
		return "", errors.New(`argument "command" is missing or empty`)
	case strings.ContainsRune(args.Command, 0):
		return "", errors.New(`argument "command" holds a NUL character, which no command can`)
	}
	return args.Command, nil
}

// environFor returns the environment of the program of a call, with variables set besides those of env. Colors are turned off, because
// a model reads the output. The ids of an outer run are replaced by those of this call.
func environFor(call tool.Call, env []string, set map[string]string) []string {
	unset := append(call.Identify(set), "CLICOLOR_FORCE", "FORCE_COLOR")
	return environ.Merge(env, set, unset...)
}
