package display

// InfoPart is a part of what [Info] returns.
type InfoPart struct {
	Name string
	Keys []string
}

// InfoShort returns the keys of [Info] that matter most.
func InfoShort() []string {
	return []string{
		"model", "mode", "worktree", "temperature", "max_output_tokens", "stream", "dry_run", "enabled_tools", "enabled_mcp_servers", "auto_continue",
		"save_session", "prompt_log", "compression_threshold", "sandbox", "trusted", "config_file", "sessions_dir", "log_path",
	}
}

// InfoParts returns the parts. Each key of [Info] is in one of them.
func InfoParts() []InfoPart {
	return []InfoPart{
		{"model", []string{"model", "temperature", "top_p", "max_output_tokens", "stream", "dry_run"}},
		{"tools", []string{
			"mode", "worktree", "enabled_tools", "enabled_mcp_servers", "function_calling_support", "mcp_server_support", "auto_continue", "max_auto_continues", "workspace_instructions", "memory", "skills", "skill_dirs", "skill_list_tokens", "hooks", "mcp_sandbox",
		}},
		{"saving", []string{"save_session", "repl_session", "prompt_log", "save", "chat_durability", "store", "compression_threshold"}},
		{"knowledge", []string{"rag_embedding_model", "rag_reranker_model", "rag_top_k", "rag_chunk_size", "rag_chunk_overlap", "rag_threshold", "rag_store"}},
		{"sandbox", []string{
			"sandbox", "sandbox_scripts", "sandbox_read", "sandbox_write", "sandbox_hosts", "sandbox_environment", "trusted_dirs", "trusted",
		}},
		{"terminal", []string{"keybindings", "repl_history", "notify", "wrap", "wrap_code", "highlight", "theme"}},
		{"files", []string{
			"config_dir", "config_file", "env_file", "agents_dir", "roles_dir", "sessions_dir", "rags_dir", "macros_dir", "functions_dir", "messages_file",
			"vault_password_file", "state_dir", "log_path",
		}},
		{"server", []string{"api_auth"}},
	}
}
