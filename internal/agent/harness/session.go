package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// open opens the session for a question and returns the prompt. What an attempt began is continued in its session, if the program can do that.
// begins reports whether the session is new.
func (t *talk) open(ctx context.Context, n int, last Session, sent bool) (prompt []acp.ContentBlock, begins bool, err error) {
	session, continued := t.a.Session, false
	if n > 0 {
		session, continued = last, sent
		session.Cost += t.bill.since
	}
	if session.ID != "" {
		t.bill.seen, t.normal = session.Cost, session.Mode
		opened, err := t.reopen(ctx, session.ID)
		if err != nil {
			return nil, false, err
		}
		switch {
		case opened && continued:
			const ask = "Your work on the last request was interrupted. See what of it is done, and finish it. Do not repeat what is done. The request was:\n\n"
			return []acp.ContentBlock{acp.Text(ask + t.a.User.Text())}, false, nil
		case opened && n > 0 && t.a.Session.ID == "":
			return t.blocks(t.sessionLead()), false, nil
		case opened:
			return t.blocks(""), false, nil
		}
	}
	lead := t.sessionLead()
	if continued {
		again, err := t.again(ctx, n)
		if err != nil {
			return nil, false, err
		}
		lead = strings.TrimSpace(lead + "\n\n" + again)
	}
	var answer acp.SessionResponse
	if err := t.openSession(ctx, acp.SessionNew, acp.NewSessionRequest{Cwd: t.p.Dir, MCPServers: t.servers}, &answer); err != nil {
		return nil, true, err
	}
	if answer.SessionID == "" {
		return nil, true, fault.New(fault.Tool, "agent %s: %s began a session without an id", t.p.Agent, t.p.Name)
	}
	t.bill.seen = 0 // before a report can come
	t.enter(answer.SessionID, answer)
	t.normal = ""
	return t.blocks(lead), true, nil
}

// openSession makes a call that opens a session. A program that asks for a login gets the one of its setting.
func (t *talk) openSession(ctx context.Context, method string, params, answer any) error {
	return within(ctx, sessionLimit, "a session of "+t.p.Name, func(ctx context.Context) error {
		err := t.conn.Call(ctx, method, params, answer)
		if e, ok := errors.AsType[*acp.Error](err); !ok || e.Code != acp.AuthRequired || t.p.Auth == "" {
			return err
		}
		if err := t.conn.Call(ctx, acp.Authenticate, acp.AuthenticateRequest{MethodID: t.p.Auth}, nil); err != nil {
			return err
		}
		return t.conn.Call(ctx, method, params, answer)
	})
}

// reopen opens a session that there was before, and reports whether the program has it.
func (t *talk) reopen(ctx context.Context, session string) (bool, error) {
	method := acp.SessionResume
	if t.can.AgentCapabilities.SessionCapabilities.Resume == nil {
		if method = acp.SessionLoad; !t.can.AgentCapabilities.LoadSession {
			return false, nil
		}
	}
	var answer acp.SessionResponse
	err := t.openSession(ctx, method, acp.LoadSessionRequest{SessionID: session, Cwd: t.p.Dir, MCPServers: t.servers}, &answer)
	if e, ok := errors.AsType[*acp.Error](err); ok && e.Code != acp.AuthRequired {
		return false, nil // it does not have the session any more
	}
	if err == nil {
		t.enter(session, answer)
	}
	return err == nil, err
}

// again decides about an attempt that cannot be continued, as the setting or the user says, and returns what the program needs to know of it.
func (t *talk) again(ctx context.Context, n int) (string, error) {
	answer := cmp.Or(t.a.Uncertain, t.p.OnUncertain, tool.Ask)
	if answer == tool.Ask {
		q := tool.UncertainQuestion(t.a.From, fmt.Sprintf("The work of agent %s was interrupted, and %s cannot continue its session. Begin again (retry), or leave it (skip)?", t.p.Agent, t.p.Name))
		q.ID = t.st.Key("uncertain") + "/call"
		said, err := t.a.Asker.Ask(ctx, q)
		if errors.Is(err, ask.ErrUnavailable) {
			err = fault.Wrap(fault.Suspended, err, "agent %s was interrupted in a session that is gone", t.p.Agent)
		}
		if err != nil {
			return "", err
		}
		answer = tool.Policy(said)
	}
	if answer != tool.Retry {
		return "", fault.New(fault.Failure, "agent %s was interrupted, and is not asked again", t.p.Agent)
	}
	var done []string
	for i := 1; i <= n; i++ {
		for k := 1; ; k++ {
			c, found, err := steps.ReadNote[finished](ctx, t.all.At(fmt.Sprint(i)), fmt.Sprintf("finished/%d", k))
			if err != nil {
				return "", err
			}
			if !found {
				break
			}
			done = append(done, "- "+text.OneLine(c.Title+" "+c.Input, 300))
		}
	}
	if len(done) == 0 {
		return "An earlier attempt at this request was interrupted before it finished a call of a tool.", nil
	}
	return "An earlier attempt at this request was interrupted. It finished these calls of tools, so see what is done first:\n" + strings.Join(done, "\n"), nil
}

// enter notes the session that was opened.
func (t *talk) enter(session string, answer acp.SessionResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.closed, t.offered = session, false, answer
}

// sessionNow is the session as it is kept.
func (t *talk) sessionNow() Session {
	s := t.bill.session(t.session)
	s.Mode = t.normal
	return s
}

// sessionLead returns what precedes the prompt in a session that begins.
func (t *talk) sessionLead() string {
	lead := t.a.Lead
	var said []string
	for _, m := range t.a.Earlier {
		if s := strings.TrimSpace(m.Text()); s != "" && m.Role != chat.System {
			who := "User"
			if m.Role != chat.User {
				who = "You"
			}
			said = append(said, who+": "+s)
		}
	}
	if len(said) > 0 {
		lead += "\n\nWhat was said before:\n\n" + strings.Join(said, "\n\n") + "\n\nNow the user says:"
	}
	return strings.TrimSpace(lead)
}

// blocks returns a prompt: what precedes it, and what the user says.
func (t *talk) blocks(lead string) []acp.ContentBlock {
	var list []acp.ContentBlock
	if lead != "" {
		list = append(list, acp.Text(lead))
	}
	for _, part := range t.a.User.Parts {
		switch {
		case part.Type == chat.TextPart && part.Text != "":
			list = append(list, acp.Text(part.Text))
		case part.Type == chat.ImagePart && t.can.AgentCapabilities.PromptCapabilities.Image:
			if kind, data, ok := imageOf(part); ok {
				list = append(list, acp.ContentBlock{Type: "image", MimeType: kind, Data: data})
			}
		}
	}
	return list
}

// planModes are the modes of programs in which they change nothing, by their ids.
var planModes = []string{"plan", "read-only"}

// chooseMode returns the mode that the session is set to, "" for none: in plan mode one of the program's own, if it has one, then again the one before.
func (t *talk) chooseMode(begins bool) string {
	current, known := t.modes()
	plan := slices.IndexFunc(planModes, func(id string) bool { return slices.Contains(known, id) })
	switch back := t.normal; {
	case t.p.Looks && plan >= 0:
		if current != planModes[plan] {
			t.normal = cmp.Or(back, current)
		}
		return planModes[plan]
	case back != "":
		t.normal = ""
		return cmp.Or(t.p.Mode, back)
	case begins:
		return t.p.Mode
	}
	return ""
}

// modes returns the mode of the session, and the ids of all that there are.
func (t *talk) modes() (current string, known []string) {
	if m := t.offered.Modes; m != nil {
		for _, one := range m.AvailableModes {
			known = append(known, one.ID)
		}
		return m.CurrentModeID, known
	}
	if o := t.findOption("mode"); o != nil {
		current, _ = o.CurrentValue.(string)
		for _, one := range o.Options {
			known = append(known, one.Value)
		}
	}
	return current, known
}

// configure sets the mode of the session and, in one that begins, the model and the options.
func (t *talk) configure(ctx context.Context, mode string, begins bool) error {
	return within(ctx, sessionLimit, "the settings of "+t.p.Name, func(ctx context.Context) error {
		if mode != "" {
			err := t.setMode(ctx, mode)
			if err != nil && !(t.p.Looks && slices.Contains(planModes, mode)) { // the kernel holds it all the same
				return err
			}
		}
		if !begins {
			return nil
		}
		if t.p.Model != "" {
			if err := t.option(ctx, "model", t.p.Model); err != nil {
				return err
			}
		}
		for _, id := range t.p.optionNames() {
			if err := t.option(ctx, id, t.p.Options[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

// setMode sets the mode of the session.
func (t *talk) setMode(ctx context.Context, id string) error {
	if t.offered.Modes == nil {
		return t.option(ctx, "mode", id)
	}
	if err := t.conn.Call(ctx, acp.SetMode, acp.SetModeRequest{SessionID: t.session, ModeID: id}, nil); err != nil {
		return t.unset("mode", id, err)
	}
	return nil
}

// findOption returns the option of the session with an id, else that of the category, nil for none.
func (t *talk) findOption(id string) (option *acp.ConfigOption) {
	for i, o := range t.offered.ConfigOptions {
		if o.ID == id || option == nil && o.Category == id {
			option = &t.offered.ConfigOptions[i]
		}
	}
	return option
}

// option sets an option of the session.
func (t *talk) option(ctx context.Context, id, to string) error {
	option := t.findOption(id)
	if option == nil {
		var known []string
		for _, o := range t.offered.ConfigOptions {
			known = append(known, o.ID)
		}
		return fault.New(fault.Config, "agent %s: %s has no setting %q", t.p.Agent, t.p.Name, id).WithHint("its settings are: %s", cmp.Or(strings.Join(known, ", "), "none"))
	}
	req := acp.SetConfigOptionRequest{SessionID: t.session, ConfigID: option.ID, Value: to}
	if option.Type == "boolean" {
		req.Type, req.Value = option.Type, to == "true"
	}
	if err := t.conn.Call(ctx, acp.SetConfigOption, req, nil); err != nil {
		return t.unset(id, to, err)
	}
	return nil
}

// unset returns the error of a setting that the program did not take.
func (t *talk) unset(id, to string, err error) error {
	e, ok := errors.AsType[*acp.Error](err)
	if !ok {
		return err
	}
	return fault.New(fault.Config, "agent %s: %s does not take %q as its %s: %s", t.p.Agent, t.p.Name, to, id, text.OneLine(text.Printable(e.Message), 200))
}
