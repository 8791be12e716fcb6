package config

import (
	"fmt"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/tool/mcp"
	"loki/internal/tool/permission"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/bulk"
	"loki/internal/workflow/schedule"
	"loki/internal/workflow/schedule/trigger"
)

// readSetting reads key into field, a pointer to a field of [Config], which keeps
// its default if the file does not name the key or says null. A list that is null has no
// elements: all its lines may be commented out.
func readSetting(m *yamldoc.Map, key string, field any) {
	switch field := field.(type) {
	case *string:
		m.Str(key, field)
	case **string:
		if key == "skills" || key == "enabled_tools" || key == "enabled_mcp_servers" {
			optional(m.CommaList, key, field)
			return
		}
		optional(m.Str, key, field)
	case *bool:
		m.Bool(key, field)
	case **bool:
		optional(m.Bool, key, field)
	case **float64:
		optional(m.CheckedFloat(chat.CheckNumber), key, field)
	case *int:
		m.Uint(key, field)
	case **int:
		optional(m.Uint, key, field)
	case *time.Duration:
		m.Seconds(key, field)
	case *permission.Rules:
		*field, _ = permission.Read(m.Get(key)) // the error is one of the document, too
	case *sandbox.Settings:
		*field, _ = sandbox.ReadSettings(m.Get(key)) // likewise
	case *[]hook.Hook:
		*field = hook.Read(m.Get(key), hook.Kinds())
	case *[]*schedule.Schedule:
		*field = schedule.Read(m.Map(key), "")
	case *[]*alert.Rule:
		*field = alert.Read(m.Get(key))
	case **bulk.Retention:
		*field = bulk.ReadRetention(m.Map(key))
	case *[]*trigger.Trigger:
		*field = trigger.Read(m.Get(key))
	case *mcp.PoolConfig:
		*field = mcp.ReadPool(m.Map(key))
	case *MCPServer:
		readMCPServer(m.Map(key), field)
	case *ACP:
		readACP(m.Map(key), field)
	case *Jobs:
		readJobs(m.Map(key), field)
	case *[]string:
		if n := m.Get(key); n != nil && n.Kind() == yamldoc.Null {
			*field = []string{}
		}
		m.Strs(key, field)
	case *IgnoreFiles:
		readIgnoreFiles(m, key, field)
	case *Dirs:
		m.Strs(key, (*[]string)(field))
	case *Mapping:
		if sub := m.Map(key); sub != nil {
			*field = readMapping(sub)
		}
	case *Keybindings:
		readKeybindings(m, key, field)
	default:
		set := setter(field)
		if set == nil {
			panic(fmt.Sprintf("config: no rule for %s, a setting of type %T", key, field))
		}
		readParsed(m, key, set)
	}
}

func optional[T any](read func(string, *T) bool, key string, field **T) {
	var v T
	if read(key, &v) {
		*field = &v
	}
}

func readMapping(m *yamldoc.Map) Mapping {
	mapping := Mapping{}
	for entry := range m.All() {
		if text, ok := entry.Node.Str(); ok {
			mapping = append(mapping, Entry{entry.Key, text})
		}
	}
	return mapping
}

// readParsed reads a text that set makes the value of a setting.
func readParsed(m *yamldoc.Map, key string, set func(text string) error) {
	var text string
	if !m.Text(key, &text) {
		return
	}
	if err := set(text); err != nil {
		m.Get(key).Errorf("%v", err)
	}
}

func readKeybindings(m *yamldoc.Map, key string, field *Keybindings) {
	var text string
	if !m.Str(key, &text) {
		return
	}
	if err := setter(field)(text); err != nil {
		m.Get(key).Warnf("%v; taken for %s", err, Emacs)
		*field = Emacs
	}
}
