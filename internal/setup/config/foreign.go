package config

import (
	"fmt"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// renamed are the keys that programs with similar files have under another name, each followed by the name here.
var renamed = [...][2]string{
	{"use_tools", "enabled_tools"},
	{"agent_prelude", "agent_session"},
	{"compress_threshold", "compression_threshold"},
	{"summarize_prompt", "summarization_prompt"},
	{"summary_prompt", "summary_context_prompt"},
}

// readRenamed makes the old names of keys mean the present ones, with one note for the file.
func (c *Config) readRenamed(root *yamldoc.Map) {
	var used []string
	for _, names := range renamed {
		if root.Renamed(names[0], names[1]) {
			used = append(used, names[0]+" is "+names[1]+" now")
		}
	}
	if used != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("%s has old names of keys, which are read and can be renamed: %s", c.File, strings.Join(used, ", ")))
	}
}

// withdrawn are the keys of older versions that mean nothing now.
var withdrawn = []string{"rag_chunker", "rag_quantization", "rag_neighbors", "rag_diversity", "rag_max_pages"}

// ignoreWithdrawn makes the keys of older versions known, with one note for the file.
func (c *Config) ignoreWithdrawn(root *yamldoc.Map) {
	var used []string
	for _, key := range withdrawn {
		if root.Has(key) {
			used = append(used, key)
		}
	}
	if used != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("%s has keys that have no effect anymore and can be left out: %s", c.File, strings.Join(used, ", ")))
	}
}

// ignoreOthers makes the keys known that programs with similar files have and that mean nothing here.
func ignoreOthers(root *yamldoc.Map) {
	root.Foreign(
		"secrets_provider",
		"skills_enabled", "enabled_skills", "visible_skills", "inject_skill_instructions", "skill_instructions",
		"enabled_macros", "no_workspace_macros",
		"memory_cap_with_tools", "memory_cap_without_tools",
		"workspace_instructions_files", "no_workspace_mcp",
		"compression_keep_last", "max_tool_result_chars", "raw_markdown",
		"rag_extractor_model", "rag_extractor_prompt", "rag_graph_hops",
	)
}
