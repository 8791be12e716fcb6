package config

import "loki/internal/yamldoc"

// readOthers makes the keys known that programs with similar files have: those with another
// name here, and those that mean nothing here.
func readOthers(root *yamldoc.Map) {
	for old, now := range map[string]string{
		"use_tools":          "enabled_tools",
		"agent_prelude":      "agent_session",
		"compress_threshold": "compression_threshold",
		"summarize_prompt":   "summarization_prompt",
		"summary_prompt":     "summary_context_prompt",
	} {
		root.Renamed(old, now)
	}
	root.Foreign(
		"secrets_provider",
		"skills_enabled", "enabled_skills", "visible_skills", "inject_skill_instructions", "skill_instructions",
		"enabled_macros", "no_workspace_macros",
		"memory", "memory_cap_with_tools", "memory_cap_without_tools",
		"workspace_instructions", "workspace_instructions_files", "no_workspace_mcp",
		"compression_keep_last", "max_tool_result_chars", "raw_markdown",
		"rag_extractor_model", "rag_extractor_prompt", "rag_graph_hops",
	)
}
