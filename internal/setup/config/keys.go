package config

import "strings"

// key is one setting of config.yaml. What it may hold, in the file and in the
// environment, follows from the type of its field.
type key struct {
	name  string
	field func(*Config) any // a pointer to the field
	env   bool              // LOKI_ and the name in capitals overrides the file
}

func (k key) variable() string { return "LOKI_" + strings.ToUpper(k.name) }

// keys are the settings, all but clients, in the order they are documented.
var keys = []key{
	{"model", func(c *Config) any { return &c.Model }, true},
	{"temperature", func(c *Config) any { return &c.Temperature }, true},
	{"top_p", func(c *Config) any { return &c.TopP }, true},
	{"reasoning_effort", func(c *Config) any { return &c.Effort }, true},
	{"dry_run", func(c *Config) any { return &c.DryRun }, true},
	{"stream", func(c *Config) any { return &c.Stream }, true},
	{"save", func(c *Config) any { return &c.Save }, true},
	{"prompt_log", func(c *Config) any { return &c.PromptLog }, true},
	{"keybindings", func(c *Config) any { return &c.Keybindings }, true},
	{"editor", func(c *Config) any { return &c.Editor }, true},
	{"wrap", func(c *Config) any { return &c.Wrap }, true},
	{"wrap_code", func(c *Config) any { return &c.WrapCode }, true},
	{"vault_password_file", func(c *Config) any { return &c.VaultPasswordFile }, true},
	{"vault_password_command", func(c *Config) any { return &c.VaultPasswordCommand }, true},
	{"vault_keychain", func(c *Config) any { return &c.VaultKeychain }, true},
	{"function_calling_support", func(c *Config) any { return &c.FunctionCallingSupport }, true},
	{"mapping_tools", func(c *Config) any { return &c.MappingTools }, true},
	{"enabled_tools", func(c *Config) any { return &c.EnabledTools }, true},
	{"visible_tools", func(c *Config) any { return &c.VisibleTools }, false},
	{"trusted_dirs", func(c *Config) any { return &c.TrustedDirs }, true},
	{"permission", func(c *Config) any { return &c.Permission }, false},
	{"sandbox", func(c *Config) any { return &c.Sandbox }, false},
	{"hooks", func(c *Config) any { return &c.Hooks }, false},
	{"tool_timeout", func(c *Config) any { return &c.ToolTimeout }, false},
	{"tool_max_output", func(c *Config) any { return &c.ToolMaxOutput }, false},
	{"mcp_server_support", func(c *Config) any { return &c.MCPServerSupport }, true},
	{"mcp_pool", func(c *Config) any { return &c.MCPPool }, false},
	{"mapping_mcp_servers", func(c *Config) any { return &c.MappingMCPServers }, true},
	{"enabled_mcp_servers", func(c *Config) any { return &c.EnabledMCPServers }, true},
	{"auto_continue", func(c *Config) any { return &c.AutoContinue }, false},
	{"max_auto_continues", func(c *Config) any { return &c.MaxAutoContinues }, false},
	{"inject_todo_instructions", func(c *Config) any { return &c.InjectTodoInstructions }, false},
	{"continuation_prompt", func(c *Config) any { return &c.ContinuationPrompt }, false},
	{"repl_prelude", func(c *Config) any { return &c.REPLPrelude }, true},
	{"cmd_prelude", func(c *Config) any { return &c.CmdPrelude }, true},
	{"agent_session", func(c *Config) any { return &c.AgentSession }, true},
	{"save_session", func(c *Config) any { return &c.SaveSession }, true},
	{"chat_durability", func(c *Config) any { return &c.ChatDurability }, true},
	{"store", func(c *Config) any { return &c.Store }, true},
	{"compression_threshold", func(c *Config) any { return &c.CompressionThreshold }, true},
	{"summarization_prompt", func(c *Config) any { return &c.SummarizationPrompt }, true},
	{"summarization_model", func(c *Config) any { return &c.SummarizationModel }, true},
	{"summary_context_prompt", func(c *Config) any { return &c.SummaryContextPrompt }, true},
	{"rag_embedding_model", func(c *Config) any { return &c.RAGEmbeddingModel }, true},
	{"rag_reranker_model", func(c *Config) any { return &c.RAGRerankerModel }, true},
	{"rag_top_k", func(c *Config) any { return &c.RAGTopK }, true},
	{"rag_chunk_size", func(c *Config) any { return &c.RAGChunkSize }, true},
	{"rag_chunk_overlap", func(c *Config) any { return &c.RAGChunkOverlap }, true},
	{"rag_threshold", func(c *Config) any { return &c.RAGThreshold }, true},
	{"rag_store", func(c *Config) any { return &c.RAGStore }, true},
	{"rag_template", func(c *Config) any { return &c.RAGTemplate }, true},
	{"document_loaders", func(c *Config) any { return &c.DocumentLoaders }, true},
	{"highlight", func(c *Config) any { return &c.Highlight }, true},
	{"theme", func(c *Config) any { return &c.Theme }, true},
	{"left_prompt", func(c *Config) any { return &c.LeftPrompt }, true},
	{"right_prompt", func(c *Config) any { return &c.RightPrompt }, true},
	{"repl_history", func(c *Config) any { return &c.REPLHistory }, true},
	{"repl_session", func(c *Config) any { return &c.REPLSession }, true},
	{"workspace_instructions", func(c *Config) any { return &c.WorkspaceInstructions }, true},
	{"instruction_files", func(c *Config) any { return &c.InstructionFiles }, false},
	{"ignore_files", func(c *Config) any { return &c.IgnoreFiles }, false},
	{"instruction_max_bytes", func(c *Config) any { return &c.InstructionMaxBytes }, true},
	{"notify", func(c *Config) any { return &c.Notify }, true},
	{"notify_after", func(c *Config) any { return &c.NotifyAfter }, true},
	{"user_agent", func(c *Config) any { return &c.UserAgent }, true},
	{"save_shell_history", func(c *Config) any { return &c.SaveShellHistory }, true},
	{"usage_log", func(c *Config) any { return &c.UsageLog }, true},
	{"sync_models_url", func(c *Config) any { return &c.SyncModelsURL }, true},
	{"release_feed", func(c *Config) any { return &c.ReleaseFeed }, true},
	{"release_key", func(c *Config) any { return &c.ReleaseKey }, true},
	{"serve_addr", func(c *Config) any { return &c.ServeAddr }, true},
}
