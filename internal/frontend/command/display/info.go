package display

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"loki/internal/app"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
	"loki/internal/tool/mcp"
	"loki/internal/workflow/graph"
)

// InfoText returns the settings of [Info] one a line, in two columns that scripts rely on.
func InfoText(info *value.Object) string {
	var b strings.Builder
	for name, v := range info.All() {
		text := v.Text()
		if f, ok := v.AsFloat(); ok && v.Kind() == value.Float {
			text = strconv.FormatFloat(f, 'f', -1, 64) // without its point where it is whole
		}
		fmt.Fprintf(&b, "%-30s%s\n", name, text)
	}
	return b.String()
}

// Info returns the settings that are in force in a conversation, and where files are, in an order that scripts
// rely on.
func Info(a *app.App, conv *conversation.Conversation) *value.Object {
	cfg, p, s, st := a.Config, a.Paths, conv.Settings(), conv.State()
	set := func(key string) value.Value { return settingValue(conv.Setting(key)) }
	threshold, maxOutput := set("compression_threshold"), set("max_output_tokens")
	if m, err := a.Catalog.Resolve(st.Model, catalog.Chat); err == nil {
		if threshold.Kind() == value.Null {
			threshold = value.Of(strconv.Itoa(session.Threshold(m.MaxInputTokens)) + " (current model)")
		}
		switch {
		case maxOutput.Kind() != value.Null:
			maxOutput = value.Of(maxOutput.Text() + " (current model)")
		case m.RequireMaxTokens && m.MaxOutputTokens > 0:
			maxOutput = value.Of(strconv.Itoa(m.MaxOutputTokens) + " (current model)")
		}
	}
	reranker := set("rag_reranker_model")
	if reranker.Kind() == value.Null {
		reranker = value.Optional(cfg.RAGRerankerModel)
	}
	return value.ObjectOf([]value.Member{
		{Name: "model", Value: value.OrNull(st.Model)},
		{Name: "temperature", Value: value.Optional(s.Temperature)},
		{Name: "top_p", Value: value.Optional(s.TopP)},
		{Name: "mode", Value: value.Of(string(cmp.Or(conv.Mode(), chat.ModeAsk)))},
		{Name: "worktree", Value: worktreeInfo(a, conv)},
		{Name: "enabled_tools", Value: value.Optional(s.EnabledTools)},
		{Name: "enabled_mcp_servers", Value: value.Optional(s.EnabledMCPServers)},
		{Name: "max_output_tokens", Value: maxOutput},
		{Name: "save_session", Value: set("save_session")},
		{Name: "chat_durability", Value: value.Of(string(cmp.Or(cfg.ChatDurability, graph.DurabilityOff)))},
		{Name: "store", Value: value.OrNull(redact.MaskAddress(a.Hide(*cmp.Or(cfg.Store, new("")))))},
		{Name: "api_auth", Value: value.Of(cmp.Or(cfg.API, config.DefaultAPI()).Auth.Mode)},
		{Name: "compression_threshold", Value: threshold},
		{Name: "rag_reranker_model", Value: reranker},
		{Name: "rag_top_k", Value: set("rag_top_k")},
		{Name: "rag_embedding_model", Value: value.Optional(cfg.RAGEmbeddingModel)},
		{Name: "rag_chunk_size", Value: value.Optional(cfg.RAGChunkSize)},
		{Name: "rag_chunk_overlap", Value: value.Optional(cfg.RAGChunkOverlap)},
		{Name: "rag_threshold", Value: value.Optional(cfg.RAGThreshold)},
		{Name: "rag_store", Value: value.OrNull(redact.MaskAddress(a.Hide(*cmp.Or(cfg.RAGStore, new("")))))},
		{Name: "dry_run", Value: value.Of(st.DryRun)},
		{Name: "function_calling_support", Value: set("function_calling_support")},
		{Name: "mcp_server_support", Value: set("mcp_server_support")},
		{Name: "sandbox", Value: sandboxInfo(a)},
		{Name: "sandbox_scripts", Value: value.Of(string(cmp.Or(cfg.Sandbox.Scripts, sandbox.Full)))},
		{Name: "sandbox_read", Value: listText(cfg.Sandbox.Read)},
		{Name: "sandbox_write", Value: listText(cfg.Sandbox.Write)},
		{Name: "sandbox_hosts", Value: listText(cfg.Sandbox.Hosts)},
		{Name: "sandbox_environment", Value: listText(cfg.Sandbox.Environment)},
		{Name: "trusted_dirs", Value: listText(cfg.TrustedDirs)},
		{Name: "trusted", Value: trustedInfo(a)},
		{Name: "hooks", Value: hooksInfo(a)},
		{Name: "mcp_sandbox", Value: serverLevels(a)},
		{Name: "auto_continue", Value: value.Of(st.AutoContinue)},
		{Name: "max_auto_continues", Value: set("max_auto_continues")},
		{Name: "stream", Value: value.Of(st.Stream)},
		{Name: "save", Value: value.Of(st.Save)},
		{Name: "prompt_log", Value: set("prompt_log")},
		{Name: "keybindings", Value: value.Of(string(cfg.Keybindings))},
		{Name: "repl_history", Value: value.Of(cfg.REPLHistory)},
		{Name: "workspace_instructions", Value: value.Of(string(cfg.WorkspaceInstructions))},
		{Name: "memory", Value: value.Of(string(cfg.Memory))},
		{Name: "skills", Value: value.Optional(cfg.Skills)},
		{Name: "skill_dirs", Value: listText(cfg.SkillDirs)},
		{Name: "skill_list_tokens", Value: value.Of(int(cfg.SkillListTokens))},
		{Name: "repl_session", Value: value.Of(cfg.REPLSession)},
		{Name: "notify", Value: value.Of(string(cfg.Notify))},
		{Name: "wrap", Value: value.Of(cfg.Wrap.String())},
		{Name: "wrap_code", Value: value.Of(cfg.WrapCode)},
		{Name: "highlight", Value: value.Of(st.Highlight)},
		{Name: "theme", Value: value.Optional(cfg.Theme)},
		{Name: "config_dir", Value: value.OrNull(p.ConfigDir)},
		{Name: "config_file", Value: value.OrNull(p.ConfigFile)},
		{Name: "env_file", Value: value.OrNull(p.EnvFile)},
		{Name: "agents_dir", Value: value.OrNull(p.AgentsDir)},
		{Name: "roles_dir", Value: value.OrNull(p.RolesDir)},
		{Name: "sessions_dir", Value: value.OrNull(p.SessionsDir)},
		{Name: "rags_dir", Value: value.OrNull(p.RAGsDir)},
		{Name: "macros_dir", Value: value.OrNull(p.MacrosDir)},
		{Name: "functions_dir", Value: value.OrNull(p.FunctionsDir)},
		{Name: "messages_file", Value: value.OrNull(p.MessagesFile)},
		{Name: "vault_password_file", Value: value.OrNull(cmp.Or(*cmp.Or(cfg.VaultPasswordFile, new("")), p.VaultPasswordFile))},
		{Name: "state_dir", Value: value.OrNull(p.StateDir)},
		{Name: "log_path", Value: value.OrNull(p.LogFile)},
	}...)
}

// settingValue returns what the text of a setting stands for.
func settingValue(text string) value.Value {
	if text == "null" {
		return value.Value{}
	}
	if b, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
		return value.Of(b)
	}
	if n, err := strconv.Atoi(text); err == nil {
		return value.Of(n)
	}
	return value.Of(text)
}

// sandboxInfo returns what the kernel holds, for --info.
func sandboxInfo(a *app.App) value.Value {
	box, err := a.Sandbox()
	if err != nil {
		return value.Value{}
	}
	switch s := box.Support(); {
	case !s.Files:
		return value.Of("none: " + s.Missing)
	case s.Missing != "":
		return value.Of(s.How + "; not held: " + s.Missing)
	default:
		return value.Of(s.How)
	}
}

// listText returns the elements of a list as one text, null if there are none.
func listText(list []string) value.Value { return value.OrNull(strings.Join(list, ", ")) }

// worktreeInfo returns the worktree that a conversation works in, for --info; null for none.
func worktreeInfo(a *app.App, conv *conversation.Conversation) value.Value {
	dir, err := conv.WorkDir()
	if err != nil {
		return value.Value{}
	}
	t := a.Worktrees().Look(dir)
	if t == nil {
		return value.Value{}
	}
	return value.Of(t.Name + ", on the branch " + t.Branch())
}

// trustedInfo returns how many directories the user trusts, for --info; null if the record cannot be read.
func trustedInfo(a *app.App) value.Value {
	records, err := a.Trust.Store().List()
	if err != nil {
		return value.Value{}
	}
	return value.Of(len(records))
}

// serverLevels returns the level of each server that is a program, for --info.
func serverLevels(a *app.App) value.Value {
	file, err := mcp.Read(a.Paths.MCPFile())
	if err != nil {
		return value.Value{}
	}
	var levels []string
	for _, s := range file.Servers {
		if s.Type == mcp.Stdio && s.Err == nil {
			levels = append(levels, s.ID+": "+cmp.Or(s.Sandbox.String(), "full, not chosen"))
		}
	}
	return listText(levels)
}

// hooksInfo lists the user's hooks, with the levels of the confined ones, for --info.
func hooksInfo(a *app.App) value.Value {
	hooks := a.UserHooks()
	texts := make([]string, len(hooks))
	for i, h := range hooks {
		texts[i] = string(h.Kind) + ": " + strings.TrimPrefix(h.String(), "hook ")
		if h.Level != "" && h.Level != sandbox.Full {
			texts[i] += " at level " + string(h.Level)
		}
	}
	return listText(texts)
}
