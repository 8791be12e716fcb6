package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

func roleCommands() []Command {
	return []Command{
		{Name: ".prompt", Args: "TEXT", Help: "Set a temporary role made of a text", Group: Roles, Offered: canRole, do: (*Console).prompt},
		{Name: ".role", Args: "NAME [TEXT]", Help: "Enter a role, or create it; with TEXT ask it once", Group: Roles, Offered: canRole, do: (*Console).role, complete: completeRole()},
		{Name: ".info role", Help: "Show the role in force", Group: Roles, Offered: withRole, do: (*Console).infoRole},
		{Name: ".edit role", Help: "Edit the file of the role", Group: Roles, Offered: roleFree, do: (*Console).editRole},
		{Name: ".save role", Args: "[NAME]", Help: "Write the role to a file", Group: Roles, Offered: roleAlone, do: (*Console).saveRole},
		{Name: ".exit role", Help: "Leave the role", Group: Roles, Offered: roleFree, do: (*Console).exitRole},
	}
}

// prompt is for .prompt.
func (c *Console) prompt(ctx context.Context, text string) error { return c.conv.UsePrompt(ctx, text) }

// role is for .role.
func (c *Console) role(ctx context.Context, args string) error {
	name, text := cutWord(args)
	r, err := c.loadRole(name)
	if text != "" {
		if err != nil {
			return err
		}
		return c.chat(ctx, text, &r)
	}
	if fault.CodeOf(err) == fault.NotFound {
		r, err = c.newRole(ctx, name, err)
	}
	if err != nil {
		return err
	}
	return c.conv.UseRole(ctx, r)
}

// loadRole returns the role called name, and warns of what is wrong with its file.
func (c *Console) loadRole(name string) (role.Role, error) {
	r, problems, err := c.App.Roles().Load(name)
	c.warnOf(problems)
	return r, err
}

// warnOf shows what is wrong with a file.
func (c *Console) warnOf(problems []*yamldoc.Problem) {
	for _, p := range problems {
		c.Out.Warn(p.Text())
	}
}

// newRole has the user write the role called name, which is missing, unless a role cannot be
// entered anyway.
func (c *Console) newRole(ctx context.Context, name string, missing error) (r role.Role, err error) {
	if m := c.mode(); m.Agent || m.Session {
		return r, c.conv.UseRole(ctx, role.Role{Name: name}) // says why not
	}
	if c.InMacro || c.Edit == nil {
		return r, missing
	}
	question, near := "There is no role "+name, fault.HintOf(missing)
	if strings.HasPrefix(near, "did you mean") {
		question += "; " + near
	} else {
		question += "."
	}
	create, err := c.confirm(ctx, question+" Create it?", !strings.HasPrefix(near, "did you mean"))
	if err != nil || !create {
		return r, missing
	}
	file := c.App.Roles().File(name)
	if err := c.openNew(ctx, file, ""); err != nil {
		return r, err
	}
	return c.loadRole(name)
}

// openNew opens a file that may not exist yet in the user's editor. If the editor does not find a text
// in it, it has that of an empty file.
func (c *Console) openNew(ctx context.Context, file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fault.Wrap(fault.Failure, err, "creating %s", file)
	}
	if _, err := os.Stat(file); err != nil && text != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fault.Wrap(fault.Failure, err, "creating %s", file)
		}
	}
	if err := c.open(ctx, file); err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return fault.New(fault.NotFound, "%s was not written", file).WithHint("save the file in the editor")
	}
	return nil
}

// infoRole is for .info role.
func (c *Console) infoRole(context.Context, string) error {
	r, ok := c.conv.RoleInForce()
	if !ok {
		return errNoRole()
	}
	return c.printUnless(nil, r.Export())
}

func errNoRole() error {
	return fault.New(fault.Usage, "there is no role").WithHint("enter one: .role NAME")
}

// editRole is for .edit role.
func (c *Console) editRole(ctx context.Context, _ string) error {
	r, ok := c.conv.RoleInForce()
	switch {
	case !ok:
		return errNoRole()
	case c.mode().Session:
		return c.conv.UseRole(ctx, r) // says why not
	case r.Name == role.Temporary:
		return fault.New(fault.Usage, "a temporary role has no file").WithHint("save it first: .save role NAME")
	}
	if err := c.openNew(ctx, c.App.Roles().File(r.Name), r.Export()); err != nil {
		return err
	}
	r, err := c.loadRole(r.Name)
	if err != nil {
		return err
	}
	return c.conv.UseRole(ctx, r)
}

// saveRole is for .save role.
func (c *Console) saveRole(ctx context.Context, name string) error {
	if r, ok := c.conv.RoleInForce(); ok && name == "" && r.Name == role.Temporary {
		var err error
		if name, err = c.line(ctx, "Name of the role"); err != nil {
			return err
		}
	}
	file, err := c.conv.SaveRole(name)
	return c.printUnless(err, "✓ Role saved in "+file)
}

// exitRole is for .exit role.
func (c *Console) exitRole(ctx context.Context, _ string) error { return c.conv.ExitRole(ctx) }
