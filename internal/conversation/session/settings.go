package session

import (
	"reflect"
	"slices"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/service/auth"
)

// Settings are what a session remembers beside its messages. The zero value of a field
// leaves it to the role, the agent or the configuration.
type Settings struct {
	chat.Settings

	SaveSession          *bool // false keeps nothing, true keeps everything; nil see [Session.Verdict]
	CompressionThreshold *int  // tokens, 0 for never

	Knowledge         string // name of the knowledge base that questions are answered from; "" for none
	RoleName          string // the role in force when the session began
	Directory         string // in which an editor works in it, absolute; "" for a session of no editor
	Untrusted         string // what the conversation has read that others wrote, "" for nothing; see the memory
	Plan              string // the plan that was accepted last, in Markdown; "" for none
	Todo              string // the todo list of the model, in JSON; "" for an empty one
	AgentVariables    []Variable
	AgentInstructions *string // what the agent's instructions were when the session began
	Worktree          string  // name of the worktree in which its agent works; "" for none
	Foreign           string  // the session of the program of others that is the agent, in JSON; "" for none
}

// Variable is a variable of an agent with its value.
type Variable struct{ Name, Value string }

// list returns the settings in the order in which files have them. One may be a
// *[]Variable.
func (s *Settings) list() []chat.Setting {
	list := s.Settings.List()
	before := slices.IndexFunc(list, func(f chat.Setting) bool { return f.Key == "auto_continue" })
	list = slices.Insert(list, before, chat.Setting{Key: "save_session", Ptr: &s.SaveSession}, chat.Setting{Key: "compression_threshold", Ptr: &s.CompressionThreshold})
	return append(list,
		chat.Setting{Key: "rag", Ptr: &s.Knowledge},
		chat.Setting{Key: "untrusted", Ptr: &s.Untrusted},
		chat.Setting{Key: "plan", Ptr: &s.Plan},
		chat.Setting{Key: "todo", Ptr: &s.Todo},
		chat.Setting{Key: "role_name", Ptr: &s.RoleName},
		chat.Setting{Key: "directory", Ptr: &s.Directory},
		chat.Setting{Key: "agent_variables", Ptr: &s.AgentVariables},
		chat.Setting{Key: "agent_instructions", Ptr: &s.AgentInstructions},
		chat.Setting{Key: "foreign_session", Ptr: &s.Foreign},
		chat.Setting{Key: "worktree", Ptr: &s.Worktree},
	)
}

// Values returns the settings that are set, by the names that files have for them.
func (s Settings) Values() map[string]any {
	values := make(map[string]any)
	for _, f := range s.list() {
		if v, ok := f.Value(); ok {
			values[f.Key] = v
		}
	}
	return values
}

// Equal reports whether all settings are the same.
func (s Settings) Equal(t Settings) bool { return reflect.DeepEqual(s, t) }

// clone returns a copy that shares nothing with s.
func (s Settings) clone() Settings {
	for _, f := range s.list() {
		v := reflect.ValueOf(f.Ptr).Elem()
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
	b, o := base.list(), ours.list()
	for i, f := range theirs.list() {
		mine := reflect.ValueOf(o[i].Ptr).Elem()
		if !reflect.DeepEqual(reflect.ValueOf(b[i].Ptr).Elem().Interface(), mine.Interface()) {
			reflect.ValueOf(f.Ptr).Elem().Set(mine)
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
	Unnamed  bool // it is kept without an alias, see [Session.KeepUnnamed]

	// Owner is whose the session is, nil if it was made on the command line. It is kept beside the
	// rest, which users may edit.
	Owner *auth.Owner
}
