package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"loki/internal/agent/workspace/skill"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/workflow/graph"
)

// listSkills lists the skills for work in this directory, with -a those of an agent, too.
func (c *command) listSkills(context.Context) error {
	dir := ""
	if c.opts.agent != "" {
		ref, err := c.app.Agents.Find(c.opts.agent)
		if err != nil {
			return err
		}
		dir = ref.Dir
	}
	table, list := display.Skills(c.app, dir)
	return printList(c, list, display.NoSkills, table)
}

// skillsAt returns the skills in a directory that is no agent, none if it has none.
func (c *command) skillsAt(dir string) []skill.Skill {
	if !isDirectory(dir) {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	if _, err := c.app.Agents.File(c.app.Agents.At(dir, dir)); fault.CodeOf(err) != fault.NotFound {
		return nil
	}
	return skill.At(dir)
}

// skillValidation is the result of --validate for a skill in machine output.
type skillValidation struct {
	Skill    string         `json:"skill"`
	File     string         `json:"file"`
	Valid    bool           `json:"valid"`
	Findings graph.Findings `json:"findings"`
}

// validateSkills checks skills strictly: each finding is an error, and each note a warning.
func (c *command) validateSkills(skills []skill.Skill) error {
	var list []skillValidation
	var all graph.Findings
	dir, _ := os.Getwd() // without one, paths are absolute
	for _, s := range skills {
		v := skillValidation{Skill: s.Name, File: filepath.Join(s.Dir, skill.File), Findings: graph.Findings{}}
		notes := graph.ErrorFindings(yamldoc.Problems(s.Notes))
		for i := range notes {
			if !c.opts.strict {
				notes[i].Severity = graph.SeverityWarning
			}
		}
		for _, f := range append(graph.ErrorFindings(yamldoc.Problems(s.Findings)), notes...) {
			f.File = render.Place(dir, v.File)
			v.Findings = append(v.Findings, f)
		}
		v.Valid = len(v.Findings.Errors()) == 0
		list, all = append(list, v), append(all, v.Findings.InOrder()...)
	}
	var err error
	switch c.opts.output {
	case outputText:
		render.Findings(c.Out, "", all, c.outColor())
		for _, v := range list {
			if v.Valid {
				fmt.Fprintln(c.Out, display.Line(render.Place(dir, v.File))+" is valid")
			}
		}
	case outputGitHub:
		err = render.GitHub(c.Out, "", all)
	case outputSARIF:
		err = render.SARIF(c.Out, "", all, app.Version)
	default:
		err = printJSON(c.Out, list)
	}
	failed := len(all.Errors())
	if err != nil || failed == 0 {
		return err
	}
	if c.opts.output == outputText {
		fmt.Fprintf(c.Out, "%s in %s\n", text.Count(failed, "error"), text.Count(len(list), "skill"))
	}
	return &fault.Error{Code: fault.Config, Err: &findingsError{failed}}
}
