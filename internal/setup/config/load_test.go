package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/hook"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
	"loki/internal/tool/mcp"
	"loki/internal/tool/permission"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/bulk"
	"loki/internal/workflow/run/webhook"
	"loki/internal/workflow/schedule"
	"loki/internal/workflow/schedule/trigger"
)

// load reads text as config.yaml. The name of the file is left out of what it
// returns.
func load(t *testing.T, text string, environ ...string) (*Config, []string, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.yaml"), text)
	return loadDir(t, dir, environ...)
}

func loadDir(t *testing.T, dir string, environ ...string) (*Config, []string, error) {
	t.Helper()
	env := NewEnv("linux", append([]string{"LOKI_CONFIG_DIR=" + dir}, environ...))
	paths, err := NewPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	cfg, warnings, err := Load(paths, env)
	var lines []string
	for _, w := range warnings {
		line := strings.TrimPrefix(w.Error(), dir+"/config.yaml:")
		if w.Hint != "" {
			line += " | " + w.Hint
		}
		lines = append(lines, line)
	}
	return cfg, lines, err
}

func mustLoad(t *testing.T, text string, environ ...string) *Config {
	t.Helper()
	cfg, warnings, err := load(t, text, environ...)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	return cfg
}

func ptr[T any](v T) *T { return &v }

var ignoreClients = cmp.Options{cmpopts.IgnoreFields(Config{}, "Clients", "File"), cmpopts.IgnoreUnexported(Config{}, schedule.Schedule{})}

func TestLoadFull(t *testing.T) {
	env := NewEnv("linux", []string{"LOKI_CONFIG_DIR=testdata", "LOKI_CONFIG_FILE=testdata/full.yaml"})
	paths, err := NewPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	got, warnings, err := Load(paths, env)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	morning, err := schedule.Check("morning", schedule.Doc{
		Agent: "digest", Cron: "0 7 * * MON-FRI", Timezone: "Europe/Berlin", Prompt: "What is new?", Jitter: "60s", BudgetMonth: &schedule.Amount{USD: 5}, MaxParked: ptr(2),
		Blackout: []schedule.Blackout{{Days: []string{"SAT"}, From: "22:00", To: "06:00"}}, Variables: map[string]string{"since": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Automation: Automation{[]*schedule.Schedule{morning}, []hook.Hook{{
			Kind: hook.BeforeTool, Name: "guard", Args: []string{"guard", "-v"}, Match: "fs_*", Timeout: 2 * time.Second, OnFailure: hook.Continue,
			Where: filepath.Join("testdata", "full.yaml") + ":143",
		}}, []*trigger.Trigger{{
			Name: "pr", Agent: "review", Prompt: graph.ParseTemplate("{{body}}"), Variables: map[string]*expr.Expr{}, MaxQueued: 1000,
			Webhook: &trigger.Webhook{Verify: trigger.GitHub, Secrets: []string{"{{HOOK}}"}, Encoding: "hex", Algorithm: "sha256", MaxBody: 1 << 20, Rate: trigger.Rate{N: 60, Per: time.Minute}},
		}}, []*alert.Rule{{
			Name: "ops", On: []alert.Condition{{Kind: alert.Failed}, {Kind: alert.Waiting, After: 2 * time.Hour}}, Every: time.Hour, Message: graph.ParseTemplate("{{text}}"),
			To: []webhook.Hook{{URL: "{{SLACK}}", Trusted: true, Form: alert.Slack}},
		}}, &bulk.Retention{Done: 30 * 24 * time.Hour, Failed: 90 * 24 * time.Hour, Keep: 1000}},
		Exists:               true,
		Model:                "openai:gpt-4o",
		Sampling:             chat.Sampling{Temperature: ptr(0.5), TopP: ptr(1.0), Effort: provider.LowEffort},
		DryRun:               true,
		Save:                 true,
		Editor:               ptr("nvim"),
		Wrap:                 "100",
		WrapCode:             true,
		Theme:                ptr("light"),
		Chat:                 Chat{Keybindings: Vi, LeftPrompt: ptr(">"), RightPrompt: ptr(""), Notify: NotifyAll, NotifyAfter: 30, NotifyCommand: `notify-send "$LOKI_NOTICE"`},
		Workspace:            Workspace{InstructOff, []string{"AGENTS.md"}, 1000, []string{".cursorignore"}, ptr("pdf,git-*"), Dirs{"~/skills"}, 500, chat.MemoryRead, 700, Jobs{2, time.Hour, 1 << 20}},
		VaultPasswordFile:    ptr("/secrets/password"),
		VaultPasswordCommand: ptr("pass show loki"),
		VaultKeychain:        true,
		MappingTools:         Mapping{{"fs", "fs_cat,fs_ls"}, {"net", "fetch_url"}},
		EnabledTools:         ptr("fs,web_search"),
		VisibleTools:         []string{"fs_cat.sh", "fs_ls.sh"},
		TrustedDirs:          Dirs{"~/agents"},
		Permission:           permission.Rules{Default: permission.Deny},
		Sandbox: sandbox.Settings{
			Disabled: true, Read: []string{"~/data"}, Write: []string{"out"}, Hosts: []string{"*.example.com:443"}, Environment: []string{"AWS_*"},
		},
		ToolTimeout:   time.Minute,
		ToolMaxOutput: 1000,
		MCP: MCP{mcp.PoolConfig{IdleTimeout: 5 * time.Minute, HasIdleTimeout: true, MaxIdle: 4}, MCPServer{
			Agents: []string{"digest"}, RAGs: []string{}, Roles: []string{"shell"}, Macros: []string{}, Runs: "none", Wait: 2 * time.Minute, TaskAfter: time.Second, Sandbox: "read",
			Budget: graph.Budget{USD: 0.5}, MaxRuns: 4,
		}, ACP{false, false}},
		MappingMCPServers:    Mapping{{"git", "github,gitlab"}},
		EnabledMCPServers:    ptr("all"),
		AutoContinue:         true,
		MaxAutoContinues:     3,
		ContinuationPrompt:   ptr("Go on."),
		REPLPrelude:          ptr("role:code"),
		CmdPrelude:           ptr("session:work"),
		AgentSession:         ptr("temp"),
		SaveSession:          ptr(false),
		ChatDurability:       graph.DurabilityPower,
		CompressionThreshold: ptr(0),
		SummarizationModel:   ptr("openai:small"),
		SummarizationPrompt:  ptr("Sum up."),
		SummaryContextPrompt: ptr("So far:"),
		RAGEmbeddingModel:    ptr("openai:text-embedding-3-small"),
		RAGRerankerModel:     ptr("jina:reranker"),
		RAGTopK:              8,
		RAGChunkSize:         ptr(1500),
		RAGChunkOverlap:      ptr(75),
		RAGThreshold:         ptr(0.25),
		RAGStore:             ptr("postgres://loki:{{PG}}@db/knowledge"),
		Store:                ptr("postgres://loki:{{PG}}@db/service"),
		RAGTemplate:          ptr("__CONTEXT__ __INPUT__"),
		DocumentLoaders:      Mapping{{"pdf", "mutool draw -F text $1"}, {"git", "git show $1"}},
		UserAgent:            ptr("auto"),
		SyncModelsURL:        ptr("https://example.com/models.yaml"),
		ReleaseFeed:          "https://example.com/releases",
		ReleaseKey:           "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
		ServeAddr:            ptr("127.0.0.1:8000"),
	}
	sameTemplate := cmp.Comparer(func(a, b graph.Template) bool { return a.Source == b.Source })
	if diff := cmp.Diff(want, got, ignoreClients, sameTemplate); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	standard := defaults()
	for _, k := range keys {
		if reflect.DeepEqual(reflect.ValueOf(k.field(got)).Elem().Interface(), reflect.ValueOf(k.field(standard)).Elem().Interface()) {
			t.Errorf("%s has its default: the file shows nothing about it", k.name)
		}
	}
}

func TestLoadClients(t *testing.T) {
	env := NewEnv("linux", []string{"LOKI_CONFIG_DIR=testdata", "LOKI_CONFIG_FILE=testdata/full.yaml"})
	paths, err := NewPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(paths, env)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Client{
		{
			Type: "openai", Name: "openai", Where: "testdata/full.yaml:68:5",
			Models: []catalog.Model{
				{
					Name: "gpt-4o", Type: catalog.Chat, MaxInputTokens: 128000, MaxOutputTokens: 16384,
					InputPrice: ptr(2.5), OutputPrice: ptr(10.0), SupportsVision: true, SupportsFunctionCalling: true,
				},
				{
					Name: "o4-mini-high", Type: catalog.Chat, RealName: "o4-mini", RequireMaxTokens: true, NoStream: true,
					NoSystemMessage: true, SystemPromptPrefix: "Formatting re-enabled",
					Patch: &wire.Patch{
						URL: "https://special.example.com/v1/chat",
						Body: value.ObjectOf(
							value.Member{Name: "max_tokens"},
							value.Member{Name: "reasoning_effort", Value: value.Of("high")},
						),
						Headers: []wire.Header{{Name: "X-Version", Value: ptr("2024")}, {Name: "Authorization"}},
					},
				},
				{
					Name: "text-embedding-3-small", Type: catalog.Embedding, InputPrice: ptr(0.0), MaxInputTokens: 8191,
					MaxTokensPerChunk: 8191, DefaultChunkSize: 2000, MaxBatchSize: 100,
				},
			},
			Patch: wire.Patches{
				wire.ChatCompletions: {
					{Pattern: "gpt-4.*", Patch: wire.Patch{Body: value.ObjectOf(value.Member{Name: "frequency_penalty", Value: value.Of(0.2)})}},
					{Pattern: ".*", Patch: wire.Patch{Headers: []wire.Header{{Name: "X-Any", Value: ptr("yes")}}}},
				},
				wire.Embeddings: {
					{Pattern: "text-embedding-.*", Patch: wire.Patch{Body: value.ObjectOf(value.Member{Name: "dimensions", Value: value.Of(1536)})}},
				},
			},
			Extra:  Extra{Proxy: ptr("socks5://127.0.0.1:1080"), ConnectTimeout: 30 * time.Second, ReadTimeout: time.Minute},
			Limits: governor.Limits{Concurrency: 4, ParkAfter: 5 * time.Minute, RequestsPerMinute: 100, TokensPerMinute: 50000},
			fields: map[string]*string{
				"api_key": ptr("sk-0123456789"), "api_base": ptr("https://proxy.example.com/v1/"), "organization_id": ptr("12345"),
			},
		},
		{
			Type: "openai-compatible", Name: "ollama", Where: "testdata/full.yaml:113:5",
			Models: []catalog.Model{{Name: "llama3.2:3b", Type: catalog.Chat}},
		},
		{
			Type: "builtin", Name: "offline", Where: "testdata/full.yaml:117:5",
			fields: map[string]*string{"script": ptr(filepath.FromSlash("testdata/replies.yaml"))},
		},
		{Type: "claude", Name: "my-claude", Where: "testdata/full.yaml:120:5", fields: map[string]*string{"auth": ptr("oauth")}},
		{
			Type: "bedrock", Name: "bedrock", Where: "testdata/full.yaml:123:5",
			fields: map[string]*string{
				"access_key_id": ptr("a"), "secret_access_key": ptr("b"), "region": ptr("eu-west-1"), "session_token": ptr("c"),
			},
		},
		{
			Type: "vertexai", Name: "vertexai", Where: "testdata/full.yaml:128:5",
			fields: map[string]*string{"project_id": ptr("p"), "location": ptr("l"), "adc_file": ptr("f")},
		},
	}
	for _, c := range want {
		if c.Extra.ConnectTimeout == 0 {
			c.Extra, c.Limits = newClient("", "").Extra, governor.DefaultLimits()
		}
	}
	sameValue := cmp.Comparer(func(a, b *value.Object) bool { return value.Equal(a.Value(), b.Value()) })
	if diff := cmp.Diff(want, cfg.Clients, cmp.AllowUnexported(Client{}), cmpopts.IgnoreFields(Client{}, "file"), cmpopts.EquateEmpty(), sameValue); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadDefaults(t *testing.T) {
	nulls := "clients:\n"
	comments := "clients:\n  # - type: openai\n"
	for _, k := range keys {
		if k.name == "instruction_files" || k.name == "ignore_files" { // without items they are none
			continue
		}
		nulls += k.name + ": null\n"
		comments += k.name + ":\n  # nothing\n"
	}
	want := &Config{
		Exists:                 true,
		Stream:                 true,
		FunctionCallingSupport: true,
		MCPServerSupport:       true,
		MaxAutoContinues:       10,
		InjectTodoInstructions: true,
		RAGTopK:                5,
		Wrap:                   WrapAuto,
		Highlight:              true,
		SaveShellHistory:       true,
		UsageLog:               true,
		PromptLog:              true,
		MCP:                    MCP{MCPServer: MCPServer{Enabled: true, Chat: true, Consent: true, Runs: "own", Wait: 50 * time.Second, TaskAfter: 10 * time.Second, MaxRuns: 8, Sandbox: "write"}, ACP: ACP{true, true}},
		Workspace:              Workspace{InstructAuto, []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}, 32768, []string{".cursorignore", ".geminiignore", ".agentignore", ".agentsignore"}, nil, nil, 2000, chat.MemoryPropose, 1000, Jobs{8, 12 * time.Hour, 16 << 20}},
		Chat:                   Chat{Keybindings: Emacs, REPLHistory: true, REPLSession: true, Notify: NotifyQuestions, NotifyAfter: 10},
	}
	for _, tt := range []struct{ name, text string }{
		{"empty", ""},
		{"comment_only", "# model: x\n"},
		{"null", "null"},
		{"nulls", nulls},
		{"keys_over_comments", comments},
		{"old_light_theme_off", "light_theme: false"},
		{"empty_lists", "clients: []\nmapping_tools: {}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustLoad(t, tt.text)
			if diff := cmp.Diff(want, got, ignoreClients, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Config{}, "Blank")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if blank := tt.name == "empty" || tt.name == "comment_only"; got.Blank != blank {
				t.Errorf("blank %v", got.Blank)
			}
			if len(got.Clients) > 0 {
				t.Errorf("clients %v", got.Clients)
			}
		})
	}
	t.Run("no_file", func(t *testing.T) {
		dir := t.TempDir()
		got, warnings, err := loadDir(t, dir)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("error %v, warnings %q", err, warnings)
		}
		if got.Exists || !got.Blank || got.File != dir+"/config.yaml" {
			t.Errorf("file %s, exists %v", got.File, got.Exists)
		}
		if diff := cmp.Diff(want, got, ignoreClients, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Config{}, "Exists", "Blank")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestLoadSaveFalse: who kept no questions outside of sessions before there was a prompt log keeps none now.
func TestLoadSaveFalse(t *testing.T) {
	for text, want := range map[string]bool{
		"save: false": false, "save: true": true, "save:": true, "save: false\nprompt_log: true": true, "save: true\nprompt_log: false": false,
	} {
		if got := mustLoad(t, text).PromptLog; got != want {
			t.Errorf("%q: prompt_log %v", text, got)
		}
	}
}

func TestLoadOldNames(t *testing.T) {
	for _, tt := range []struct {
		name, text, wantTheme string
		wantTools             bool
	}{
		{"light_theme", "light_theme: true", "light", true},
		{"theme_beats_light_theme", "theme: dark\nlight_theme: true", "dark", true},
		{"function_calling", "function_calling: false", "", false},
		{"present_name_beats_function_calling", "function_calling_support: true\nfunction_calling: false", "", true},
		{"null_does_not_beat_function_calling", "function_calling_support:\nfunction_calling: false", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mustLoad(t, tt.text)
			theme := ""
			if cfg.Theme != nil {
				theme = *cfg.Theme
			}
			if theme != tt.wantTheme || cfg.FunctionCallingSupport != tt.wantTools {
				t.Errorf("theme %q, tools %v", theme, cfg.FunctionCallingSupport)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"number", "a: 1\ntemperature: hot", `2:14: temperature: expected a number, found a string`},
		{"boolean_in_quotes", `stream: "true"`, `1:9: stream: expected true or false, found a string`},
		{"boolean_of_yaml_1.1", `stream: yes`, `1:9: stream: expected true or false, found a string`},
		{"tri_state", `save_session: 1`, `1:15: save_session: expected true or false, found an integer`},
		{"negative", `rag_top_k: -1`, `1:12: rag_top_k: must not be negative, found an integer`},
		{"fraction", `rag_chunk_size: 1.5`, `1:17: rag_chunk_size: expected a whole number, found a number`},
		{"threshold", `rag_threshold: 2`, `1:16: rag_threshold: want a number from 0 to 1, not 2`},
		{"template", `rag_template: "__CONTEXT__"`, `1:15: rag_template: the template lacks __INPUT__: without it the model gets nothing of the question`},
		{"string", `model: 5`, `1:8: model: expected a string, found an integer`},
		{"list", `visible_tools: fs_cat.sh`, `1:16: visible_tools: expected a list, found a string`},
		{"list_of_strings", `visible_tools: [1]`, `1:17: visible_tools[0]: expected a string, found an integer`},
		{"mapping", `mapping_tools: [a]`, `1:16: mapping_tools: expected a mapping, found a list`},
		{"mapping_of_strings", `mapping_tools: {a: [b]}`, `1:20: mapping_tools.a: expected a string, found a list`},
		{"wrap", `wrap: wide`, `1:7: wrap: want no, auto or a number of columns up to 65535, not "wide"`},
		{"durability", `chat_durability: on`, `1:18: chat_durability: want process, power or off, not "on"`},
		{"wrap_too_wide", `wrap: 65536`, `1:7: wrap: want no, auto or a number of columns up to 65535, not "65536"`},
		{"vault_of_vault", `vault_password_file: '/x/{{USER}}'`, `1:22: vault_password_file: what opens the vault cannot itself be a secret of the vault`},
		{"no_mapping", `- model`, `1:1: expected a mapping, found a list`},
		{"no_yaml", "a: [1", `1:4: sequence end token ']' not found`},
		{"twice", "model: a\nmodel: b", `2:1: model: key "model" occurs twice, first in line 1`},
		{"clients", "clients: {type: openai}", `1:10: clients: expected a list, found a mapping`},
		{"client", "clients: [openai]", `1:11: clients[0]: expected a mapping, found a string`},
		{"client_without_type", "clients:\n  - name: x", `2:5: clients[0]: required field "type" is missing`},
		{"key_without_quotes", "clients:\n  - type: openai\n    api_key: {{KEY}}", `3:15: could not find flow map content`},
		{"models", "clients:\n  - type: openai\n    models: [gpt]", `3:14: clients[0].models[0]: expected a mapping, found a string`},
		{"model_without_name", "clients:\n  - type: openai\n    models: [{type: chat}]", `3:14: clients[0].models[0]: required field "name" is missing`},
		{"model_limit", "clients:\n  - type: openai\n    models: [{name: m, max_input_tokens: -4}]", `3:42: clients[0].models[0].max_input_tokens: must not be negative, found an integer`},
		{"model_price", "clients:\n  - type: openai\n    models: [{name: m, input_price: -4}]", `3:37: clients[0].models[0].input_price: a price must not be negative`},
		{"patch", "clients:\n  - type: openai\n    patch: {chat_completions: {a: {body: 1}}}", `3:42: clients[0].patch.chat_completions.a.body: expected a mapping, found an integer`},
		{"timeout", "clients:\n  - type: openai\n    extra: {connect_timeout: 10s}", `3:30: clients[0].extra.connect_timeout: expected whole seconds, found a string`},
		{"several", "top_p: x\nmodel: []", "1:8: top_p: expected a number, found a string\n2:8: model: expected a string, found a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := load(t, tt.text)
			if err == nil {
				t.Fatalf("no error, but %+v", cfg)
			}
			if got := fault.CodeOf(err); got != fault.Config {
				t.Errorf("code %q", got)
			}
			var lines []string
			for line := range strings.Lines(err.Error()) {
				_, line, found := strings.Cut(line, "config.yaml:")
				if !found {
					t.Errorf("%q does not name the file", err)
				}
				lines = append(lines, line)
			}
			if got := strings.Join(lines, ""); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("hint", func(t *testing.T) {
		_, _, err := load(t, "clients: [{name: x}]")
		if got := fault.HintOf(err); !strings.Contains(got, "openai-compatible") {
			t.Errorf("hint %q", got)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "config.yaml", "file"), "")
		_, _, err := loadDir(t, dir)
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v", err)
		}
	})
}

func TestErrorsHideSecrets(t *testing.T) {
	const secret = "sk-0123456789"
	for _, text := range []string{
		"clients:\n  - type: openai\n    api_key: [" + secret + "]",
		"clients:\n  - type: openai\n    api_key: {" + secret,
		"clients:\n  - " + secret,
		"temperature: " + secret,
	} {
		_, _, err := load(t, text)
		if err == nil {
			t.Fatalf("no error for %q", text)
		}
		shown := err.Error() + fault.HintOf(err)
		for _, p := range yamldoc.AsProblems(err) {
			shown += p.Excerpt() + p.Hint
		}
		if strings.Contains(shown, secret) {
			t.Errorf("%q shows the key", shown)
		}
	}
}

func TestLoadWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"range", "temperature: 5", []string{`1:14: temperature: want a number from 0 to 2, not 5`}},
		{"unknown_key", "temprature: 1", []string{`1:1: unknown key "temprature" is ignored | did you mean "temperature"?`}},
		{"unknown_key_of_client", "clients:\n  - type: openai\n    apikey: x", []string{`3:5: clients[0]: unknown key "apikey" is ignored | did you mean "api_key"?`}},
		{"unknown_key_of_model", "clients:\n  - type: openai\n    models: [{name: m, vision: true}]", []string{`3:24: clients[0].models[0]: unknown key "vision" is ignored`}},
		{"unknown_key_of_patch", "clients:\n  - type: openai\n    patch: {chat: {}}", []string{`3:13: clients[0].patch: unknown key "chat" is ignored | did you mean "chat_completions"?`}},
		{"unknown_key_of_extra", "clients:\n  - type: openai\n    extra: {timeout: 1}", []string{`3:13: clients[0].extra: unknown key "timeout" is ignored`}},
		{"unknown_client", "clients:\n  - type: claud", []string{
			`2:11: clients[0].type: unknown type of client "claud": the client is left out | did you mean claude? the types are openai, openai-compatible, builtin, gemini, claude, cohere, azure-openai, vertexai, bedrock`,
		}},
		{"platform_as_type", "clients:\n  - type: groq", []string{
			`2:11: clients[0].type: unknown type of client "groq": the client is left out | write type: openai-compatible and name: groq`,
		}},
		{"same_name", "clients:\n  - type: openai\n  - type: claude\n    name: openai", []string{
			`3:5: clients[1]: a client called "openai" is already at FILE:2:5, and this one is never used | give one of them another name`,
		}},
		{"model_type", "clients:\n  - type: openai\n    models: [{name: m, type: completion}]", []string{
			`3:30: clients[0].models[0].type: unknown type of model "completion" is taken for chat | the types are chat, embedding and reranker`,
		}},
		{"pattern", "clients:\n  - type: openai\n    patch: {chat_completions: {'*': {url: u}}}", []string{
			`3:37: clients[0].patch.chat_completions.*: the pattern "*" is not a regular expression and matches nothing | error parsing regexp: missing argument to repetition operator: ` + "`*`",
		}},
		{"keybindings", "keybindings: nano", []string{`1:14: keybindings: want emacs or vi, not "nano"; taken for emacs`}},
		{"user_agent", "user_agent: '{{AGENT}}'", []string{`1:13: user_agent: is sent to every server and cannot refer to a secret, so it is left out`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, got, err := load(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], cfg.File, "FILE")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if cfg.UserAgent != nil || len(cfg.Clients) > 1 || cfg.Keybindings != Emacs {
				t.Errorf("what was warned of is in effect: %+v", cfg)
			}
		})
	}
}

func TestFromPlatform(t *testing.T) {
	for _, tt := range []struct {
		name, text string // text is the file, none if empty
		environ    []string
		model      string
		clients    []string
		warnings   []string
	}{
		{"provider_and_model", "", []string{"LOKI_PLATFORM=openai:gpt-4o"}, "openai:gpt-4o", []string{`client "openai" of type openai`}, nil},
		{"provider", "", []string{"LOKI_PLATFORM=openai"}, "openai", []string{`client "openai" of type openai`}, nil},
		{"platform", "", []string{"LOKI_PLATFORM=groq:llama:3"}, "groq:llama:3", []string{`client "groq" of type openai-compatible`}, nil},
		{"local", "", []string{"LOKI_PLATFORM=ollama:llama3.2"}, "ollama:llama3.2", []string{`client "ollama" of type openai-compatible`}, nil},
		{"key", "", []string{"ANTHROPIC_API_KEY=k"}, "", []string{`client "claude" of type claude`}, nil},
		{"keys_in_order", "theme: light", []string{"GROQ_API_KEY=k", "OPENAI_API_KEY=k", "GOOGLE_API_KEY=k"}, "", []string{`client "openai" of type openai`, `client "gemini" of type gemini`, `client "groq" of type openai-compatible`}, nil},
		{"keys_that_are_not_enough", "", []string{"AZURE_OPENAI_API_KEY=k", "CLOUDFLARE_API_KEY=k", "JINA_API_KEY=k", "OLLAMA_API_KEY=k", "AWS_ACCESS_KEY_ID=k"}, "", nil, nil},
		{"platform_beats_keys", "", []string{"OPENAI_API_KEY=k", "LOKI_PLATFORM=groq:m"}, "groq:m", []string{`client "groq" of type openai-compatible`}, nil},
		{"clients_beat_keys", "clients: [{type: claude}]", []string{"OPENAI_API_KEY=k"}, "", []string{`client "claude" of type claude`}, nil},
		{"builtin", "", []string{"LOKI_PLATFORM=builtin:echo"}, "builtin:echo", []string{`client "builtin" of type builtin`}, nil},
		{"loki_provider_first", "", []string{"LOKI_PLATFORM=openai", "LOKI_PROVIDER=groq:m"}, "groq:m", []string{`client "groq" of type openai-compatible`}, nil},
		{"empty_loki_provider", "", []string{"LOKI_PLATFORM=openai", "LOKI_PROVIDER="}, "openai", []string{`client "openai" of type openai`}, nil},
		{"loki_model_beats_it", "", []string{"LOKI_PLATFORM=openai:a", "LOKI_MODEL=openai:b"}, "openai:b", []string{`client "openai" of type openai`}, nil},
		{"file_without_clients", "theme: light", []string{"LOKI_PLATFORM=openai:gpt-4o"}, "openai:gpt-4o", []string{`client "openai" of type openai`}, nil},
		{"model_of_the_file_without_a_client", "model: x:y", []string{"LOKI_PLATFORM=openai:gpt-4o"}, "openai:gpt-4o", []string{`client "openai" of type openai`}, nil},
		{"model_of_the_file_at_that_provider", "model: openai:o", []string{"LOKI_PLATFORM=openai:gpt-4o"}, "openai:o", []string{`client "openai" of type openai`}, nil},
		{"file_with_clients", "clients: [{type: claude}]", []string{"LOKI_PLATFORM=openai:gpt-4o"}, "", []string{`client "claude" of type claude`}, nil},
		{"unknown", "", []string{"LOKI_PLATFORM=opnai:gpt-4o"}, "", nil, []string{
			`LOKI_PLATFORM is ignored: unknown provider "opnai" | did you mean openai? the providers are ` +
				`openai, openai-compatible, builtin, gemini, claude, cohere, azure-openai, vertexai, bedrock, ` +
				`ai21, cloudflare, deepinfra, deepseek, ernie, github, groq, hunyuan, minimax, mistral, moonshot, openrouter, ` +
				`perplexity, qianwen, xai, zhipuai, jina, voyageai, ollama, llamacpp, lmstudio, vllm`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.text != "" {
				write(t, filepath.Join(dir, "config.yaml"), tt.text)
			}
			cfg, warnings, err := loadDir(t, dir, tt.environ...)
			if err != nil {
				t.Fatal(err)
			}
			var clients []string
			for _, c := range cfg.Clients {
				clients = append(clients, c.String())
			}
			if cfg.Model != tt.model || cfg.Save || !slices.Equal(clients, tt.clients) {
				t.Errorf("model %q, save %v, clients %q", cfg.Model, cfg.Save, clients)
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCatalog(t *testing.T) {
	cfg := mustLoad(t, `
clients:
  - type: openai
    models: [{name: gpt-4o}, {name: text-embedding-3-small, type: embedding}]
  - type: openai-compatible
    name: ollama
    models: [{name: "llama3.2:3b"}]
`)
	want := []string{"openai:gpt-4o", "ollama:llama3.2:3b", "builtin:extract", "builtin:echo", "builtin:script"}
	if diff := cmp.Diff(want, cfg.Catalog().IDs(catalog.Chat)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"openai", "ollama", "builtin"} {
		if c := cfg.Client(name); c == nil || c.Name != name {
			t.Errorf("Client(%q) = %v", name, c)
		}
	}
	if c := cfg.Client("claude"); c != nil {
		t.Errorf("Client(claude) = %v", c)
	}
}

func TestUserAgentHeader(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unset", "", ""},
		{"auto", "user_agent: auto", "loki/1.2.3"},
		{"own", "user_agent: mine/1", "mine/1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustLoad(t, tt.text).UserAgentHeader("1.2.3"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWrapColumns(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Wrap
		columns    int
		isNumber   bool
	}{
		{"unset", "", WrapAuto, 0, false},
		{"no", "wrap: no", "", 0, false},
		{"auto", "wrap: auto", WrapAuto, 0, false},
		{"number", "wrap: 80", "80", 80, true},
		{"number_in_quotes", "wrap: '080'", "80", 80, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := mustLoad(t, tt.text).Wrap
			n, ok := w.Columns()
			if w != tt.want || n != tt.columns || ok != tt.isNumber {
				t.Errorf("wrap %q, columns %d, %v", string(w), n, ok)
			}
			if again := mustLoad(t, "wrap: "+w.String()).Wrap; again != w {
				t.Errorf("%q written and read again is %q", string(w), string(again))
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	env := NewEnv("linux", []string{"LOKI_CONFIG_DIR=testdata", "LOKI_CONFIG_FILE=testdata/full.yaml"})
	paths, err := NewPaths(env)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Load(paths, env); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLoadVisibleTools(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"absent", "stream: true", nil},
		{"empty", "visible_tools: []", []string{}},
		{"null", "visible_tools: null", []string{}},
		{"commented_out", "visible_tools:\n#  - execute_command.sh\n", []string{}},
		{"some", "visible_tools: [fs_cat.sh]", []string{"fs_cat.sh"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// No list means the usual tools, a list without elements none.
			if got := mustLoad(t, tt.text).VisibleTools; (got == nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
				t.Errorf("%#v, want %#v", got, tt.want)
			}
		})
	}
}
