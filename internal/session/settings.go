package session

import (
	"reflect"
	"time"

	"loki/internal/provider"
)

// Settings are what a session remembers beside its messages. The zero value of a field
// leaves it to the role, the agent or the configuration.
type Settings struct {
	Model             string // id of the chat model
	Temperature       *float64
	TopP              *float64
	Effort            provider.Effort
	EnabledTools      *string // comma list of tools and aliases, or "all"
	EnabledMCPServers *string // comma list of servers and aliases, or "all"

	SaveSession          *bool // false keeps nothing, true keeps everything; nil see [Session.Verdict]
	CompressionThreshold *int  // tokens, 0 for never

	AutoContinue           *bool
	MaxAutoContinues       *int
	InjectTodoInstructions *bool
	ContinuationPrompt     *string

	RoleName          string // the role in force when the session began
	AgentVariables    []Variable
	AgentInstructions *string // what the agent's instructions were when the session began
}

// Variable is a variable of an agent with its value.
type Variable struct{ Name, Value string }

// field is one setting: its key in files, and a pointer to it.
type field struct {
	key string
	ptr any // *string, *provider.Effort, **string, **float64, **bool, **int or *[]Variable
}

// fields lists the settings in the order in which files have them.
func (s *Settings) fields() []field {
	return []field{
		{"model", &s.Model},
		{"temperature", &s.Temperature},
		{"top_p", &s.TopP},
		{"reasoning_effort", &s.Effort},
		{"enabled_tools", &s.EnabledTools},
		{"enabled_mcp_servers", &s.EnabledMCPServers},
		{"save_session", &s.SaveSession},
		{"compression_threshold", &s.CompressionThreshold},
		{"auto_continue", &s.AutoContinue},
		{"max_auto_continues", &s.MaxAutoContinues},
		{"inject_todo_instructions", &s.InjectTodoInstructions},
		{"continuation_prompt", &s.ContinuationPrompt},
		{"role_name", &s.RoleName},
		{"agent_variables", &s.AgentVariables},
		{"agent_instructions", &s.AgentInstructions},
	}
}

// Equal reports whether all settings are the same.
func (s Settings) Equal(t Settings) bool { return reflect.DeepEqual(s, t) }

// clone returns a copy that shares nothing with s.
func (s Settings) clone() Settings {
	for _, f := range s.fields() {
		v := reflect.ValueOf(f.ptr).Elem()
		switch {
		case v.Kind() == reflect.Pointer && !v.IsNil():
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(v.Elem())
			v.Set(p)
		case v.Kind() == reflect.Slice && !v.IsNil():
			v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		}
	}
	return s
}

// merge returns theirs with what was changed from base to ours.
func merge(base, ours, theirs Settings) Settings {
	b, o := base.fields(), ours.fields()
	for i, f := range theirs.fields() {
		mine := reflect.ValueOf(o[i].ptr).Elem()
		if !reflect.DeepEqual(reflect.ValueOf(b[i].ptr).Elem().Interface(), mine.Interface()) {
			reflect.ValueOf(f.ptr).Elem().Set(mine)
		}
	}
	return theirs
}

// State is what is stored of a session beside its log.
type State struct {
	Settings Settings
	Alias    Alias             // "" if it has none
	Title    string            // what Loki called the conversation, "" if it has not
	Summary  string            // the last recap, for people; the log has the one that counts
	DataURLs map[string]string // SHA-256 of an image's data: URL, in lower-case hex, to the path or address it came from
	Created  time.Time
}
