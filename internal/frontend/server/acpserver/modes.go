package acpserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"loki/internal/agent/harness/acp"
	"loki/internal/conversation"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// The modes of sessions.
const (
	modeRead  = "read"
	modeAsk   = "ask"
	modeWrite = "write"
	modeAll   = "all"
)

// The settings of sessions.
const (
	optionMode   = "mode"
	optionModel  = "model"
	optionEffort = "thought_level"
	optionRole   = "role"
	optionAgent  = "agent"
	noValue      = "none"
	byDefault    = "default"
)

// modes returns the modes that the session may have, and its own.
func (s *sess) modes() *acp.SessionModeState {
	all := []acp.SessionMode{
		{ID: modeRead, Name: "Read", Description: "Nothing is changed, and commands only read"},
		{ID: modeAsk, Name: "Ask", Description: "You are asked about changes"},
		{ID: modeWrite, Name: "Write", Description: "Files of the workspace are edited, and commands run in its sandbox, without asking"},
	}
	if s.server.with.Yes {
		all = append(all, acp.SessionMode{ID: modeAll, Name: "All", Description: "Everything that no rule denies is done without asking"})
	}
	return &acp.SessionModeState{CurrentModeID: s.modeNow(), AvailableModes: all}
}

func (s *sess) modeNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// setMode changes the mode, at once. Path names the parameter that has it.
func (s *sess) setMode(id, path string) error {
	if !slices.ContainsFunc(s.modes().AvailableModes, func(m acp.SessionMode) bool { return m.ID == id }) {
		return acp.Invalid(path, fmt.Sprintf("there is no mode %q", id))
	}
	s.mu.Lock()
	s.mode = id
	s.mu.Unlock()
	if path == "modeId" {
		s.send(acp.ConfigOptions{Kind: acp.ConfigOptionsUpdate, ConfigOptions: s.options()})
	} else {
		s.send(acp.CurrentMode{Kind: acp.ModeUpdate, CurrentModeID: id})
	}
	return nil
}

// judge returns what decides about calls in the mode of the session.
func (s *sess) judge(inner tool.Judge) tool.Judge { return judge{inner, s} }

// rules are what decides about calls without the mode.
type rules = tool.Judge

type judge struct {
	rules
	of *sess
}

// Judge implements [tool.Judge].
func (j judge) Judge(call permission.Call) permission.Verdict {
	mode := j.of.modeNow()
	call.Readable = slices.Concat(call.Readable, j.of.place.dirs)
	plans := call.Mode == chat.ModePlan
	switch {
	case plans:
	case mode == modeRead:
		call.Mode = chat.ModePlan
	case mode == modeWrite, mode == modeAll:
		call.Mode = chat.ModeWrite
	}
	v := j.rules.Judge(call)
	edits := slices.Contains([]string{"fs_write", "fs_patch", "fs_mkdir"}, call.Tool)
	switch {
	case v.Action == permission.Deny && mode == modeRead && !plans:
		v.Reason += "; the mode of the session is read"
	case v.Action == permission.Deny, plans:
	case mode == modeAll:
		v.Action, v.Decided, v.Files = permission.Allow, true, true
	case mode == modeWrite && edits && !v.Decided:
		v.Action, v.Decided = permission.Allow, true
	}
	return v
}

// options returns the settings of the session, with what is chosen for the next prompt.
func (s *sess) options() []acp.ConfigOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.settings)
	for i := range list {
		if chosen, ok := s.chosen[list[i].ID]; ok {
			list[i].CurrentValue = chosen
		}
		if list[i].ID == optionMode {
			list[i].CurrentValue = s.mode
		}
	}
	return list
}

// refresh finds out the settings of the conversation. The caller has its turn.
func (s *sess) refresh() {
	of := func(id, name, category, now string, values ...acp.SelectOption) acp.ConfigOption {
		if !slices.ContainsFunc(values, func(o acp.SelectOption) bool { return o.Value == now }) {
			values = append(values, acp.SelectOption{Value: now, Name: now})
		}
		return acp.ConfigOption{Type: "select", ID: id, Name: name, Category: category, CurrentValue: now, Options: values}
	}
	named := func(names ...string) (list []acp.SelectOption) {
		for _, name := range names {
			list = append(list, acp.SelectOption{Value: name, Name: name})
		}
		return list
	}
	var modes []acp.SelectOption
	state := s.modes()
	for _, m := range state.AvailableModes {
		modes = append(modes, acp.SelectOption{Value: m.ID, Name: m.Name, Description: m.Description})
	}
	model := s.conv.Settings().Model
	if m, err := s.model(); err == nil {
		model = m.ID()
	}
	list := []acp.ConfigOption{of(optionMode, "Mode", "mode", state.CurrentModeID, modes...)}
	if s.record == nil {
		effort := cmp.Or(string(s.effort), string(s.conv.Settings().Effort), byDefault)
		list = append(list,
			of(optionModel, "Model", "model", model, named(s.app.Catalog.IDs(catalog.Chat)...)...),
			of(optionEffort, "Reasoning", "thought_level", effort, named(byDefault, string(chat.NoEffort), string(chat.MinimalEffort), string(chat.LowEffort), string(chat.MediumEffort), string(chat.HighEffort), string(chat.XHighEffort), string(chat.MaxEffort))...))
	}
	if _, with := s.conv.Agent(); !with {
		roles, _ := s.talks.Roles().Names() // without them there are none to choose
		role := s.conv.Role()
		if role == "" {
			role = noValue
		}
		list = append(list, of(optionRole, "Role", "", role, named(append([]string{noValue}, roles...)...)...))
	}
	if s.server.with.Agent == "" && s.record == nil && s.storedSession().Empty() {
		agents, _ := s.app.Agents.Names()
		agent := noValue
		if in, ok := s.conv.Agent(); ok {
			agent = in.Name
		}
		list = append(list, of(optionAgent, "Agent", "", agent, named(append([]string{noValue}, agents...)...)...))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = list
}

// setOption changes a setting. While a prompt is at work, all but the mode change with the next one.
func (s *sess) setOption(ctx context.Context, p *acp.SetConfigOptionRequest) acp.Answer {
	value, _ := p.Value.(string)
	options := s.options()
	i := slices.IndexFunc(options, func(o acp.ConfigOption) bool { return o.ID == p.ConfigID })
	now := func() (any, error) { return acp.SetConfigOptionResponse{ConfigOptions: s.options()}, nil }
	switch {
	case i < 0:
		return failure(acp.Invalid("configId", fmt.Sprintf("there is no setting %q", p.ConfigID)))
	case !slices.ContainsFunc(options[i].Options, func(o acp.SelectOption) bool { return o.Value == value }):
		return failure(acp.Invalid("value", fmt.Sprintf("%v is no value of %s", p.Value, p.ConfigID)))
	case p.ConfigID == optionMode:
		return func() (any, error) {
			if err := s.setMode(value, "value"); err != nil {
				return nil, err
			}
			return now()
		}
	}
	s.mu.Lock()
	busy := len(s.work) > 0
	if busy {
		s.chosen[p.ConfigID] = value
		s.changes = append(s.changes, func(ctx context.Context) error { return s.set(ctx, p.ConfigID, value) })
	}
	s.mu.Unlock()
	if busy {
		return now
	}
	return s.enqueue(ctx, func(ctx context.Context) (any, error) {
		if err := s.set(ctx, p.ConfigID, value); err != nil {
			return nil, clientError(err)
		}
		s.refresh()
		return now()
	})
}

// set changes a setting of the conversation. The caller has its turn.
func (s *sess) set(ctx context.Context, id, value string) error {
	switch id {
	case optionModel:
		return s.conv.SetModel(ctx, value)
	case optionEffort:
		if s.effort = chat.Effort(value); value == byDefault {
			s.effort = ""
		}
		return nil
	case optionRole:
		if value == noValue {
			return s.conv.ExitRole(ctx)
		}
		return s.useRole(ctx, value)
	}
	if err := s.conv.DetachAgent(ctx); err != nil || value == noValue {
		return err
	}
	who, err := s.talks.Agent(ctx, value, nil, conversation.Caller{Asker: s})
	switch {
	case err != nil:
		return err
	case who.Job == nil:
		return s.conv.AttachAgent(ctx, value, nil)
	}
	return s.useGraph(ctx, who)
}

// useGraph makes the session, in which nothing was said, one of a graph.
func (s *sess) useGraph(ctx context.Context, who conversation.Agent) error {
	store, err := s.app.Sessions()
	if err != nil {
		return err
	}
	id, from := s.storedSession().ID(), s.storedSession().Scope()
	if err := s.conv.ExitSession(ctx); err != nil {
		return err
	}
	if err := s.conv.UseAgent(ctx, who); err != nil {
		return err
	}
	if err := store.Move(ctx, from, id, who.Scope); err != nil {
		return err
	}
	s.record, err = store.Open(ctx, who.Scope, id)
	return err
}

// change makes the changes of settings that were made while the prompt before was at work. The caller has the turn.
func (s *sess) change(ctx context.Context) {
	s.mu.Lock()
	changes := s.changes
	s.changes, s.chosen = nil, make(map[string]string)
	s.mu.Unlock()
	for _, do := range changes {
		if err := do(ctx); err != nil {
			s.view.notice("warning", withHint(err))
		}
	}
	s.refresh()
	if len(changes) > 0 {
		s.send(acp.ConfigOptions{Kind: acp.ConfigOptionsUpdate, ConfigOptions: s.options()})
	}
}
