package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/validate/draft"
	"loki/internal/agent/validate/draft/planner"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/conversation/launch"
	verbs "loki/internal/frontend/command"
	"loki/internal/frontend/render"
	"loki/internal/workflow/run"
)

// defaultRounds is how often a plan may be corrected.
const defaultRounds = 3

// planning is the work of --plan.
type planning struct {
	*command
	face    *face
	result  *planOutput
	wish    string       // with what is attached to it
	changed *agent.Agent // of -a; nil for a new one
	before  draft.Draft  // its files
	outcome run.Outcome  // of the planner
	asker   ask.Asker
}

// plan has a model write a graph agent for the wish of --plan, shows it, and does with it what the user decides. Nothing
// is written or run before that.
func (c *command) plan(ctx context.Context, face *face) error {
	p := &planning{command: c, face: face, result: face.planned, asker: c.asker(face, false)}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if err := p.askPlanner(ctx); err != nil || p.app.DryRun() {
		return err
	}
	plan := p.app.Planner().Examine(ctx, p.outcome.Output, p.changed)
	for {
		p.report(plan)
		if err := p.show(plan); err != nil {
			return err
		}
		answer, err := p.decide(ctx, plan)
		if err != nil {
			return err
		}
		switch answer {
		case planRun:
			return p.run(ctx, plan)
		case planSave:
			return p.save(ctx, plan)
		case planEdit:
			if plan, err = p.edit(ctx, plan); err != nil {
				return err
			}
		case planPrint:
			return nil
		default:
			fmt.Fprintln(p.Err, "nothing was run or saved")
			return nil
		}
	}
}

// prepare reads the description and the agent to change. A target that cannot be saved is refused before a model is asked.
func (p *planning) prepare(ctx context.Context) (err error) {
	o := &p.opts
	switch {
	case o.output == outputNDJSON:
		return fault.New(fault.Usage, "flag --output: --plan has text and json, not ndjson")
	case len(o.text) > 0:
		return fault.New(fault.Usage, "there is no text with --plan, but %q was given", strings.Join(o.text, " ")).
			WithHint("write the whole description after --plan, in quotes")
	case o.rounds < 0 || o.rounds > 20:
		return fault.New(fault.Usage, "flag --plan-rounds: %d is not between 0 and 20", o.rounds)
	case o.save != "":
		if err := p.checkName(o.save); err != nil {
			return err
		}
	}
	if o.agent != "" {
		of, _, err := p.graphAgent(o.agent, "change")
		if err != nil {
			return err
		}
		p.changed = &of
		if files := planner.FilesOf(of).String(); p.app.Hide(files) != files {
			return fault.New(fault.Config, "the files of agent %s hold a secret, which a model must not read", of.Name).
				WithHint("put it into the vault, and name it where it is needed: loki --secret add NAME")
		}
		p.before = planner.FilesOf(of)
	}
	o.text = []string{o.plan}
	attached, wish, err := p.attachments(ctx, p.face, p.In)
	if err != nil {
		return err
	}
	if len(attached.Images) > 0 {
		return fault.New(fault.Usage, "a plan is made from text only: pictures cannot be attached")
	}
	if p.wish = attached.Text(wish); strings.TrimSpace(p.wish) == "" {
		return errNoInput()
	}
	return nil
}

// checkName returns an error if a new agent cannot have a name.
func (p *planning) checkName(name string) error {
	if why := text.FileNameFault(name); why != "" {
		return fault.New(fault.Usage, "an agent cannot be called %q: %s", name, why)
	}
	if strings.HasPrefix(name, "-") {
		return fault.New(fault.Usage, "an agent cannot be called %q: it begins with a hyphen", name)
	}
	if known, _ := p.app.Agents.Exists(name); known {
		return fault.New(fault.Usage, "there is an agent called %s already", name).
			WithHint("choose another name, or change that one: loki --plan TEXT -a %s", name)
	}
	return nil
}

// askPlanner runs the agent that writes graphs.
func (p *planning) askPlanner(ctx context.Context) error {
	of, findings, err := p.loadAgent(planner.Name)
	if err != nil {
		return err
	}
	for _, f := range findings {
		p.warnFinding(of.Definition.File, f)
	}
	target := ""
	if p.changed != nil {
		if target = p.changed.Name; !p.changed.ByName() {
			target = p.changed.Dir
		}
	}
	state := []value.Member{{Name: planner.AgentKey, Value: value.Of(target)}, {Name: planner.RoundsKey, Value: value.Of(p.opts.rounds)}, {Name: planner.ReplayKey, Value: value.Of(p.opts.replay != "")}}
	if p.app.DryRun() {
		var offer []value.Member
		if of, offer, err = p.app.Planner().Offer(ctx, of, target); err != nil {
			return err
		}
		state = append(state, offer...)
	}
	job, err := p.app.AgentJob(ctx, launch.Run{
		Agent: of, Prompt: p.app.Hide(p.wish), Model: p.opts.model, NoStream: p.opts.noStream, Events: p.app.Events(p.face.emitter), Asker: p.asker, State: state,
	})
	if err != nil {
		return err
	}
	p.outcome, err = p.app.Runs().Start(ctx, job)
	if reply, ok := planner.Unusable(p.outcome.State); ok && fault.CodeOf(err) == fault.Tool {
		p.outcome.Output, err = reply, nil // what is wrong with it is shown
	}
	return err
}

// The answers of decide.
const (
	planRun   = "run"
	planSave  = "save"
	planEdit  = "edit"
	planPrint = "print" // it is the result
	planNo    = "no"
)

// decide returns what to do with a plan.
func (p *planning) decide(ctx context.Context, plan planner.Plan) (string, error) {
	if !plan.Valid() {
		return p.decideInvalid(ctx)
	}
	switch {
	case p.opts.yes && (p.opts.save != "" || p.changed != nil):
		return planSave, nil
	case p.opts.yes:
		return planRun, nil
	case p.opts.output != outputText:
		return planPrint, nil
	}
	save := "save it as an agent"
	switch {
	case p.changed != nil:
		save = "save the change of " + p.changed.Name
	case p.opts.save != "":
		save = "save it as " + p.opts.save
	}
	options := []string{"run it", "edit it", save, planNo}
	if p.changed != nil {
		options = options[1:] // it runs when it is saved
	}
	answer, err := p.asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: "What do you want to do with this plan?", Options: options, Consent: true})
	if errors.Is(err, ask.ErrUnavailable) {
		return "", fault.New(fault.Suspended, "nothing was run or saved: no user can be asked here").WithHint("%s", p.again("--yes"))
	}
	if answer == save {
		return planSave, err
	}
	verb, _, _ := strings.Cut(answer, " ")
	return verb, err
}

// decideInvalid is decide for a plan that cannot be used: a user may correct it.
func (p *planning) decideInvalid(ctx context.Context) (string, error) {
	failure := fault.New(fault.Provider, "no valid graph after %s", text.Count(planner.CorrectionCount(p.outcome.State), "correction")).
		WithHint("say in the description what the nodes do, name another model with -m, or allow more rounds: --plan-rounds %d%s", max(2*p.opts.rounds, 2*defaultRounds), p.record())
	if p.opts.output != outputText || p.opts.yes {
		return "", failure
	}
	answer, err := p.asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: "This plan cannot be used as it is. What do you want to do with it?", Options: []string{"edit it", planNo}, Consent: true})
	if errors.Is(err, ask.ErrUnavailable) || err == nil && answer == planNo {
		return "", failure
	}
	return planEdit, err
}

// again returns how the same plan is used by a later command.
func (p *planning) again(more string) string {
	if !p.outcome.Recorded || p.outcome.Run == "" {
		return "repeat the command at a terminal, or consent beforehand: " + more
	}
	name := " -a " + text.Word(p.opts.agent)
	switch {
	case p.changed != nil:
	case p.opts.save != "":
		name = " --save " + text.Word(p.opts.save)
	default:
		name = " --save NAME"
	}
	return fmt.Sprintf("save the same plan without asking a model again: loki --plan %s --replay %s%s %s", p.wishWord(), p.outcome.Run, name, more)
}

// record says where the last reply is.
func (p *planning) record() string {
	if !p.outcome.Recorded || p.outcome.Run == "" {
		return ""
	}
	return fmt.Sprintf("\ncorrect it yourself at a terminal: loki --plan %s --replay %s", p.wishWord(), p.outcome.Run)
}

// wishWord returns the wish as a word of a command line.
func (p *planning) wishWord() string {
	const most = 80
	if len(p.opts.plan) > most || len(p.opts.files) > 0 {
		return "TEXT"
	}
	return text.Word(p.opts.plan)
}

// edit has the user change a plan in their editor. A text that is left empty changes nothing.
func (p *planning) edit(ctx context.Context, plan planner.Plan) (planner.Plan, error) {
	p.face.display.Settle()
	var b strings.Builder
	b.WriteString("Change the files below, then save them and close the editor. An empty text leaves them as they were.\n\n")
	if len(plan.Findings) > 0 {
		render.Findings(&b, "graph.yaml", plan.Findings, false)
		b.WriteByte('\n')
	}
	b.WriteString(plan.Draft.String())
	if plan.Draft.Graph == "" {
		b.Reset()
		b.WriteString(p.outcome.Output + "\n")
	}
	edited, err := verbs.EditText(ctx, p.app, b.String(), verbs.Terminal{In: os.Stdin, Out: p.Err, Environ: p.environ})
	if err != nil || strings.TrimSpace(edited) == "" {
		return plan, err
	}
	return p.app.Planner().Examine(ctx, edited, p.changed), nil
}

// save writes a plan to the agent that it changes, or to a new one.
func (p *planning) save(ctx context.Context, plan planner.Plan) error {
	name, dir, arg := p.opts.save, "", ""
	switch {
	case p.changed != nil:
		name, dir, arg = p.changed.Name, p.changed.Dir, p.changed.Arg
	case name == "":
		answer, err := p.asker.Ask(ctx, ask.Question{
			Kind: ask.Line, Text: "What is the agent to be called?", Default: planName(plan), HasDefault: p.checkName(planName(plan)) == nil, Validate: p.checkName,
		})
		if err != nil {
			return err
		}
		name = answer
	}
	if p.changed != nil && !p.app.Planner().Holds(p.changed.Ref, p.before) {
		return fault.New(fault.Config, "agent %s has changed while its change was planned, so it was not saved", name).
			WithHint("%s", p.again("--yes"))
	}
	if p.changed == nil {
		if err := p.checkName(name); err != nil { // it may have been made meanwhile
			return err
		}
		dir, arg = filepath.Join(p.app.Paths.AgentsDir, name), name
		if err := newDirectory(dir); err != nil {
			return fault.Wrap(fault.Config, err, "agent %s cannot be saved", name)
		}
	}
	if _, err := p.app.Planner().Write(ctx, plan, dir, arg); err != nil {
		return fault.Wrap(fault.Config, err, "agent %s cannot be saved", name)
	}
	p.result.Saved = dir
	if p.opts.output != outputText {
		return nil
	}
	return p.say("saved: %s; run it: loki -a %s TEXT", text.Visible(dir), text.Word(arg))
}

// newDirectory makes a directory, which must not be there yet.
func newDirectory(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// planName returns the name of a plan's graph as that of a directory.
func planName(plan planner.Plan) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, plan.Agent.Graph.Name)
	const most = 40
	return cmp.Or(strings.Trim(name[:min(len(name), most)], "-"), "plan")
}

// run runs a plan with the wish as its prompt. Its tools ask as those of any agent do, also with --yes: that was said about the
// plan, before it was known what they would do.
func (p *planning) run(ctx context.Context, plan planner.Plan) error {
	if p.opts.replay != "" {
		return fault.New(fault.Usage, "a plan from a record is not run, because models are not asked then").WithHint("save it with --save NAME, and run that")
	}
	dir := p.app.Planner().Dir(planName(plan) + "-" + plan.Draft.Sum())
	of, err := p.app.Planner().Write(ctx, plan, dir, dir)
	if err != nil {
		return fault.Wrap(fault.Config, err, "the plan cannot be written")
	}
	variables, err := p.variables(ctx, of.InForce.Variables, p.agentVariables(), p.asker)
	if err != nil {
		return err
	}
	plain := *p.command
	plain.opts.plan, plain.opts.yes = "", false
	var report bytes.Buffer
	if p.opts.output != outputText {
		plain.Out = &report
	}
	face := plain.newFace(ctx)
	job, err := p.app.AgentJob(ctx, launch.Run{
		Agent: of, Prompt: p.wish, Variables: variables, Given: p.agentVariables(), Model: p.opts.model, NoStream: p.opts.noStream,
		Events: p.app.Events(face.emitter), Asker: plain.asker(face, false),
	})
	if err == nil {
		_, err = p.app.Runs().Start(ctx, job)
	}
	err = face.close(err)
	p.result.Result = bytes.TrimSpace(report.Bytes())
	if p.outcome.Recorded {
		p.note("the plan is in " + dir + "; " + p.again("--yes"))
	}
	return err
}

// report takes a plan into the machine output.
func (p *planning) report(plan planner.Plan) {
	r := p.result
	r.Plan, r.Valid, r.Findings, r.Rounds, r.Usage, r.Run = plan.Draft, plan.Valid(), plan.Findings, planner.CorrectionCount(p.outcome.State), p.outcome.Usage, p.outcome.Run
	r.Nodes, r.Abilities, r.Price, r.Agent, r.Diff = []plannedNode{}, nil, nil, "", ""
	if p.changed != nil {
		r.Agent = p.changed.Name
		r.Diff = filesDiff(p.before, plan.Draft)
	}
	if plan.Agent.Graph == nil {
		return
	}
	r.Plan.Files = plan.Draft.Scripts(plan.Agent.Graph)
	r.Abilities, r.Price = plan.Abilities, &plan.Price
	for n := range plan.Agent.Graph.All() {
		r.Nodes = append(r.Nodes, plannedNode{n.Name, string(n.Type), draft.Does(n.Node)})
	}
}
