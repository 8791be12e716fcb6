package display

import (
	"fmt"
	"strings"

	"loki/internal/agent/workspace/skill"
	"loki/internal/app"
	"loki/internal/base/text"
)

// Skill is a skill in a list, with what is wrong with it.
type Skill struct {
	skill.Skill
	Findings []string `json:"findings,omitempty"`
}

// NoSkills says that there are no skills here.
const NoSkills = "there are no skills here: write .agents/skills/NAME/SKILL.md in this directory, or in your home directory"

// Skills returns the skills for work in the working directory, with those of the agent in a directory, "" for none, as a table with
// what is wrong with them and as a list for programs.
func Skills(a *app.App, agent string) (table string, list []Skill) {
	list = []Skill{}
	var findings strings.Builder
	for _, s := range a.Skills(agent).Find() {
		one := Skill{Skill: s}
		for _, p := range s.Findings {
			one.Findings = append(one.Findings, p.Text())
			fmt.Fprintf(&findings, "%s\n", text.Visible(p.Text()))
		}
		list = append(list, one)
	}
	return List(nil, list, func(s Skill) []string {
		return []string{text.Visible(s.Name), string(s.State), text.Visible(s.Source), text.OneLine(text.Visible(s.Description), 60)}
	}) + findings.String(), list
}
