package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
)

func TestOverride(t *testing.T) {
	const file = `
model: file
temperature: 0.1
stream: false
save_session: true
rag_top_k: 7
rag_chunk_size: 7
editor: file
wrap: 7
keybindings: vi
theme: light
mapping_tools: {file: x}
`
	for _, tt := range []struct {
		variable string
		value    string
		want     any    // of the setting
		warning  string // after "LOKI_X is ignored: "
	}{
		{"MODEL", "env", "env", ""},
		{"MODEL", "null", "null", ""},
		{"MODEL", "", "", ""},

		{"EDITOR", "env", ptr("env"), ""},
		{"EDITOR", "", ptr(""), ""},
		{"EDITOR", "null", (*string)(nil), ""},

		{"TEMPERATURE", "1", ptr(1.0), ""},
		{"TEMPERATURE", "1.5e-1", ptr(0.15), ""},
		{"TEMPERATURE", "5", ptr(0.1), "want a number from 0 to 2, not 5"},
		{"TOP_P", "-0.5", (*float64)(nil), "want a number from 0 to 1, not -0.5"},
		{"TEMPERATURE", "null", (*float64)(nil), ""},
		{"TEMPERATURE", "", ptr(0.1), ""},
		{"TEMPERATURE", "hot", ptr(0.1), `want a number, not "hot"`},
		{"TEMPERATURE", "NaN", ptr(0.1), `want a number, not "NaN"`},

		{"STREAM", "true", true, ""},
		{"STREAM", "1", true, ""},
		{"STREAM", "0", false, ""},
		{"STREAM", "", false, ""},
		{"STREAM", "True", false, `want true or false, not "True"`},
		{"STREAM", "null", false, `want true or false, not "null"`},

		{"SAVE_SESSION", "false", ptr(false), ""},
		{"SAVE_SESSION", "1", ptr(true), ""},
		{"SAVE_SESSION", "ask", (*bool)(nil), ""},
		{"SAVE_SESSION", "null", (*bool)(nil), ""},
		{"SAVE_SESSION", "", (*bool)(nil), ""},
		{"SAVE_SESSION", "ture", ptr(true), `want true or false, not "ture"`},

		{"RAG_TOP_K", "9", 9, ""},
		{"RAG_TOP_K", "", 7, ""},
		{"RAG_TOP_K", "-1", 7, `want a whole number from 0 up, not "-1"`},
		{"RAG_TOP_K", "null", 7, `want a whole number from 0 up, not "null"`},

		{"RAG_CHUNK_SIZE", "0", ptr(0), ""},
		{"RAG_CHUNK_SIZE", "null", (*int)(nil), ""},
		{"RAG_CHUNK_SIZE", "1.5", ptr(7), `want a whole number from 0 up, not "1.5"`},
		{"RAG_CHUNK_SIZE", "99999999999999999999", ptr(7), `want a whole number from 0 up, not "99999999999999999999"`},

		{"RAG_THRESHOLD", "0.5", ptr(0.5), ""},
		{"RAG_THRESHOLD", "1.5", (*float64)(nil), "want a number from 0 to 1, not 1.5"},
		{"RAG_TEMPLATE", "__INPUT__", (*string)(nil), "the template lacks __CONTEXT__: without it the model gets nothing of what was found"},
		{"RAG_TEMPLATE", "", ptr(""), ""},

		{"WRAP", "auto", WrapAuto, ""},
		{"WRAP", "no", Wrap(""), ""},
		{"WRAP", "null", Wrap(""), ""},
		{"WRAP", "80", Wrap("80"), ""},

		{"KEYBINDINGS", "emacs", Emacs, ""},
		{"KEYBINDINGS", "nano", Vi, `want emacs or vi, not "nano"`},

		{"THEME", "dark", ptr("dark"), ""},

		{"CHAT_DURABILITY", "power", graph.DurabilityPower, ""},
		{"CHAT_DURABILITY", "off", graph.DurabilityOff, ""},
		{"CHAT_DURABILITY", "on", graph.Durability(""), `want process, power or off, not "on"`},

		{"MAPPING_TOOLS", `{"b": "1,2", "a": "3"}`, Mapping{{"b", "1,2"}, {"a", "3"}}, ""},
		{"MAPPING_TOOLS", `{}`, Mapping{}, ""},
		{"MAPPING_TOOLS", ``, Mapping{{"file", "x"}}, ""},
		{"MAPPING_TOOLS", `["a"]`, Mapping{{"file", "x"}}, "want a JSON object, not a JSON array"},
		{"MAPPING_TOOLS", `{"a": 1}`, Mapping{{"file", "x"}}, `want strings in the JSON object, not a JSON number under "a"`},
		{"MAPPING_TOOLS", `{"a"`, Mapping{{"file", "x"}}, "want a JSON object: unexpected end of JSON"},
	} {
		t.Run(tt.variable+"="+tt.value, func(t *testing.T) {
			variable := "LOKI_" + tt.variable
			cfg, warnings, err := load(t, file, variable+"="+tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, setting(t, cfg, strings.ToLower(tt.variable))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var want []string
			if tt.warning != "" {
				want = []string{variable + " is ignored: " + tt.warning}
			}
			if diff := cmp.Diff(want, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("wrong_wrap", func(t *testing.T) {
		_, _, err := load(t, file, "LOKI_WRAP=wide")
		want := `environment variable LOKI_WRAP: want no, auto or a number of columns up to 65535, not "wide"`
		if err == nil || err.Error() != want || fault.CodeOf(err) != fault.Config {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func setting(t *testing.T, c *Config, name string) any {
	t.Helper()
	for _, k := range keys {
		if k.name == name {
			return reflect.ValueOf(k.field(c)).Elem().Interface()
		}
	}
	t.Fatalf("no setting %s", name)
	return nil
}

// TestOverrideEach gives each setting a value through its variable, and expects that
// those without a variable stay as they are.
func TestOverrideEach(t *testing.T) {
	without := map[string]bool{
		"visible_tools": true, "auto_continue": true, "max_auto_continues": true,
		"inject_todo_instructions": true, "continuation_prompt": true,
		"instruction_files": true, "ignore_files": true,
		"permission": true, "sandbox": true, "hooks": true, "schedules": true, "triggers": true, "alerts": true, "retention": true, "tool_timeout": true, "tool_max_output": true, "mcp_pool": true, "mcp_server": true, "acp": true, "jobs": true, "notify_command": true,
	}
	for _, k := range keys {
		t.Run(k.name, func(t *testing.T) {
			standard := reflect.ValueOf(k.field(defaults())).Elem().Interface()
			text := map[string]string{
				"bool": "0", "*bool": "0", "int": "77", "*int": "77", "*float64": "0.5",
				"config.Wrap": "77", "config.Keybindings": "vi", "config.Notify": "all", "config.Instruct": "off", "config.InstructionBytes": "77", "config.SkillTokens": "77", "config.MemoryTokens": "77", "chat.Memory": "off", "config.Mapping": `{"a": "b"}`, "chat.Effort": "low", "graph.Durability": "power",
			}[reflect.TypeOf(standard).String()]
			if text == "" {
				text = "text"
			}
			switch k.name {
			case "theme":
				text = "light"
			case "rag_template":
				text = "__CONTEXT__ __INPUT__"
			}
			if standard == false {
				text = "1"
			}
			cfg, warnings, err := load(t, "", "LOKI_"+strings.ToUpper(k.name)+"="+text)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			changed := !reflect.DeepEqual(setting(t, cfg, k.name), standard)
			if changed == without[k.name] {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}
