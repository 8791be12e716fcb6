package config

import (
	"fmt"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/llm/provider"
	"loki/internal/tool/mcp"
	"loki/internal/tool/permission"
	"loki/internal/workflow/graph"
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
	case *provider.Effort:
		readParsed(m, key, field, parseEffort)
	case *bool:
		m.Bool(key, field)
	case **bool:
		optional(m.Bool, key, field)
	case **float64:
		optional(m.Float, key, field)
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
	case *Wrap:
		readParsed(m, key, field, parseWrap)
	case *Instruct:
		readParsed(m, key, field, parseInstruct)
	case *InstructionBytes:
		readParsed(m, key, field, parseInstructionBytes)
	case *SkillTokens:
		readParsed(m, key, field, parseSkillTokens)
	case *MemoryTokens:
		readParsed(m, key, field, parseMemoryTokens)
	case *chat.Memory:
		readParsed(m, key, field, chat.ParseMemory)
	case *Notify:
		readParsed(m, key, field, parseNotify)
	case *Keybindings:
		readKeybindings(m, key, field)
	case *graph.Durability:
		readParsed(m, key, field, parseDurability)
	default:
		panic(fmt.Sprintf("config: no rule for %s, a setting of type %T", key, field))
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

// readParsed reads a text that parse turns into the value of a setting.
func readParsed[T any](m *yamldoc.Map, key string, field *T, parse func(string) (T, error)) {
	var text string
	if !m.Text(key, &text) {
		return
	}
	v, err := parse(text)
	if err != nil {
		m.Get(key).Errorf("%v", err)
		return
	}
	*field = v
}

func readKeybindings(m *yamldoc.Map, key string, field *Keybindings) {
	var text string
	if !m.Str(key, &text) {
		return
	}
	style, err := parseKeybindings(text)
	if err != nil {
		m.Get(key).Warnf("%v; taken for %s", err, Emacs)
		style = Emacs
	}
	*field = style
}
