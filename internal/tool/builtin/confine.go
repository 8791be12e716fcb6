package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool"
)

// confiner runs the programs of models in the sandbox. The zero value confines nothing.
type confiner struct{ sandbox *sandbox.Sandbox }

// holds reports whether there is a sandbox.
func (c confiner) holds() bool { return c.sandbox != nil && c.sandbox.Support().Files }

// missingReason says why there is no sandbox.
func (c confiner) missingReason() string {
	if c.sandbox == nil {
		return ""
	}
	return c.sandbox.Support().Missing
}

// levels is what a model reads about the sandbox, at the end of a tool's description.
const levels = " It runs in a sandbox. At the level read, the default, it reads the workspace and the programs of the system, writes only in $TMPDIR, " +
	"has no network, and runs without asking. The levels above ask the user, who sees your reason: write also changes files of the workspace, " +
	"network also reaches the hosts that you name, full has no sandbox. The result says what the sandbox stopped: repeat the call with the level that it names if the task needs that, " +
	"and otherwise do without. If you know that a call needs more than read, ask at once, for the lowest level that will do."

// readLevel is what a model reads instead where no call can have a level above read.
const readLevel = " It runs in a sandbox that reads the workspace and the programs of the system, writes only in $TMPDIR, and has no network."

// confinedParams are the parameters by which a call asks for more than the level read.
var confinedParams = []param{
	{name: "sandbox", kind: "string", optional: true, more: `,"enum":["read","write","network","full"]`, description: "Level of the sandbox: read if absent."},
	{name: "hosts", kind: "array", optional: true, more: `,"items":{"type":"string"}`, description: "Hosts to reach at the level network, such as proxy.golang.org or *.npmjs.org."},
	{name: "reason", kind: "string", optional: true, description: "Why it needs a level above read: a few words for the user, such as: it writes go.sum."},
}

// request reads what a call asks for, which is to run text.
func (c confiner) request(call tool.Call, text string) (tool.Request, error) {
	r := tool.Request{Missing: c.missingReason(), Text: text}
	if !c.holds() {
		return r, nil
	}
	args, err := tool.Decode[struct {
		Sandbox sandbox.Level `json:"sandbox"`
		Hosts   []string      `json:"hosts"`
		Reason  string        `json:"reason"`
	}](call)
	if err != nil {
		return r, err
	}
	r.Level, r.Hosts, r.Reason = args.Sandbox, args.Hosts, strings.TrimSpace(args.Reason)
	switch {
	case r.Level == "":
		r.Level = sandbox.Read
	case !r.Level.Valid():
		return r, fmt.Errorf(`argument "sandbox" is %q; there are read, write, network and full`, r.Level)
	}
	if len(r.Hosts) > 0 && r.Level != sandbox.Network {
		return r, fmt.Errorf(`argument "hosts" needs "sandbox": "network", not %q`, r.Level)
	}
	for _, h := range r.Hosts {
		if err := sandbox.CheckHost(h); err != nil {
			return r, fmt.Errorf(`argument "hosts": %w`, err)
		}
	}
	return r, nil
}

// networks reports whether programs can have a network of their own.
func (c confiner) networks() bool { return c.holds() && c.sandbox.Support().Networks }

// run runs a program for a call, in the sandbox that the call has been allowed.
func (c confiner) run(ctx context.Context, call tool.Call, command process.Command, needs sandbox.Needs) (tool.Result, error) {
	var box *sandbox.Box
	if c.holds() {
		box = c.sandbox.Box(call.Sandbox, needs)
		command.Confinement = box
	}
	printed, err := process.Run(ctx, command)
	r := tool.Result{Output: string(printed.Stdout), Stderr: printed.Stderr}
	if box == nil {
		return r, err
	}
	_, exited := errors.AsType[*process.ExitError](err)
	complaints := printed.Stderr
	if exited { // what a command prints with 2>&1
		complaints += "\n" + lastOf(r.Output, complaintBytes)
	}
	r.Refused = box.Refusals(complaints, exited)
	return r, err
}

// complaintBytes is how much of the end of the output of a command that failed is searched for what the sandbox stopped.
const complaintBytes = 16 << 10

func lastOf(s string, n int) string { return s[max(len(s)-n, 0):] }
