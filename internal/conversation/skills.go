package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/workspace/skill"
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/tool/permission"
)

// skillsRecord is what the model was offered of skills, for the record of a question.
type skillsRecord struct {
	Text  string   `json:"text,omitempty"` // in the system message
	Names []string `json:"names"`
}

// fromWorkspace returns what a question of the conversation wants of the workspace, but for the settings.
func (c *Conversation) fromWorkspace() FromWorkspace {
	w := FromWorkspace{Caller: c.options.Caller}
	if c.agent != nil {
		w.AgentDir, w.Dir = c.agent.Dir, c.agent.Workdir
	}
	return w
}

// wantsSkills returns the setting of the skills that the question gets.
func (t *turn) wantsSkills() string {
	c := t.c
	own := t.q.Settings.Skills
	if c.agent != nil {
		own = cmp.Or(c.tuned.Skills, c.agent.InForce.Skills, c.values.settings.Skills)
	}
	switch wanted := cmp.Or(c.options.Skills, own); {
	case !t.kit.Calling || !t.calls:
		return skill.None
	case wanted != nil:
		return *wanted
	case t.worksInFiles():
		return skill.All
	}
	return skill.None
}

// offer gives the model the list of skills and the tool that loads them. A resumed question has the list on record.
func (t *turn) offer(ctx context.Context, all []skill.Skill, setting string) {
	if t.resumed == nil {
		l, list, unknown := skill.Offer(all, setting, t.c.service.SkillTokens)
		for _, name := range unknown {
			t.c.warn(ctx, fmt.Errorf("skills: %s", skill.NotFound(name, all)))
		}
		if l != nil {
			t.q.Skills = &skillsRecord{list, l.Offered}
		}
	}
	if t.q.Skills == nil && len(t.q.Loaded) == 0 || !t.kit.Calling || !t.calls {
		return
	}
	t.loader = &skill.Loader{Skills: skill.Usable(all)}
	if t.q.Skills != nil {
		t.loader.Offered = t.q.Skills.Names
	}
	if c := t.kit.Calls; c.Judge != nil && c.AtMost == "" && !c.AutoConfirm && slices.ContainsFunc(t.loader.Skills, func(s skill.Skill) bool { return len(s.AllowedTools) > 0 }) {
		t.loader.Allow = t.allowTools
	}
}

// allowTools asks the user whether the tools that a skill lists may be run without asking.
func (t *turn) allowTools(ctx context.Context, s skill.Skill) error {
	grants, err := s.Allow(ctx, skill.Consent{
		Asker: t.c.options.Asker, From: t.from(), For: "session", Asked: &t.c.allowed, Kept: t.c.service.SkillTools, Warn: func(err error) { t.c.warn(ctx, err) },
	})
	if err != nil || len(grants) == 0 {
		return err
	}
	return t.kit.Calls.Judge.Remember(ctx, permission.Session, grants)
}

// LoadSkills adds the texts of skills to what the user asks. An unknown name is an error with code NotFound.
func (c *Conversation) LoadSkills(ctx context.Context, names []string, q *Asked) error {
	if len(names) == 0 {
		return nil
	}
	if c.service.Workspace == nil {
		return fault.New(fault.Usage, "there are no skills here")
	}
	w := c.fromWorkspace()
	w.Skills = strings.Join(names, ",")
	_, all, err := c.service.Workspace(ctx, w)
	if err != nil {
		return err
	}
	usable := skill.Usable(all)
	blocks := []string{q.User.Text()}
	if strings.TrimSpace(blocks[0]) == "" {
		blocks[0] = "Follow the skill " + strings.Join(names, ", ") + "."
		q.Text = cmp.Or(strings.TrimSpace(q.Text), blocks[0])
	}
	for _, name := range names {
		i := slices.IndexFunc(usable, func(s skill.Skill) bool { return s.Name == name })
		if i < 0 && slices.ContainsFunc(all, func(s skill.Skill) bool { return s.Name == name }) {
			return fault.New(fault.NotFound, "the skill %s cannot be used", name).WithHint("loki --list skills says why")
		}
		if i < 0 {
			return fault.New(fault.NotFound, "%s", skill.NotFound(name, usable)).WithHint("loki --list skills lists them")
		}
		blocks = append(blocks, usable[i].Block())
		q.Loaded = append(q.Loaded, usable[i].Event("user"))
	}
	parts := slices.DeleteFunc(slices.Clone(q.User.Parts), func(p chat.Part) bool { return p.Type == chat.TextPart })
	q.User = chat.Text(chat.User, strings.Join(blocks, "\n\n"))
	q.User.Parts = append(q.User.Parts, parts...)
	return nil
}

// tellLoaded emits which skills the user loaded with the question.
func (t *turn) tellLoaded(ctx context.Context) error {
	if t.resumed != nil {
		return nil
	}
	for _, loaded := range t.q.Loaded {
		if t.loader != nil && t.loader.Allow != nil {
			if err := t.loader.AllowFor(ctx, loaded.Name); err != nil {
				return err
			}
		}
		if err := t.rc.Events.Emit(ctx, loaded); err != nil {
			return err
		}
	}
	return nil
}
