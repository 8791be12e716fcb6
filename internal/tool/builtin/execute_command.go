package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"loki/internal/chat"
	"loki/internal/environ"
	"loki/internal/permission"
	"loki/internal/process"
	"loki/internal/text"
	"loki/internal/tool"
)

// maxPrinted is how many bytes a command may print before it is killed. The model gets
// far less; this only bounds memory.
const maxPrinted = 16 << 20

// executeCommand runs a command with the user's shell. The command has no input and no
// terminal, so that it cannot wait for a user.
type executeCommand struct {
	shell   process.Shell
	child   environ.Child
	dir     string
	timeout time.Duration
}

var (
	_ tool.Tool  = (*executeCommand)(nil)
	_ tool.Guard = (*executeCommand)(nil)
)

// Declaration implements [tool.Tool].
func (e *executeCommand) Declaration() chat.Tool {
	return chat.Tool{
		Name: "execute_command",
		Description: fmt.Sprintf("Execute a shell command on the user's computer (%s, %s) and return what it prints. "+
			"The command gets no input and no terminal; each call starts a new shell.", runtime.GOOS, e.shell.Name),
		Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"The command to execute."}},"required":["command"]}`),
	}
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
	// Indented, the command is a block of code where questions are rendered as
	// Markdown.
	return fmt.Sprintf("Run this command with %s?\n\n    %s", e.shell.Name, strings.ReplaceAll(text.Visible(command), "\n", "\n    ")), nil
}

// Call implements [tool.Tool].
func (e *executeCommand) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	command, err := commandOf(call)
	if err != nil {
		return tool.Result{}, err
	}
	printed, err := process.Run(ctx, process.Command{
		Path:      e.shell.Path,
		Args:      []string{e.shell.Flag, command},
		Dir:       e.dir,
		Env:       e.env(call),
		MaxStdout: maxPrinted,
	})
	r := tool.Result{Output: string(printed.Stdout), Stderr: printed.Stderr}
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

// env returns the environment of the command. Colors are turned off, because a model
// reads the output. The ids of an outer run are replaced by those of this call.
func (e *executeCommand) env(call tool.Call) []string {
	set := make(map[string]string, 2)
	unset := []string{"CLICOLOR_FORCE", "FORCE_COLOR"}
	for name, v := range map[string]string{"LOKI_RUN_ID": call.RunID, "LOKI_IDEMPOTENCY_KEY": call.IdempotencyKey} {
		if v == "" {
			unset = append(unset, name)
		} else {
			set[name] = v
		}
	}
	env := environ.Merge(e.child.Environ, set, unset...)
	if call.Harmless {
		env = permission.HarmlessEnvironment(env)
	}
	return env
}
