package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// tool calls a tool and takes its result. A failure goes to the node's fallback; without one the run fails.
func (r *Runner) tool(ctx context.Context, t *run.Task, wanted string) (product, error) {
	result, err := tryNode(ctx, r, t, func(ctx context.Context) (value.Value, error) { return r.toolResult(ctx, t) })
	if err != nil {
		return r.fail(ctx, t, fault.Wrap(scriptCode(err), err, "tool %s", t.Node.Tool.Tool))
	}
	return r.deliver(ctx, t, product{result: result}, t.Node.Tool.OutputSchema, wanted)
}

// argumentsError says that a tool does not take the arguments of its node. Another try would have the same.
type argumentsError struct{ err error }

func (e *argumentsError) Error() string         { return "arguments: " + e.err.Error() }
func (e *argumentsError) Unwrap() error         { return e.err }
func (e *argumentsError) FaultCode() fault.Code { return fault.Tool }

// toolResult returns what the tool of t returns: text or, if it is an object, a list or what an output schema asks for, a
// JSON value.
func (r *Runner) toolResult(ctx context.Context, t *run.Task) (value.Value, error) {
	args, err := t.Node.Tool.Arguments.Render(t.Draft)
	if err != nil {
		return value.Value{}, &argumentsError{err}
	}
	if r.Dry {
		return value.Of(t.Node.Tool.Tool + " " + string(args)), nil
	}
	material := func() []string { return []string{t.Node.Tool.Tool, string(args)} }
	result, err := withCache(ctx, r, t, material, func(ctx context.Context) (value.Value, error) {
		return within(ctx, t.Node, func(ctx context.Context) (value.Value, error) {
			output, err := r.callTool(ctx, t, args)
			if err != nil {
				return value.Value{}, err
			}
			return toolValue(output, t.Node.Tool.OutputSchema)
		})
	})
	if errors.Is(err, steps.ErrSkipped) { // not a result that a cache may keep
		return value.Value{}, t.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("the call of tool %s was %v", t.Node.Tool.Tool, err)})
	}
	return result, err
}

// toolValue returns the output of a tool as a value: the JSON of an object or a list, and any other text as it is. With a
// schema it is JSON of any kind or, if it is neither object nor list and the schema takes that, the text.
func toolValue(output string, shape *value.Value) (value.Value, error) {
	v, err := value.ParseJSON([]byte(output))
	opened := err == nil && (v.Kind() == value.ObjectKind || v.Kind() == value.ListKind)
	switch {
	case shape == nil && opened:
		return v, nil
	case shape == nil:
		return value.Of(output), nil
	}
	form, formErr := schema.Compile(*shape)
	if formErr != nil {
		return value.Value{}, fmt.Errorf("output_schema: %w", formErr)
	}
	var violations []schema.Violation
	if err == nil {
		if violations = form.Validate(v); violations == nil {
			return v, nil
		}
	}
	if text := value.Of(output); !opened && form.Validate(text) == nil {
		return text, nil
	}
	if err != nil {
		return value.Value{}, &unfitResult{fmt.Sprintf("its result is not JSON, as output_schema asks for: %v", err)}
	}
	return value.Value{}, &unfitResult{"its result does not match output_schema: " + schema.List(violations, "; ")}
}

// unfitResult says that a tool did its work, and its result is not what was asked for.
type unfitResult struct{ text string }

func (e *unfitResult) Error() string         { return e.text }
func (e *unfitResult) FaultCode() fault.Code { return fault.Tool }

// callTool makes the call of a tool node and returns its output.
func (r *Runner) callTool(ctx context.Context, t *run.Task, args json.RawMessage) (string, error) {
	bound, err := r.bindTool(ctx, t)
	if err != nil {
		return "", err
	}
	if args, err = bound.Fit(args); err != nil {
		return "", &argumentsError{err}
	}
	if args, err = bound.Arguments(args); err != nil {
		return "", err
	}
	set, err := tool.NewSet(bound.Tool)
	if err != nil {
		return "", err
	}
	o := r.Calls
	o.Tools, o.Run, o.Key, o.Uncertain = set, t.Events.Run, r.effectKey(t), tool.Policy(t.Node.OnUncertain)
	o.Asker, o.From, o.By = r.userQuestions(t).ForTools(), r.origin(t), fmt.Sprintf("Node %q", t.Node.ID)
	box := tool.NewBox(o)
	call := chat.ToolCall{ID: strings.TrimSuffix(fmt.Sprintf("%d/%s/%s", t.Step, r.place(t), t.Steps.Key("")), "/"), Name: set.Names()[0], Arguments: string(args)}
	if err := t.Events.Emit(ctx, event.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Sandbox: box.Level(call)}); err != nil {
		return "", err
	}
	meter := new(chat.Meter)
	made, err := box.Make(engine.WithBudget(chat.WithMeter(ctx, meter), r.Context.Budget), call.ID, call.Name, args, t.Steps.At("tool/1/1"))
	used, replayed := meter.Total()
	addUsage(t, used)
	if r.Context.Budget != nil {
		r.Context.Budget.Spend(replayed)
	}
	result := event.ToolResult{ID: call.ID, Name: call.Name, Text: made.Output, Sandbox: box.Level(call)}
	if failed, ok := errors.AsType[*tool.CallError](err); ok {
		result.Text, result.Failed = failed.Text, true
	} else if err != nil {
		return "", err
	}
	if emitErr := t.Events.Emit(ctx, result); emitErr != nil {
		return "", emitErr
	}
	for _, note := range made.Notes {
		if emitErr := t.Events.Emit(ctx, event.Warning{Text: call.Name + ": " + note}); emitErr != nil {
			return "", emitErr
		}
	}
	return made.Output, err
}

// bindTool returns the tool of a node.
func (r *Runner) bindTool(ctx context.Context, t *run.Task) (tool.Bound, error) {
	name := t.Node.Tool.Tool
	server, of, isServer := t.Node.Tool.Server()
	if isServer && r.ServerTool == nil {
		return tool.Bound{}, &unfitError{fault.Config, fault.New(fault.Config, "tool %s is one of an MCP server, and there is none here", name).
			WithHint("list it in mcp_servers of the agent, and set mcp_server_support to true")}
	}
	if isServer {
		bound, err := r.ServerTool(ctx, server, of)
		if fault.CodeOf(err) == fault.Config {
			err = &unfitError{fault.Config, err}
		}
		return bound, err
	}
	set, err := r.Tools.ForNode(r.Agent, []string{name})
	if err == nil && set.Len() > 1 {
		err = fault.New(fault.Config, "%s means several tools: %s", name, strings.Join(set.Names(), ", ")).WithHint("name one of them")
	}
	if err != nil {
		return tool.Bound{}, &unfitError{fault.Config, err}
	}
	declared := set.Declarations()[0]
	found, _ := set.Lookup(declared.Name)
	return tool.Bound{Tool: found, Name: declared.Name, Takes: declared.Parameters}, nil
}

// effectKey names the one effect that the script or the call of t may have within its run. It is the same for all tries,
// after failures and after interruptions.
func (r *Runner) effectKey(t *run.Task) string {
	key := fmt.Sprintf("%d/%s", t.Step, r.place(t))
	if t.Events.Item != nil {
		key += fmt.Sprintf("/%d", *t.Events.Item)
	}
	return key
}
