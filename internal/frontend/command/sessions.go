package command

import (
	"context"
	"fmt"

	"loki/internal/base/text"
	"loki/internal/frontend/command/export"
)

func sessionCommands() []Command {
	return []Command{
		{Name: ".session", Args: "[NAME]", Help: "Enter or begin a session; no NAME: temporary", Group: Sessions, Offered: noSession, do: (*Console).session, complete: completeSession()},
		{Name: ".new", Help: "Begin a new conversation", Group: Sessions, Offered: always, do: (*Console).renew},
		{Name: ".empty session", Help: "Drop the messages of the session", Group: Sessions, Offered: begun, do: (*Console).emptySession},
		{Name: ".compress session", Help: "Replace older messages of the session by a recap", Group: Sessions, Offered: begun, do: (*Console).compressSession},
		{Name: ".info session", Help: "Show the session", Group: Sessions, Offered: inSession, do: (*Console).infoSession},
		{Name: ".edit session", Help: "Edit the settings of the session", Group: Sessions, Offered: inSession, do: (*Console).editSession},
		{Name: ".save session", Args: "[NAME]", Help: "Write the session to its files", Group: Sessions, Offered: inSession, do: (*Console).saveSession},
		{Name: ".fork", Args: "[NAME]", Help: "Continue in a copy of the session", Group: Sessions, Offered: begun, do: (*Console).fork},
		{Name: ".export", Args: "[FILE]", Help: "Show the session as a document, or write it", Group: Sessions, Offered: begun, do: (*Console).export},
		{Name: ".exit session", Help: "Leave the session", Group: Sessions, Offered: inSession, do: (*Console).exitSession},
	}
}

// session is for .session.
func (c *Console) session(ctx context.Context, name string) error {
	if c.Interactive && c.conv.CanName(ctx, name) {
		take, err := c.confirm(ctx, "Take what was said here into session "+name+"?", false)
		if err != nil || take {
			return c.nameSession(ctx, name, err)
		}
	}
	if err := c.conv.UseSession(ctx, name); err != nil {
		return err
	}
	if near := c.conv.LikelyName(ctx); near != "" {
		c.Out.Note(fmt.Sprintf("session %s is new; did you mean %s?", name, near))
	}
	if !c.Interactive || !c.conv.CanCarry() {
		return nil
	}
	carry, err := c.confirm(ctx, "Begin the session with the last question and its answer?", false)
	if err != nil || !carry {
		return ignoreUnasked(ctx, err)
	}
	return c.conv.Carry(ctx)
}

// nameSession makes what was said the session called name, unless asking for it failed.
func (c *Console) nameSession(ctx context.Context, name string, err error) error {
	if err != nil {
		return ignoreUnasked(ctx, err)
	}
	_, err = c.conv.SaveSession(ctx, name)
	return c.printUnless(err, "✓ Continuing in session "+name)
}

// renew is for .new.
func (c *Console) renew(ctx context.Context, _ string) error {
	return c.printUnless(c.conv.Renew(ctx), "✓ A new conversation begins")
}

// emptySession is for .empty session.
func (c *Console) emptySession(ctx context.Context, _ string) error {
	return c.printUnless(c.conv.EmptySession(ctx), "✓ The session has no messages any more")
}

// compressSession is for .compress session.
func (c *Console) compressSession(ctx context.Context, _ string) error {
	done := c.Busy("Compressing the session")
	compressed, err := c.conv.Compress(ctx)
	done()
	return c.printUnless(err, fmt.Sprintf("✓ Session compressed: %s became a recap, %d tokens are now %d", text.Count(compressed.Messages, "message"), compressed.Before, compressed.After))
}

// infoSession is for .info session.
func (c *Console) infoSession(context.Context, string) error {
	info, err := c.conv.SessionInfo()
	return c.printUnless(err, info)
}

// editSession is for .edit session.
func (c *Console) editSession(ctx context.Context, _ string) error {
	if c.conv.Session() == nil {
		return c.conv.NoSession()
	}
	if c.InMacro || c.Edit == nil {
		return c.open(ctx, "")
	}
	if _, err := c.conv.SaveSession(ctx, ""); err != nil {
		return err
	}
	if err := c.open(ctx, c.conv.SessionFile()); err != nil {
		return err
	}
	return c.conv.ReloadSession(ctx)
}

// saveSession is for .save session.
func (c *Console) saveSession(ctx context.Context, name string) error {
	name, err := c.conv.SaveSession(ctx, name)
	return c.printUnless(err, "✓ Session saved as "+name)
}

// fork is for .fork.
func (c *Console) fork(ctx context.Context, name string) error {
	if err := c.conv.Fork(ctx, name); err != nil {
		return err
	}
	c.Out.Print("✓ Continuing in session " + c.conv.Session().Name())
	return nil
}

// export is for .export.
func (c *Console) export(_ context.Context, file string) error {
	s := c.conv.Session()
	if s == nil {
		return c.conv.NoSession()
	}
	doc, err := export.Document(export.Session(s), export.Options{Format: export.FormatOf(file), Hide: c.App.Hide})
	if err != nil {
		return err
	}
	if file == "" {
		return c.printUnless(nil, string(doc))
	}
	return c.printUnless(export.Write(file, doc), "✓ Written: "+text.Visible(file))
}

// exitSession is for .exit session.
func (c *Console) exitSession(ctx context.Context, _ string) error { return c.conv.ExitSession(ctx) }
