package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/validate"
	"loki/internal/agent/workspace/trust"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw"
)

// graphFormats are the forms in which --graph draws.
var graphFormats = []string{"mermaid", "dot", "svg", "text"}

// findingsError says that findings were printed as the result of a command.
type findingsError struct{ count int }

func (e *findingsError) Error() string { return fmt.Sprintf("%d errors were found", e.count) }

func isFindings(err error) bool {
	_, ok := errors.AsType[*findingsError](err)
	return ok
}

// validation is the result of --validate in machine output.
type validation struct {
	Agent   string   `json:"agent"`
	File    string   `json:"file"`
	Valid   bool     `json:"valid"`
	Trusted bool     `json:"trusted"`
	Wants   []string `json:"wants,omitempty"`   // beyond reading in the sandbox
	Changes []string `json:"changes,omitempty"` // since it was trusted
	// Abilities are what it may do; none for a definition that cannot be read.
	Abilities []validate.Ability `json:"abilities,omitempty"`
	Findings  graph.Findings     `json:"findings"`

	notice string // about the trust in it; empty for the user's own
}

// validate checks an agent's definition, or skills, and prints everything that was found.
func (c *command) validate(ctx context.Context) error {
	if skills := c.skillsAt(c.opts.validate); len(skills) > 0 {
		return c.validateSkills(skills)
	}
	ref, err := c.app.Agents.Find(c.opts.validate)
	switch {
	case err != nil:
		return err
	case c.opts.watch:
		return c.validateOnChange(ctx, ref)
	}
	return c.validateOnce(ctx, ref)
}

func (c *command) validateOnce(ctx context.Context, ref agent.Ref) (err error) {
	v := validation{Agent: ref.Name}
	if v.File, err = c.app.Agents.File(ref); err != nil {
		return err
	}
	v.File = c.app.DisplayPath(v.File)
	v.Findings, err = c.findings(ctx, ref)
	if err != nil {
		return err
	}
	if of, _, err := c.app.Agents.Load(ref); err == nil {
		v.Abilities = c.app.Validator().Abilities(ctx, of)
	}
	v.trust(c.app.Trust.OfRef(ctx, ref))
	if c.opts.strict {
		v.Findings = v.Findings.Strict()
	}
	failed := len(v.Findings.Errors())
	v.Valid = failed == 0
	if err := c.printValidation(v); err != nil || v.Valid {
		return err
	}
	return &fault.Error{Code: fault.Config, Err: &findingsError{failed}}
}

// trust sets what there is to say about the trust in the agent.
func (v *validation) trust(t trust.Status) {
	v.Trusted, v.Wants, v.Changes = t.Trusted, t.Wants, t.Changes
	switch {
	case t.Own:
		return
	case t.Err != nil:
		v.notice = fmt.Sprintf("not trusted, and cannot be: %v", t.Err)
	case t.Trusted:
		v.notice = "trusted as it is now"
	case len(t.Changes) > 0:
		v.notice = "not trusted any more: " + strings.Join(t.Changes, ", ")
	case len(t.Wants) == 0: // it is not asked about
		return
	default:
		v.notice = "not trusted"
	}
	if len(t.Wants) > 0 {
		v.notice += "; it asks to " + strings.Join(t.Wants, "; ")
	}
	if t.Err == nil && !t.Trusted {
		v.notice += "; review it, then trust it: loki --trust " + text.Word(filepath.Dir(v.File))
	}
}

// findings are those of the parser and, if it could read the file, of the validator, in the order of the text.
func (c *command) findings(ctx context.Context, ref agent.Ref) (graph.Findings, error) {
	of, warnings, err := c.app.Agents.Load(ref)
	if err != nil {
		found := graph.ErrorFindings(err)
		if found == nil {
			return nil, err
		}
		return append(found, warnings...).InOrder(), nil
	}
	return append(warnings, c.app.Validator().Findings(ctx, of, nil)...).InOrder(), nil
}

func (c *command) printValidation(v validation) error {
	dir, _ := os.Getwd() // without one, the path is absolute
	shown, place := display.Line(v.File), render.Place(dir, v.File)
	if c.opts.output == outputGitHub || c.opts.output == outputSARIF {
		for i, f := range v.Findings {
			if f.File != "" {
				v.Findings[i].File = render.Place(dir, f.File)
			}
		}
	}
	switch c.opts.output {
	case outputText:
		render.Findings(c.Out, v.File, v.Findings, c.outColor())
	case outputGitHub:
		shown = place
		if err := render.GitHub(c.Out, place, v.Findings); err != nil {
			return err
		}
	case outputSARIF:
		return render.SARIF(c.Out, place, v.Findings, app.Version)
	default:
		if v.Findings == nil {
			v.Findings = graph.Findings{}
		}
		return printJSON(c.Out, v)
	}
	errs, warnings := len(v.Findings.Errors()), len(v.Findings.Warnings())
	summary := fmt.Sprintf("%s and %s in %s", text.Count(errs, "error"), text.Count(warnings, "warning"), shown)
	if errs+warnings == 0 {
		summary = shown + " is valid"
	}
	if _, err := fmt.Fprintln(c.Out, summary); err != nil || c.opts.watch || c.opts.output == outputGitHub {
		return err
	}
	if v.notice != "" {
		fmt.Fprintln(c.Out, c.hide(text.Visible(v.notice)))
	}
	if rows := c.abilities(v.Abilities); len(rows) > 0 {
		fmt.Fprintf(c.Out, "what it may do:\n%s", display.Fit(c.hide(display.Table(rows)), c.outWidth()))
		if box, err := c.app.Sandbox(); err == nil && !box.Support().Files {
			fmt.Fprintf(c.Out, "there is no sandbox here, so that no level is held: %s\n", box.Support().Missing)
		}
	}
	return nil
}

// abilities returns a table of what an agent may do.
func (c *command) abilities(list []validate.Ability) [][]string {
	var rows [][]string
	for _, a := range list {
		what := ""
		switch {
		case a.Withheld:
			what = "not until the agent is trusted"
		case a.Kind == "agent":
			if what = "what it may do itself"; a.Most != "" {
				what = "at most " + string(a.Most)
			}
		case a.Kind == "document":
			what = "is read, and models get passages of it"
		case a.Kind == "environment":
			what = "for its scripts, or its program"
		case a.Level == "":
			what = "starts no program"
		case a.Most == sandbox.Read:
			what = "read, never more"
		case a.Most != "":
			what = "read, with your consent at most " + string(a.Most)
		default:
			what = sandbox.Declaration{Level: a.Level, Hosts: a.Hosts, Read: a.Read, Write: a.Write}.String()
		}
		if a.Declared != "" {
			what += ", declares " + a.Declared
		}
		rows = append(rows, []string{" ", a.Kind, a.Name, a.Of, what})
	}
	return rows
}

// drawGraph prints a drawing of an agent's graph.
func (c *command) drawGraph(context.Context) error {
	of, _, err := c.graphAgent(c.opts.graph, "draw")
	if err != nil {
		return err
	}
	g, depth := of.Graph, c.opts.depth
	var drawing string
	switch c.opts.format {
	case "mermaid":
		drawing = draw.Mermaid(g, depth)
	case "dot":
		drawing = draw.DOT(g, depth)
	case "svg":
		drawing = string(draw.SVG(g, draw.SVGOptions{Standalone: true, Depth: depth}))
	default:
		drawing = draw.Text(g, helpWidth(c.Out), depth)
	}
	_, err = io.WriteString(c.Out, drawing)
	return err
}

// printSchema prints the JSON Schema of a definition.
func (c *command) printSchema(context.Context) error {
	_, err := c.Out.Write(graph.JSONSchema())
	return err
}

// warnFinding prints a warning about an agent that is going to run.
func (c *command) warnFinding(file string, f graph.Finding) {
	text := f.Message
	if f.Line > 0 {
		text = fmt.Sprintf("%s:%d:%d: %s", cmp.Or(f.File, file), f.Line, f.Column, f.Message)
	}
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	c.warn(text)
}
