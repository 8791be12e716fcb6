package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/launch"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// runAgent has the agent of -a work on the text.
func (c *command) runAgent(ctx context.Context, face *face) error {
	isGraph, err := c.isGraph()
	if err != nil {
		return err
	}
	if c.opts.knowledge.rebuild {
		if err := c.rebuildAgent(ctx, face); err != nil || c.opts.onlyBuilds() {
			return err
		}
	}
	if !isGraph {
		if err := refuse(c.opts.flags, "agent", append(breakFlags, "watch"), "agent "+c.opts.agent+" has no graph"); err != nil {
			return err
		}
		return c.answer(ctx, face)
	}
	of, err := c.agent()
	if err != nil {
		return err
	}
	// Answers to a graph's questions come from the standard input if it is no
	// terminal, unless it must be the prompt.
	answersPiped := !c.InTerminal && len(c.opts.text) > 0 && of.Graph.Asks() && c.opts.answers == ""
	stdin := io.Reader(nil)
	if !answersPiped {
		stdin = c.In
	}
	attached, text, err := c.attachments(ctx, face, stdin)
	if err != nil {
		return err
	}
	if len(attached.Images) > 0 {
		return fault.New(fault.Usage, "agent %s is a graph, and its prompt is text only: pictures cannot be attached", of.Name)
	}
	asker := c.asker(face, answersPiped)
	if asker, err = c.withAnswers(ctx, asker); err != nil {
		return err
	}
	given := c.agentVariables()
	variables, err := c.variables(ctx, of.InForce.Variables, given, asker)
	if err != nil {
		return err
	}
	var remembers chat.Memory
	if c.opts.sampling.unremembered {
		remembers = chat.MemoryOff
	}
	job, err := c.app.AgentJob(ctx, launch.Run{
		Agent: of, Prompt: attached.Text(text), Variables: variables, Given: given, Memory: remembers,
		Model: c.opts.model, NoStream: c.opts.noStream, Events: c.app.Events(face.emitter), Asker: asker, Yes: c.opts.yes,
	})
	if err != nil {
		return err
	}
	for _, key := range c.opts.watched {
		if hint, known := of.Graph.KeyHint(key); !known {
			c.warn("--watch " + key + ": no node writes that key of the state" + hint)
		}
	}
	if job.Stops, err = run.ParseBreakpoints(of.Graph, c.opts.breaks); err != nil {
		return err
	}
	if err := job.Info.Admit(c.opts.doc.Rules, "", "", nil); err != nil {
		return err
	}
	job.Stops.Steps, job.Keep = c.opts.steps(), c.opts.noCompensate
	out, err := c.app.Runs().Start(ctx, job)
	if run.Due(err) && out.Recorded { // its other work took longer than its provider asked to wait
		return c.resumeID(ctx, face, out.Run)
	}
	return err
}

// isGraph reports whether the agent of -a is a graph agent. It refuses flags that do not go with
// one, before anything is read.
func (c *command) isGraph() (bool, error) {
	ref, err := c.app.Agents.Find(c.opts.agent)
	if err != nil {
		return false, err
	}
	file, err := c.app.Agents.File(ref)
	if err != nil || file != ref.GraphFile() {
		return false, err
	}
	return true, refuse(c.opts.flags, "agent", ofGraph, "the graph itself sets the instructions and memory of its models")
}

// agentVariables returns the values of --agent-variable.
func (c *command) agentVariables() map[string]string {
	given := make(map[string]string, len(c.opts.variables))
	for _, v := range c.opts.variables {
		given[v[0]] = v[1]
	}
	return given
}

// useAgent begins to talk with the agent of -a, in the session that the options or the agent name.
func (c *command) useAgent(ctx context.Context, conv *conversation.Conversation, asker ask.Asker) error {
	of, err := c.agent()
	if err != nil {
		return err
	}
	given := c.agentVariables()
	err = conv.UseAgent(ctx, c.app.PlainAgent(of, given, asker, func(ctx context.Context) (map[string]string, error) {
		return c.variables(ctx, of.InForce.Variables, given, asker)
	}))
	if name := c.app.SessionOf(of); err == nil && !c.opts.hasSession && !c.opts.goOn && name != "" {
		err = conv.UseSession(ctx, name)
	}
	return err
}

// agent returns the agent of -a. It warns of what is wrong with its definition and with what
// the environment says of it.
func (c *command) agent() (agent.Agent, error) {
	of, findings, err := c.loadAgent(c.opts.agent)
	if err != nil {
		return agent.Agent{}, err
	}
	for _, f := range findings {
		c.warnFinding(of.Definition.File, f)
	}
	return of, nil
}

// loadAgent returns the agent that name means, and warnings about it.
func (c *command) loadAgent(name string) (agent.Agent, graph.Findings, error) {
	ref, err := c.app.Agents.Find(name)
	if err != nil {
		return agent.Agent{}, nil, err
	}
	return c.app.Agents.Load(ref)
}

// graphAgent is loadAgent for commands that are about graphs. action says what they do.
func (c *command) graphAgent(name, action string) (agent.Agent, graph.Findings, error) {
	of, findings, err := c.loadAgent(name)
	if err == nil && of.Graph == nil {
		err = fault.New(fault.Usage, "agent %s is defined by config.yaml and has no graph to %s", of.Name, action)
	}
	return of, findings, err
}

// asker gets questions answered: by the lines of a piped standard input, or at the
// terminal if there is one. Consent is never piped.
func (c *command) asker(f *face, piped bool) ask.Asker {
	if piped {
		lines, human := ask.NewPiped(c.In), c.asker(f, false)
		return ask.Func(func(ctx context.Context, q ask.Question) (string, error) {
			if q.Consent {
				return human.Ask(ctx, q)
			}
			return lines.Ask(ctx, q)
		})
	}
	if !c.InTerminal && !c.ErrTerminal {
		return ask.Unavailable{}
	}
	return f.display.Terminal(c.interrupt, nil, nil)
}

// variables returns a value for each of the agent's variables.
func (c *command) variables(ctx context.Context, declared []graph.Variable, given map[string]string, asker ask.Asker) (map[string]string, error) {
	return agent.Values(declared, given, func(v graph.Variable) (string, bool, error) {
		if !c.InTerminal {
			return "", false, nil
		}
		answer, err := asker.Ask(ctx, ask.Question{Kind: ask.Text, Text: v.Description + " (" + v.Name + ")", Validate: notBlank})
		return answer, err == nil, err
	})
}

func notBlank(answer string) error {
	if strings.TrimSpace(answer) == "" {
		return errors.New("a value is needed")
	}
	return nil
}

// attachments returns what is attached, and the text before it: the words of the command
// line and what stdin holds (nil for none).
func (c *command) attachments(ctx context.Context, face *face, stdin io.Reader) (attached input.Attachments, text string, err error) {
	if err := c.noteText(ctx); err != nil {
		return attached, "", err
	}
	piped := ""
	attachStdin := stdin != nil && slices.Contains(c.opts.files, dash)
	if stdin != nil && !c.InTerminal || attachStdin {
		comes, err := c.awaitStdin(ctx, stdin, attachStdin)
		if err == nil && comes {
			piped, err = input.ReadStdin(stdin)
		}
		if err != nil {
			return attached, "", err
		}
	}
	files := slices.DeleteFunc(slices.Clone(c.opts.files), func(f string) bool { return f == dash && attachStdin })
	if attached, err = c.load(ctx, face, files); err != nil {
		return attached, "", err
	}
	if attachStdin {
		document := input.Document{Kind: input.File, Name: "standard input", Text: piped}
		attached.Documents, piped = append([]input.Document{document}, attached.Documents...), ""
	}
	return attached, input.Text(c.opts.text, piped), nil
}

// patience is how long a standard input that neither sends anything nor ends is waited for, at first without a word.
const patience = 3 * time.Second

// awaitStdin waits until there is something to read, and reports whether there is. A text on the command line can be
// answered without: then it waits only for the program in front of a pipeline, not for one that started this program and left
// its standard input open, such as a service manager.
func (c *command) awaitStdin(ctx context.Context, stdin io.Reader, needed bool) (comes bool, err error) {
	f, ok := stdin.(*os.File)
	if !ok {
		return true, nil
	}
	if comes, err = input.Ready(ctx, f, patience); comes || err != nil {
		return comes, err
	}
	needed = needed || len(c.opts.text) == 0 && len(c.opts.files) == 0
	if !needed && !input.HasWriter(f) {
		if comes, err = input.Ready(ctx, f, 0); comes || err != nil {
			return comes, err // the program in front has ended meanwhile
		}
		c.warn(fmt.Sprintf("nothing came from standard input for %s, so it is not read; to close it: loki ... </dev/null", patience))
		return false, nil
	}
	if !c.opts.quiet {
		fmt.Fprintln(c.Err, "note: waiting for standard input; to answer without it: loki ... </dev/null")
	}
	for !comes && err == nil {
		comes, err = input.Ready(ctx, f, time.Minute)
	}
	return comes, err
}

// load loads what is attached, under a spinner.
func (c *command) load(ctx context.Context, face *face, sources []string) (input.Attachments, error) {
	loader := c.app.Loader()
	if err := c.app.AskForFiles(ctx, loader, sources, c.asker(face, false), c.opts.yes); err != nil {
		return input.Attachments{}, err
	}
	if len(sources) > 0 && !c.opts.quiet {
		defer face.screen.Spin("Loading files")()
	}
	if c.opts.hasSession && !c.opts.emptySession && slices.Contains(sources, input.LastReply) {
		reply, err := c.lastReply(ctx, face)
		if err != nil {
			return input.Attachments{}, err
		}
		loader.Reply = reply
	}
	attached, err := loader.Load(ctx, sources)
	if skipped := attached.PassedOver; len(skipped) > 0 && !c.opts.quiet {
		shown := skipped
		if c.opts.verbose == 0 {
			shown = skipped[:min(len(skipped), mostSkipped)]
		}
		more := ""
		if n := len(skipped) - len(shown); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		face.screen.Print("▸ skipped: " + strings.Join(shown, ", ") + more)
	}
	if note := attached.Note(); note != "" {
		face.screen.Print("▸ " + note)
	}
	return attached, err
}

// lastReply returns the last reply in the session that --session names, nil if there is
// none.
func (c *command) lastReply(ctx context.Context, face *face) (reply *string, err error) {
	conv := c.app.Conversations().Begin(conversation.Options{})
	if c.opts.agent != "" {
		if err := c.useAgent(ctx, conv, c.asker(face, false)); err != nil {
			return nil, err
		}
	}
	if err := conv.UseSession(ctx, c.opts.session); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conv.Close(ctx)) }()
	return conv.LastReply(), nil
}

// noInput is errNoInput, with a word on what may have been meant as the text.
func (c *command) noInput() error {
	if c.opts.session == "" || c.opts.session == session.TempName || len(c.opts.text) > 0 {
		return errNoInput()
	}
	return fault.New(fault.Usage, "there is no text to send").
		WithHint("%q was taken for the name of the session; a text behind -s without a name: loki -s -- %s", c.opts.session, c.opts.session)
}

// errNoInput is the error of a command without any text.
func errNoInput() error {
	return fault.New(fault.Usage, "there is no text to send").
		WithHint("give it after the options, pipe it in, or attach a file with -f; all options: loki --help")
}

// mostSkipped is how many files that are not attached are named.
const mostSkipped = 5
