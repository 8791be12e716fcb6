package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/conversation"
	"loki/internal/frontend/cli/batch"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/tool/script/argc"
	"loki/internal/workflow/run"
)

// defaultJobs is how many rows of --map are asked at once.
const defaultJobs = 4

// mapRows asks the model once for each line of the file of --map.
func (c *command) mapRows(ctx context.Context) error {
	r, err := c.role()
	if err != nil {
		return err
	}
	form, err := c.form(ctx)
	if err != nil {
		return err
	}
	rows, err := c.rows(ctx, r, form)
	if err != nil {
		return err
	}
	if c.app.DryRun() {
		return c.showRows(ctx, rows, r, form)
	}
	answers, path, err := c.answers(ctx)
	if err != nil {
		return err
	}
	observer, observed := c.app.Observe(ctx)
	all := event.NewScope(event.Tee(observer, warnings(ctx)), event.Source{}, nil)
	each := func() event.Emitter { // rows are answered side by side
		row := all.With(func(s *event.Source) { s.Run = run.NewID() })
		return event.Func(func(ctx context.Context, ev event.Event) error { return row.Emit(ctx, ev.Body) })
	}
	p, err := batch.Run(governor.AtMost(ctx, governor.Low), rows, answers, c.opts.jobs, c.askRow(r, form, each), c.reportProgress)
	err = errors.Join(err, answers.Close())
	for _, w := range observed(context.WithoutCancel(ctx)) {
		c.warn(w)
	}
	if c.ErrTerminal {
		fmt.Fprint(c.Err, "\r\x1b[K")
	}
	cost := ""
	if p.Usage.Cost > 0 {
		cost = ", " + display.Cost(p.Usage)
	}
	fmt.Fprintf(c.Err, "%d of %d answered%s: %s\n", p.Before+p.Answered, p.Total, cost, path)
	if err == nil && p.Failed > 0 {
		hint := fmt.Sprintf("why is in %s; the same command asks for them again", path)
		if own := fault.HintOf(p.Err); own != "" {
			hint = own + "\n" + hint
		}
		err = fault.Wrap(fault.Provider, p.Err, "%d of %d rows failed", p.Failed, p.Total).WithHint("%s", hint)
	}
	return err
}

// dash is standard input or output where a file is named.
const dash = "-"

// answers opens where the answers of --map go, and names it for the user.
func (c *command) answers(ctx context.Context) (answers *batch.Answers, name string, err error) {
	path := c.opts.mapOut
	switch {
	case path == "" && c.opts.mapFile == dash:
		path = dash
	case path == "":
		path = strings.TrimSuffix(c.opts.mapFile, ".jsonl") + ".answers.jsonl"
	}
	if path == dash {
		return batch.Stream(c.Out), "standard output", nil
	}
	answers, err = batch.Open(ctx, path)
	return answers, path, err
}

// rows reads the file of --map. The text is the template for its lines. A model that
// cannot be asked is an error now, not one for each row.
func (c *command) rows(ctx context.Context, r *role.Role, form *conversation.Form) ([]batch.Row, error) {
	if err := c.noteText(ctx); err != nil {
		return nil, err
	}
	in, name := c.In, "standard input"
	if c.opts.mapFile != dash {
		f, err := userfile.Open(ctx, c.opts.mapFile)
		if err != nil {
			return nil, fault.Wrap(fault.NotFound, err, "the file of --map")
		}
		defer f.Close()
		in, name = f, c.opts.mapFile
	}
	conv, err := c.rowConversation(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	if _, err := c.app.Models.ChatModel(ctx, conv.Settings().Model); err != nil {
		return nil, err
	}
	under, err := c.under(conv.Settings(), form)
	if err != nil {
		return nil, err
	}
	rows, err := batch.Read(in, input.Text(c.opts.text, ""), under)
	if err != nil {
		hint := fault.HintOf(err)
		if c.opts.mapFile != dash {
			hint = strings.ReplaceAll(hint, "FILE", argc.Quote(name))
		}
		return nil, fault.New(fault.CodeOf(err), "%s: %v", name, err).WithHint("%s", hint)
	}
	return rows, nil
}

// under returns what answers depend on besides the prompts. The variables of a role are
// left as they are: the time in one does not make the answers other ones. Rows in files of
// answers are known by the hash of this text, so its form must not change.
func (c *command) under(s chat.Settings, form *conversation.Form) (string, error) {
	what := struct {
		Model                           string
		Temperature, TopP               *float64
		Effort                          chat.Effort
		EnabledTools, EnabledMCPServers *string
		Instructions, Template, Schema  string
		Code                            bool
	}{s.Model, s.Temperature, s.TopP, s.Effort, s.EnabledTools, s.EnabledMCPServers, "", "", "", c.opts.code}
	roles := c.app.Roles()
	roles.Variables = nil
	r, _, err := c.roleIn(roles)
	if err != nil {
		return "", err
	}
	if r != nil {
		what.Instructions, what.Template = r.Prompt, r.Template
	}
	if form != nil {
		what.Schema = form.Source()
	}
	data, err := json.Marshal(what)
	return string(data), err
}

// showRows prints what would be sent.
func (c *command) showRows(ctx context.Context, rows []batch.Row, r *role.Role, form *conversation.Form) error {
	screen := c.display().Screen()
	defer screen.Close()
	// The settings are the same for all.
	var observer event.Emitter = render.NewNarrator(screen, render.NarratorOptions{Quiet: c.opts.quiet, Verbose: c.opts.verbose})
	for _, row := range rows {
		conv, err := c.rowConversation(ctx, r, observer)
		observer = warnings(ctx)
		if err != nil {
			return err
		}
		a, err := conv.Ask(ctx, conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, row.Prompt)}, Form: form})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.Out, strings.TrimRight(a.Text, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// rowConversation begins the conversation of a row.
func (c *command) rowConversation(ctx context.Context, r *role.Role, observer event.Emitter) (*conversation.Conversation, error) {
	conv := c.app.Conversations().Begin(conversation.Options{
		Settings: c.opts.settings(), MaxOutputTokens: c.opts.sampling.maxOutput, NoStream: c.opts.noStream, Caller: conversation.Caller{Events: c.app.Events(observer), Yes: c.opts.yes}, Unrecorded: true, Workspace: new(false), Skills: new(skill.None), Memory: chat.MemoryOff,
		Rules: c.opts.doc.Rules,
	})
	if r == nil {
		return conv, nil
	}
	return conv, conv.UseRole(ctx, *r)
}

// warnings returns an emitter that passes what the program warns of on to the scope of ctx,
// where it is shown once for all rows, and drops what concerns a row alone.
func warnings(ctx context.Context) event.Emitter {
	all := event.FromContext(ctx)
	return event.Func(func(ctx context.Context, ev event.Event) error {
		if w, ok := ev.Body.(event.Warning); ok && w.Once {
			return all.Emit(ctx, w)
		}
		return nil
	})
}

// askRow returns what answers a row: a conversation and an observer of its own.
func (c *command) askRow(r *role.Role, form *conversation.Form, observer func() event.Emitter) batch.Ask {
	return func(ctx context.Context, row batch.Row) (batch.Record, error) {
		conv, err := c.rowConversation(ctx, r, observer())
		if err != nil {
			return batch.Record{}, err
		}
		a, err := conv.Ask(ctx, conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, row.Prompt)}, Code: c.opts.code, Form: form, Whole: true})
		rec := batch.Record{Model: a.Model, Stop: a.Stop, Usage: &a.Usage}
		if err != nil {
			rec.Text = c.hide(a.Text)
			return rec, c.hideIn(err)
		}
		answer := []byte(a.Text)
		if form == nil {
			answer, err = json.Marshal(a.Text)
		}
		rec.Answer = json.RawMessage(c.hide(string(answer)))
		return rec, err
	}
}

// reportProgress keeps a line on the terminal up to date.
func (c *command) reportProgress(p batch.Progress) {
	if c.ErrTerminal && !c.opts.quiet {
		fmt.Fprintf(c.Err, "\r\x1b[K%d of %d answered, %d failed", p.Before+p.Answered, p.Total, p.Failed)
	}
}
