package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/tool"
)

// Jobs are commands that continue to run when the call that started them has ended.
type Jobs interface {
	// Start starts a job and returns what the model reads about it.
	Start(ctx context.Context, call tool.Call, job Job) (tool.Result, error)
	// Reach returns what leads to the ports of the jobs, by port.
	Reach() map[int]sandbox.Dialer
	// Keeps reports whether jobs can outlive this program.
	Keeps() bool
}

// Job is a command to be started as a job.
type Job struct {
	Text    string // of the command
	Program process.Command
	Box     *sandbox.Box   // that confines it; nil if nothing does
	Ready   *regexp.Regexp // what its output has when it is ready; nil if that is not known
	Ports   []int          // at which programs of the user reach it
	Keep    bool           // it outlives this program
}

// InBackground returns the tool execute_command with the parameters that make a command one of the jobs. Another tool is returned as it is.
func InBackground(t tool.Tool, jobs Jobs) tool.Tool {
	e, ok := t.(*executeCommand)
	if !ok {
		return t
	}
	with := *e
	with.jobs = jobs
	return &with
}

// background is what a model reads about jobs, at the end of the tool's description.
const background = " A command that does not end by itself, such as a server, or that takes minutes, needs background: true. It runs on as a job: the result has its id, for job__output and job__kill."

var backgroundParams = []param{
	{name: "background", kind: "boolean", optional: true, description: "Run it as a job that continues after this call."},
	{name: "ready", kind: "string", optional: true, description: "With background: a regular expression that its output matches when it is ready. The call waits up to 30 seconds for it."},
}

var portsParam = param{name: "ports", kind: "array", optional: true, more: `,"items":{"type":"integer","minimum":1024,"maximum":65535},"maxItems":8`, description: "With background and sandbox: network: ports on which it listens, such as 5173, that the user's browser and your later commands are to reach at 127.0.0.1."}

var keepParam = param{name: "keep", kind: "boolean", optional: true, description: "With background: it runs on when this program and the conversation have ended. Only if the user wants that; the user is always asked."}

// mostPorts is how many ports a job has at most.
const mostPorts = 8

type backgroundArgs struct {
	Background bool   `json:"background"`
	Ready      string `json:"ready"`
	Ports      []int  `json:"ports"`
	Keep       bool   `json:"keep"`
	ready      *regexp.Regexp
}

// backgroundOf reads what a call says about jobs.
func (e *executeCommand) backgroundOf(call tool.Call) (backgroundArgs, error) {
	args, err := tool.Decode[backgroundArgs](call)
	switch {
	case err != nil:
		return args, err
	case !args.Background && (args.Ready != "" || len(args.Ports) > 0 || args.Keep):
		return args, errors.New(`arguments "ready", "ports" and "keep" need "background": true`)
	case args.Keep && !e.jobs.Keeps():
		return args, errors.New(`argument "keep" is not for here: no job outlives this conversation`)
	case len(args.Ports) > mostPorts:
		return args, fmt.Errorf(`argument "ports" has %d ports; a job has %d at most`, len(args.Ports), mostPorts)
	}
	if args.Ready != "" {
		if args.ready, err = regexp.Compile("(?m)" + args.Ready); err != nil {
			return args, fmt.Errorf(`argument "ready": %w`, err)
		}
	}
	slices.Sort(args.Ports)
	args.Ports = slices.Compact(args.Ports)
	for _, port := range args.Ports {
		if port < 1024 || port > 65535 {
			return args, fmt.Errorf(`argument "ports": %d is not a port from 1024 to 65535`, port)
		}
	}
	if len(args.Ports) == 0 {
		return args, nil
	}
	wanted, err := e.request(call, "")
	switch {
	case err != nil:
		return args, err
	case !e.networks():
		return args, errors.New(`argument "ports" needs a sandbox with networks of its own (user namespaces of Linux), which is not to be had here: start the job without "ports"`)
	case wanted.Level != sandbox.Network:
		return args, fmt.Errorf(`argument "ports" needs "sandbox": "network", not %q`, wanted.Level)
	}
	return args, nil
}

// how is how the command is run, for the question.
func (a backgroundArgs) how() string {
	if !a.Background {
		return ""
	}
	if a.Keep {
		return " as a job that continues when Loki has ended, until loki --kill-job ends it"
	}
	return " as a job, which runs until it ends or is killed"
}

// opens is what the question says about ports.
func (a backgroundArgs) opens() string {
	if len(a.Ports) == 0 {
		return ""
	}
	ports := make([]string, len(a.Ports))
	for i, port := range a.Ports {
		ports[i] = strconv.Itoa(port)
	}
	return fmt.Sprintf("\n\nAll programs on this computer can reach its %s %s at 127.0.0.1.", text.Plural(len(ports), "port"), strings.Join(ports, ", "))
}

// Outlives implements [tool.Outliving].
func (e *executeCommand) Outlives(call tool.Call) bool {
	if e.jobs == nil {
		return false
	}
	args, err := e.backgroundOf(call)
	return err == nil && args.Keep
}

// start starts a command as a job.
func (e *executeCommand) start(ctx context.Context, call tool.Call, command string, program process.Command, needs sandbox.Needs, args backgroundArgs) (tool.Result, error) {
	job := Job{Text: command, Program: program, Ready: args.ready, Ports: args.Ports, Keep: args.Keep}
	if e.holds() && call.Sandbox.Level != sandbox.Full {
		if len(args.Ports) > 0 && call.Sandbox.Level != sandbox.Network {
			return tool.Result{}, fmt.Errorf(`"ports" need the level network, and the call was allowed at the level %s`, call.Sandbox.Level)
		}
		needs.Lasting, needs.Dialed = true, len(args.Ports) > 0
		job.Box = e.sandbox.Box(call.Sandbox, needs)
		job.Program.Confinement = job.Box
	}
	return e.jobs.Start(ctx, call, job)
}
