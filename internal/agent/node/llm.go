package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/team"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// outputKey is the scoped variable of llm nodes.
const outputKey = "output"

// llm calls a model. A failure goes to the node's fallback or next, where the run
// allows, with the failure's text as the result.
func (r *Runner) llm(ctx context.Context, t *run.Task, wanted string) (product, error) {
	failures := new(engine.Failures)
	result, err := tryNode(ctx, r, t, func(ctx context.Context) (value.Value, error) { return r.llmResult(ctx, t, failures) })
	p, shape := product{result: result}, t.Node.LLM.OutputSchema
	if err = suspendedUntilLater(t, err); err != nil {
		if p, err = r.tolerate(ctx, t, err); err != nil {
			return p, withoutFallback(err)
		}
		p.result, shape = value.Of(p.failure.Message), nil
	}
	return r.deliver(ctx, t, p, shape, wanted)
}

// suspendedUntilLater returns the error that suspends a recorded run if the provider asks for a
// long wait: the run resumes after it, and not without the model. Other errors it returns as they
// are.
func suspendedUntilLater(t *run.Task, err error) error {
	if _, ok := errors.AsType[*engine.LaterError](err); ok && t.Steps.Recording() {
		if failure, ok := errors.AsType[*llmFailure](err); ok {
			err = failure.err // it waits, and has not failed
		}
		return fault.Wrap(fault.Suspended, err, "node %q waits for its provider", t.Node.ID)
	}
	return err
}

// llmFailure is the failure of an llm node. Its text goes into the state.
type llmFailure struct {
	stage string // what failed, of the node's work
	err   error
}

func (e *llmFailure) Error() string { return "LLM node " + e.stage + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *llmFailure) Unwrap() error { return e.err }

// withoutFallback returns the error of an llm node that has neither a fallback nor a next
// node.
func withoutFallback(err error) error {
	failure, ok := errors.AsType[*llmFailure](err)
	if !ok {
		return err // canceled
	}
	switch fault.CodeOf(err) {
	case fault.Suspended:
		return failure.err // it waits, and has not failed
	case fault.Limit:
		return err
	}
	return fault.Wrap(fault.CodeOf(err), err, "no fallback declared").
		WithHint("add fallback: to the node, so that the run can continue without the model")
}

// llmResult returns the text of the reply, or with an output schema the JSON value in it.
func (r *Runner) llmResult(ctx context.Context, t *run.Task, failures *engine.Failures) (value.Value, error) {
	llm := t.Node.LLM
	var instructions string
	var err error
	if llm.Instructions != nil {
		if instructions, err = llm.Instructions.Strict(t.Draft); err != nil {
			return value.Value{}, &llmFailure{"failed: instructions", err}
		}
	}
	prompt, err := llm.Prompt.Strict(t.Draft)
	if err != nil {
		return value.Value{}, &llmFailure{"failed: prompt", err}
	}
	if llm.OutputSchema != nil {
		if hint := "\n\n" + schema.Hint(*llm.OutputSchema); llm.Instructions != nil {
			instructions += hint
		} else {
			prompt += hint
		}
	}
	var with extras
	if llm.Skills != "" && r.Skills != nil {
		var list string
		if with.loader, list, err = r.Skills(ctx, llm.Skills); err != nil {
			return value.Value{}, &llmFailure{"failed: skills", err}
		}
		instructions = strings.TrimSpace(instructions + "\n\n" + list)
	}
	if llm.Memory != "" && llm.Memory != chat.MemoryOff && r.Memory != nil {
		var recalled string
		if recalled, with.tools, err = r.Memory(ctx, t, llm.Memory, prompt); err != nil {
			return value.Value{}, &llmFailure{"failed: memory", err}
		}
		prompt = recalled + prompt
	}
	material := func() []string { return r.llmMaterial(t, instructions, prompt) }
	return withCache(ctx, r, t, material, func(ctx context.Context) (value.Value, error) {
		return r.llmCall(ctx, t, promptMessages(strings.TrimSpace(instructions), prompt), failures, with)
	})
}

// extras are the tools of an llm node that it does not list.
type extras struct {
	loader *skill.Loader // nil for none
	tools  []tool.Tool
}

// llmMaterial returns what the result of an llm node depends on.
func (r *Runner) llmMaterial(t *run.Task, instructions, prompt string) []string {
	llm := t.Node.LLM
	parts := append([]string{cmp.Or(llm.Model, r.Context.Model), instructions, prompt}, llm.Tools...)
	sampling := llm.Sampling.Over(r.Context.Sampling)
	for _, p := range []*float64{sampling.Temperature, sampling.TopP} {
		text := ""
		if p != nil {
			text = value.Of(*p).Text()
		}
		parts = append(parts, text)
	}
	if sampling.Effort != "" {
		parts = append(parts, "reasoning_effort "+string(sampling.Effort))
	}
	return parts
}

// llmCall asks the model and reads its answer.
func (r *Runner) llmCall(ctx context.Context, t *run.Task, messages []chat.Message, failures *engine.Failures, with extras) (value.Value, error) {
	llm := t.Node.LLM
	req := engine.Request{
		Messages: messages, Model: llm.Model, Sampling: llm.Sampling, MaxTurns: llm.MaxIterations, Whole: true, Node: t.Node.ID,
	}
	if llm.OutputSchema != nil {
		form, err := schema.Compile(*llm.OutputSchema)
		if err != nil {
			return value.Value{}, &llmFailure{"failed: output_schema", err}
		}
		req.Form = form
	}
	answer, err := within(ctx, t.Node, func(ctx context.Context) (string, error) {
		return r.attempts(ctx, t, req, failures, with)
	})
	if fault.CodeOf(err) == fault.Suspended {
		return value.Value{}, err
	}
	if err != nil {
		return value.Value{}, &llmFailure{"failed", err}
	}
	if req.Form == nil {
		return value.Of(answer), nil
	}
	rc := r.request(t)
	rc.Failures = failures
	result, reply, err := r.Engine.StructuredValue(ctx, rc, req, engine.Reply{Text: answer}, true)
	addUsage(t, reply.Usage)
	if err != nil {
		return value.Value{}, &llmFailure{"structured-extraction failed", unfitReply(err, t.Secrets != nil)}
	}
	return result, nil
}

// unfitReply returns the error of a node whose output is not of its form. Other errors it returns
// as they are. In a graph with secret keys the reply is not quoted: it may be meant for one of them.
func unfitReply(err error, secret bool) error {
	unfit, ok := errors.AsType[*engine.FormError](err)
	switch {
	case ok && secret:
		return fmt.Errorf("after one repair the reply still does not match output_schema: %w; the last reply is not shown, because the graph has secret keys", unfit)
	case ok:
		return fmt.Errorf("after one repair the reply still does not match output_schema: %w; the last reply was %q", unfit, text.Cut(unfit.Last, 200))
	}
	return err
}

func promptMessages(system, user string) []chat.Message {
	messages := make([]chat.Message, 0, 2)
	if system != "" {
		messages = append(messages, chat.Text(chat.System, system))
	}
	return append(messages, chat.Text(chat.User, user))
}

// attempts asks the model until it answers, fails for good or max_attempts are used up. Each
// attempt starts from scratch, at once unless the provider asks to wait.
func (r *Runner) attempts(ctx context.Context, t *run.Task, req engine.Request, failures *engine.Failures, with extras) (string, error) {
	llm := t.Node.LLM
	if llm.MaxAttempts == 0 {
		return "", errors.New("max_attempts is 0, so the model was not asked")
	}
	if llm.MaxIterations == 0 {
		return "", errors.New("max_iterations is 0, so the model was not asked")
	}
	var err error
	var own *team.Team
	if req.Tools, own, err = r.toolbox(ctx, t, with); err != nil {
		return "", err
	}
	if own != nil {
		defer func() { addUsage(t, own.Root().Close()) }()
	}
	limit := tries{policy: retry.Policy{Attempts: llm.MaxAttempts}, name: "attempt", passes: func(err error) bool { return mayPass(t, err) }}
	return tryWork(ctx, r, t, limit, func(ctx context.Context) (string, error) {
		rc := r.request(t)
		rc.Failures = failures
		reply, err := r.Engine.Run(ctx, rc, req)
		addUsage(t, reply.Usage)
		return reply.Text, err
	})
}

// toolbox returns the tools that the node lists, nil if it lists none. If those to work with other
// agents are among them there is a team, which the caller closes.
func (r *Runner) toolbox(ctx context.Context, t *run.Task, with extras) (tools engine.Tools, own *team.Team, err error) {
	if len(t.Node.LLM.Tools) == 0 && with.loader == nil && len(with.tools) == 0 {
		return nil, nil, nil
	}
	var names, servers []string
	for _, name := range t.Node.LLM.Tools {
		if server, ok := strings.CutPrefix(name, "mcp:"); ok {
			if r.Servers == nil && strings.HasSuffix(server, "?") {
				continue // it may be missing
			}
			servers = append(servers, server)
		} else {
			names = append(names, name)
		}
	}
	all := r.Tools
	if r.Team != nil && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, teamPrefix) || name == team.MergeTool }) {
		if own, err = r.team(ctx, t); err != nil {
			return nil, nil, err
		}
		defer func() {
			if err != nil {
				own.Root().Close()
			}
		}()
		if all, err = all.With(own.Root().Tools()...); err != nil {
			return nil, nil, err
		}
	}
	set, err := all.ForNode(r.Agent, names)
	if err != nil {
		return nil, nil, err
	}
	if set, err = r.Jobs.Equip(set, ""); err != nil {
		return nil, nil, err
	}
	var more []tool.Tool
	if len(servers) > 0 {
		if r.Servers == nil {
			return nil, nil, fault.New(fault.Config, "node %s lists MCP servers, but mcp_server_support is off", t.Node.ID)
		}
		if more, err = r.Servers(ctx, servers); err != nil {
			return nil, nil, err
		}
	}
	more = slices.Concat(more, with.tools)
	o := r.Calls
	if r.Jobs != nil {
		o.Notes = r.Jobs.Notes
	}
	if with.loader != nil {
		more, o.Readable = append(more, with.loader), with.loader.Readable
	}
	if set, err = set.With(more...); err != nil {
		return nil, nil, err
	}
	if len(servers) > 0 && r.MoreOfServers != nil {
		o.More = func() []tool.Tool { return r.MoreOfServers(ctx, servers) }
	}
	o.Tools, o.Run, o.Task, o.Uncertain = set, t.Events.Run, fmt.Sprintf("%d/%s", t.Step, r.place(t)), tool.Policy(t.Node.OnUncertain)
	o.Asker, o.From = r.userQuestions(t).ForTools(), r.origin(t)
	return tool.NewBox(o), own, nil
}
