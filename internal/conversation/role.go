package conversation

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// UseRole puts r in force, in place of another role. In a session that has messages already it is
// an error with code Usage, as their instructions are part of them.
func (c *Conversation) UseRole(ctx context.Context, r role.Role) error {
	if c.agent != nil {
		return fault.New(fault.Usage, "agent %s has instructions of its own, so it takes no role", c.agent.Name).
			WithHint("leave the agent first: .exit agent")
	}
	if err := c.mayChangeRole(ctx); err != nil {
		return err
	}
	return c.change(ctx, func() {
		if in := c.enteredSession(); in != nil {
			in.Set(func(s *session.Settings) {
				s.RoleName = r.Name
				s.Settings = r.Settings.Over(chat.Settings{Model: s.Model, Sampling: s.Sampling})
			})
		}
		c.role = &r
	})
}

// mayChangeRole returns the error of a session that has messages, whose role stays. One without a name is left.
func (c *Conversation) mayChangeRole(ctx context.Context) error {
	switch {
	case c.session == nil || c.session.Empty():
		return nil
	case c.passes():
		return c.setAside(ctx)
	}
	hint := "begin another session, or empty this one first: loki -s %s --empty-session ..."
	if c.options.Interactive {
		hint = "leave session %s first with .exit session, or empty it with .empty session"
	}
	return fault.New(fault.Usage, "session %s has messages, so it keeps the role it began with", c.session.Name()).
		WithHint(hint, c.session.Name())
}

// UsePrompt puts the temporary role of a text in force, which may have front matter.
func (c *Conversation) UsePrompt(ctx context.Context, text string) error {
	r, problems, err := c.service.Roles().FromText(text)
	if err := c.warnOf(ctx, problems); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return c.UseRole(ctx, r)
}

// ExitRole takes the role out of force. Without a role it does nothing. In a session that has
// messages it is an error with code Usage.
func (c *Conversation) ExitRole(ctx context.Context) error {
	if c.agent != nil || c.Role() == "" && c.role == nil {
		return nil
	}
	if err := c.mayChangeRole(ctx); err != nil {
		return err
	}
	return c.change(ctx, func() {
		r := c.role
		c.role = nil
		in := c.enteredSession()
		if in == nil {
			return
		}
		in.Set(func(s *session.Settings) {
			if s.RoleName = ""; r != nil {
				withoutRole(&s.Settings, r.Settings, c.values.settings)
			}
		})
	})
}

// withoutRole sets what of s is as a role says to what is below it.
func withoutRole(s *chat.Settings, role, below chat.Settings) {
	own, base := role.List(), below.List()
	for i, f := range s.List() {
		said, set := own[i].Value()
		now, _ := f.Value()
		if (set || strings.HasPrefix(f.Key, "enabled_")) && now == said {
			reflect.ValueOf(f.Ptr).Elem().Set(reflect.ValueOf(base[i].Ptr).Elem())
		}
	}
}

// Role returns the name of the role in force: in a session that of the session; "" for none and
// with an agent.
func (c *Conversation) Role() string {
	switch {
	case c.agent != nil:
		return ""
	case c.enteredSession() != nil:
		return c.session.Settings().RoleName
	case c.role != nil:
		return c.role.Name
	}
	return ""
}

// RoleInForce returns the role in force with the settings that were changed since it was entered,
// or that a session began with it has; ok is false without a role.
func (c *Conversation) RoleInForce() (r role.Role, ok bool) {
	if c.agent != nil || c.role == nil {
		return role.Role{}, false
	}
	r = *c.role
	if c.enteredSession() != nil {
		r.Settings = c.session.Settings().Settings
	}
	return r, true
}

// SaveRole writes the role in force, with the settings that were changed since it was entered, to
// the file of the role called name, which becomes its name; "" means its own name. It returns
// the path of the file. A temporary role needs a name.
func (c *Conversation) SaveRole(name string) (file string, err error) {
	if c.role == nil || c.enteredSession() != nil || c.agent != nil {
		return "", fault.New(fault.Usage, "there is no role to save").WithHint("enter one outside of sessions: .role NAME, or .prompt TEXT")
	}
	if name == "" {
		name = c.role.Name
	}
	if name == role.Temporary || strings.Contains(name, "#") || !filepath.IsLocal(name) {
		return "", fault.New(fault.Usage, "%q cannot be the name of a role that is saved", name).WithHint(".save role NAME")
	}
	file = c.service.Roles().File(name)
	if err := atomicfile.Write(file, []byte(c.role.Source().Export()), atomicfile.Options{}); err != nil {
		return "", fault.Wrap(fault.Failure, err, "saving role %s", name)
	}
	r := *c.role
	r.Name, r.File = name, file
	c.role = &r
	return file, nil
}

// useRole puts the role called name in force, and warns of what is wrong with its file.
func (c *Conversation) useRole(ctx context.Context, name string) error {
	r, problems, err := c.service.Roles().Load(name)
	if err := c.warnOf(ctx, problems); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return c.UseRole(ctx, r)
}

// warnOf warns of what is wrong with a role.
func (c *Conversation) warnOf(ctx context.Context, problems []*yamldoc.Problem) error {
	for _, p := range problems {
		if err := c.options.Events.Emit(ctx, event.Warning{Text: p.Text()}); err != nil {
			return err
		}
	}
	return nil
}
