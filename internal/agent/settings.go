package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"loki/internal/agent/harness"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/tool/permission"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
)

// setting is a key of config.yaml. What it may hold follows from the type of its field.
type setting struct {
	key   string
	field func(*Definition) any // a pointer to the field
	bound bool                  // it shows, bounds or keeps what the agent does, and does not change it
}

// settings are the keys in the order in which they are documented and shown.
var settings = []setting{
	{"name", func(d *Definition) any { return &d.Name }, true},
	{"description", func(d *Definition) any { return &d.Description }, true},
	{"version", func(d *Definition) any { return &d.Version }, true},
	{"harness", func(d *Definition) any { return &d.Harness }, false},
	{"model", func(d *Definition) any { return &d.Model }, false},
	{"temperature", func(d *Definition) any { return &d.Temperature }, false},
	{"top_p", func(d *Definition) any { return &d.TopP }, false},
	{"reasoning_effort", func(d *Definition) any { return &d.Effort }, false},
	{"agent_session", func(d *Definition) any { return &d.Session }, true},
	{"instructions", func(d *Definition) any { return &d.Instructions }, false},
	{"dynamic_instructions", func(d *Definition) any { return &d.Dynamic }, false},
	{"variables", func(d *Definition) any { return &d.Variables }, false},
	{"global_tools", func(d *Definition) any { return &d.GlobalTools }, false},
	{"mcp_servers", func(d *Definition) any { return &d.MCPServers }, false},
	{"documents", func(d *Definition) any { return &d.Documents }, false},
	{"conversation_starters", func(d *Definition) any { return &d.Starters }, true},
	{"environment", func(d *Definition) any { return &d.Environment }, false},
	{"permission", func(d *Definition) any { return &d.Permission }, true},
	{"sandbox", func(d *Definition) any { return &d.Sandbox }, false},
	{"hooks", func(d *Definition) any { return &d.Hooks }, false},
	{"compression_threshold", func(d *Definition) any { return &d.CompressionThreshold }, true},
	{"auto_continue", func(d *Definition) any { return &d.Todo.Enabled }, false},
	{"max_auto_continues", func(d *Definition) any { return &d.Todo.Max }, true},
	{"inject_todo_instructions", func(d *Definition) any { return &d.Todo.Inject }, false},
	{"continuation_prompt", func(d *Definition) any { return &d.Todo.Prompt }, false},
	{"workspace_instructions", func(d *Definition) any { return &d.WorkspaceInstructions }, true},
	{"skills", func(d *Definition) any { return &d.Skills }, true},
	{"memory", func(d *Definition) any { return &d.Memory }, true},
	{"mode", func(d *Definition) any { return &d.Mode }, true},
	{"can_spawn_agents", func(d *Definition) any { return &d.Team.CanSpawn }, false},
	{"spawnable_agents", func(d *Definition) any { return &d.Team.Spawnable }, false},
	{"max_concurrent_agents", func(d *Definition) any { return &d.Team.MaxConcurrent }, true},
	{"max_agent_depth", func(d *Definition) any { return &d.Team.MaxDepth }, true},
	{"inject_spawn_instructions", func(d *Definition) any { return &d.InjectSpawn }, false},
	{"summarization_model", func(d *Definition) any { return &d.Team.SummarizationModel }, false},
	{"summarization_threshold", func(d *Definition) any { return &d.Team.SummarizationThreshold }, false},
	{"escalation_timeout", func(d *Definition) any { return &d.Team.EscalationTimeout }, true},
	{"timeout", func(d *Definition) any { return &d.Team.Timeout }, true},
	{"idle_timeout", func(d *Definition) any { return &d.Team.IdleTimeout }, true},
	{"worktree", func(d *Definition) any { return &d.Worktree }, false},
	{"budget", func(d *Definition) any { return &d.Budget }, true},
	{"durability", func(d *Definition) any { return &d.Durability }, true},
	{"concurrency_key", func(d *Definition) any { return &d.Rules }, false}, // and what goes with it
}

// read reads a key into its field, which keeps its default if the key is absent or null. A
// list that is null has no elements: all its lines may be commented out.
func (d *Definition) read(m *yamldoc.Map, s setting) {
	switch field := s.field(d).(type) {
	case *string:
		m.Text(s.key, field)
	case **string:
		read := m.Text
		if s.key == "skills" {
			read = m.CommaList
		}
		optional(read, s.key, field)
	case *bool:
		m.Bool(s.key, field)
	case *int:
		m.Uint(s.key, field)
	case **int:
		optional(m.Uint, s.key, field)
	case **bool:
		optional(m.Bool, s.key, field)
	case *time.Duration:
		m.Span(s.key, field)
	case *[]string:
		if field == &d.Environment {
			*field = graph.ReadEnvironment(m)
			return
		}
		if n := m.Get(s.key); n != nil && n.Kind() == yamldoc.Null {
			*field = []string{}
		}
		m.Texts(s.key, field)
	case *graph.Durability:
		yamldoc.Choice(m, s.key, field, graph.DurabilityProcess, graph.DurabilityPower, graph.DurabilityOff)
	case *chat.Mode:
		var text string
		if m.Text(s.key, &text) {
			var err error
			if *field, err = chat.ParseFileMode(text); err != nil {
				m.Get(s.key).Errorf("%v", err)
			}
		}
	case *chat.Memory:
		var text string
		if m.Text(s.key, &text) {
			var err error
			if *field, err = chat.ParseMemory(text); err != nil {
				m.Get(s.key).Errorf("%v", err)
			}
		}
	case *chat.Effort:
		d.Sampling = graph.ReadSampling(m) // temperature and top_p, too
	case *[]graph.Variable:
		*field = graph.ReadVariables(m)
	case *graph.Budget:
		*field = graph.ReadBudget(m)
	case *gate.Rules:
		*field = graph.ReadOwnRules(m, d.Variables)
	case **graph.Worktree:
		*field = graph.ReadWorktree(m)
	case **harness.Setting:
		*field = harness.Read(m)
	case *sandbox.Declaration:
		*field, _ = sandbox.ReadDeclaration(m.Get(s.key)) // likewise, see permission
	case *permission.Rules:
		if n := m.Get(s.key); n != nil {
			*field, _ = permission.Read(n) // the error is one of the document, too
			d.permissions = n.FiniteValue()
		}
	case *[]hook.Hook:
		if n := m.Get(s.key); n != nil {
			*field, d.hooks = hook.Read(n, hook.AgentKinds()), n.FiniteValue()
		}
	}
}

func optional[T any](read func(string, *T) bool, key string, field **T) {
	var v T
	if read(key, &v) {
		*field = &v
	}
}

// value returns the value of a setting as files have it, null if it is not set. A list is null
// only if it means something else than an empty one.
func (s setting) value(d *Definition) value.Value {
	switch field := s.field(d).(type) {
	case *string:
		return value.OrNull(*field)
	case **string:
		return value.Optional(*field)
	case *bool:
		return value.Of(*field)
	case *int:
		return value.Of(*field)
	case **int:
		return value.Optional(*field)
	case **float64:
		return value.Optional(*field)
	case *time.Duration:
		return seconds(*field)
	case *[]string:
		if *field == nil || len(*field) == 0 && field != &d.Team.Spawnable {
			return value.Value{}
		}
		var items []value.Value
		for _, text := range *field {
			items = append(items, value.Of(text))
		}
		return value.ListOf(items...).Value()
	case *graph.Durability:
		return value.Of(string(*field))
	case *chat.Mode:
		return value.OrNull(string(*field))
	case *chat.Memory:
		return value.OrNull(string(*field))
	case *chat.Effort:
		return value.OrNull(string(*field))
	case *[]graph.Variable:
		return variablesValue(*field)
	case *graph.Budget:
		return budgetValue(*field)
	case **graph.Worktree:
		if *field != nil {
			return (*field).Written
		}
	case **harness.Setting:
		if *field != nil {
			return (*field).Written
		}
	case *permission.Rules:
		return d.permissions
	case *sandbox.Declaration:
		return field.Value()
	case *[]hook.Hook:
		return d.hooks
	}
	return value.Value{}
}

// seconds returns a whole number where it can.
func seconds(d time.Duration) value.Value {
	if d%time.Second == 0 {
		return value.Of(int64(d / time.Second))
	}
	return value.Of(d.Seconds())
}

func variablesValue(list []graph.Variable) value.Value {
	var items []value.Value
	for _, v := range list {
		members := []value.Member{{Name: "name", Value: value.Of(v.Name)}, {Name: "description", Value: value.Of(v.Description)}}
		if v.Default != nil {
			members = append(members, value.Member{Name: "default", Value: value.Of(*v.Default)})
		}
		items = append(items, value.ObjectOf(members...).Value())
	}
	if items == nil {
		return value.Value{}
	}
	return value.ListOf(items...).Value()
}

func budgetValue(b graph.Budget) value.Value {
	var members []value.Member
	if b.USD > 0 {
		members = append(members, value.Member{Name: "usd", Value: value.Of(b.USD)})
	}
	if b.Tokens > 0 {
		members = append(members, value.Member{Name: "tokens", Value: value.Of(b.Tokens)})
	}
	if b.Duration > 0 {
		members = append(members, value.Member{Name: "seconds", Value: seconds(b.Duration)})
	}
	if members == nil {
		return value.Value{}
	}
	return value.ObjectOf(members...).Value()
}

// Settings returns the settings that are set, by default or in the file, with their keys and
// values as files have them.
func (d *Definition) Settings() *value.Object {
	var members []value.Member
	for _, s := range settings {
		if v := s.value(d); !v.IsNull() {
			members = append(members, value.Member{Name: s.key, Value: v})
		}
	}
	return value.ObjectOf(members...)
}

// Fingerprint returns 16 hexadecimal digits that are the same for definitions that make agents
// do the same. It does not change with comments, formatting and defaults that are written out,
// nor with what only shows, bounds or records what the agent does. What is not in the
// definition, such as a script of tools, is not looked at.
func (d *Definition) Fingerprint() string {
	h := sha256.New()
	for _, s := range settings {
		if v := s.value(d); !s.bound && !v.IsNull() {
			text := v.String()
			fmt.Fprintf(h, "%s %d %s\n", s.key, len(text), text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Diff says in what old and next differ, one line for each difference, for people. It is empty
// exactly if both have the same [Definition.Fingerprint].
func Diff(old, next *Definition) []string {
	const longest = 80 // bytes up to which both values are shown
	var lines []string
	for _, s := range settings {
		was, is := s.value(old), s.value(next)
		switch before, after := was.String(), is.String(); {
		case s.bound || before == after:
		case was.IsNull():
			lines = append(lines, s.key+" was added")
		case is.IsNull():
			lines = append(lines, s.key+" was removed")
		case len(before)+len(after) <= longest && !strings.Contains(before+after, `\n`):
			lines = append(lines, fmt.Sprintf("%s changed from %s to %s", s.key, before, after))
		default:
			lines = append(lines, s.key+" changed")
		}
	}
	return lines
}
