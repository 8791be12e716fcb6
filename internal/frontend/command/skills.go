package command

import (
	"cmp"
	"context"
	"strings"

	"loki/internal/agent/workspace/skill"
	"loki/internal/frontend/command/display"
)

func skillCommands() []Command {
	return []Command{
		{Name: ".skill", Args: "NAME [TEXT]", Help: "Load a skill, and ask TEXT with it", Group: Tools, Offered: always, do: (*Console).skill, complete: first(completeSkill)},
		{Name: ".skills", Help: "List the skills for models here", Group: Tools, Offered: always, do: (*Console).skills},
	}
}

// skill is for .skill.
func (c *Console) skill(ctx context.Context, args string) error {
	name, text, _ := strings.Cut(args, " ")
	return c.send(ctx, strings.TrimSpace(text), nil, nil, "", name)
}

// completeSkill completes the name of a skill.
func completeSkill(c *Console, _ context.Context, _ []string) (found []Candidate) {
	of, _ := c.conv.Agent()
	for _, s := range skill.Usable(c.App.Skills(of.Dir).Find()) {
		found = append(found, Candidate{Value: s.Name, Description: s.Description, Space: true})
	}
	return found
}

// skills is for .skills.
func (c *Console) skills(context.Context, string) error {
	of, _ := c.conv.Agent()
	table, _ := display.Skills(c.App, of.Dir)
	return c.printUnless(nil, cmp.Or(table, display.NoSkills))
}
