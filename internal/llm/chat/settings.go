package chat

import (
	"fmt"
	"reflect"
	"strings"
)

// Sampling says how a model chooses its words, and how much it reasons before. What is not
// set is left to the sampling below it, and in the end to the provider.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Effort      Effort   `json:"reasoning_effort,omitempty"`
}

// Over lays s over below: it returns s with the fields of below where s sets none.
func (s Sampling) Over(below Sampling) Sampling {
	over(reflect.ValueOf(&s).Elem(), reflect.ValueOf(below))
	return s
}

// mostOf has the highest values of the numbers that have one. The lowest is 0.
var mostOf = map[string]float64{"temperature": 2, "top_p": 1}

// NumberRange returns what the number of the setting that is called key is: "a number from 0 to 2".
func NumberRange(key string) string {
	if most, ok := mostOf[key]; ok {
		return fmt.Sprintf("a number from 0 to %g", most)
	}
	return "a number"
}

// CheckNumber returns what is wrong with a value of the setting that is called key, see [NumberRange].
func CheckNumber(key string, x float64) error {
	if most, ok := mostOf[key]; ok && !(x >= 0 && x <= most) {
		return fmt.Errorf("want %s, not %g", NumberRange(key), x)
	}
	return nil
}

// Settings are what may be set for a chat: by the command, a session, a role or the
// configuration. The tag of a field is its key in files. A field that is nil or empty is
// not set.
type Settings struct {
	Model string `json:"model,omitempty"` // id
	Sampling
	EnabledTools           *string `json:"enabled_tools,omitempty"`       // comma list of tools and aliases, or "all"
	EnabledMCPServers      *string `json:"enabled_mcp_servers,omitempty"` // comma list of servers and aliases, or "all"
	Sandbox                string  `json:"sandbox,omitempty"`             // highest level for programs that tools start, a sandbox.Level; empty for any
	AutoContinue           *bool   `json:"auto_continue,omitempty"`
	MaxAutoContinues       *int    `json:"max_auto_continues,omitempty"` // for each turn of the user
	InjectTodoInstructions *bool   `json:"inject_todo_instructions,omitempty"`
	ContinuationPrompt     *string `json:"continuation_prompt,omitempty"`
	WorkspaceInstructions  *bool   `json:"workspace_instructions,omitempty"`
	Skills                 *string `json:"skills,omitempty"` // comma list of names and patterns, "all" or "none"
	Memory                 Memory  `json:"memory,omitempty"`
	Mode                   Mode    `json:"mode,omitempty"`
}

// Over lays s over below: it returns s with the fields of below where s sets none.
func (s Settings) Over(below Settings) Settings {
	over(reflect.ValueOf(&s).Elem(), reflect.ValueOf(below))
	return s
}

// over sets the fields of s that are zero to those of below, which has the same type.
func over(s, below reflect.Value) {
	for i := range s.NumField() {
		switch f := s.Field(i); {
		case f.Kind() == reflect.Struct:
			over(f, below.Field(i))
		case f.IsZero():
			f.Set(below.Field(i))
		}
	}
}

// Setting is one of the [Settings].
type Setting struct {
	Key string // in files
	Ptr any    // points to the field: *string, *Effort, **string, **float64, **bool or **int
}

// Value returns what the setting is set to; set is false if it is not set, and v then nil
// or "".
func (s Setting) Value() (v any, set bool) {
	e := reflect.ValueOf(s.Ptr).Elem()
	if set = !e.IsZero(); e.Kind() == reflect.Pointer {
		if !set {
			return nil, false
		}
		e = e.Elem()
	}
	if e.Kind() == reflect.String {
		return e.String(), set
	}
	return e.Interface(), set
}

// List returns the settings in the order in which files have them, for code that reads or
// writes them.
func (s *Settings) List() []Setting { return list(nil, reflect.ValueOf(s).Elem()) }

func list(settings []Setting, s reflect.Value) []Setting {
	for i := range s.NumField() {
		if s.Field(i).Kind() == reflect.Struct {
			settings = list(settings, s.Field(i))
			continue
		}
		key, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		settings = append(settings, Setting{key, s.Field(i).Addr().Interface()})
	}
	return settings
}
