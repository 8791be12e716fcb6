package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// topRequired are the fields a definition cannot do without.
var topRequired = []string{"name", "start", "nodes"}

// requiredFields are the fields a node of each type cannot do without, besides type.
var requiredFields = map[Type][]string{
	AgentNode:    {"agent", "prompt"},
	ScriptNode:   {"script"},
	ApprovalNode: {"question", "options", "routes", "on_other"},
	InputNode:    {"question"},
	LLMNode:      {"prompt"},
	RAGNode:      {"documents"},
	MapNode:      {"over", "as", "branch", "collect_into"},
	ToolNode:     {"tool"},
	EndNode:      {},
}

// optionalFields are the other fields that only some types have.
var optionalFields = map[Type][]string{
	AgentNode:    {"state_updates", "output_schema", "timeout", "fallback", "compensate", "retry", "on_uncertain", "sandbox", "worktree", "skills"},
	ScriptNode:   {"state_updates", "fallback", "compensate", "timeout", "retry", "on_uncertain", "cache", "sandbox"},
	ApprovalNode: {"state_updates", "timeout", "fallback", "compensate", "retry", "default", "assignee", "assignees", "expires"},
	InputNode:    {"state_updates", "timeout", "fallback", "compensate", "retry", "default", "validation", "assignee", "assignees", "expires"},
	LLMNode: {
		"state_updates", "output_schema", "timeout", "fallback", "compensate", "instructions", "tools", "skills", "memory", "model", "temperature", "top_p", "reasoning_effort",
		"max_attempts", "max_iterations", "retry", "on_uncertain", "cache",
	},
	RAGNode: {
		"state_updates", "timeout", "fallback", "compensate", "query", "top_k", "embedding_model", "reranker_model", "chunk_size", "chunk_overlap", "batch_size", "retry", "cache",
	},
	MapNode:   {"timeout", "output_key", "max_concurrency", "concurrency", "batch", "on_error", "min_success", "item_if", "enough", "fallback", "compensate", "retry"},
	GraphNode: append([]string{"file", "with", "outputs", "state_updates", "timeout", "fallback", "compensate", "retry"}, innerFields...),
	ToolNode:  {"arguments", "state_updates", "output_schema", "timeout", "fallback", "compensate", "retry", "on_uncertain", "cache"},
	WaitNode:  {"for", "until", "signal", "state_updates", "timeout", "default", "schema", "fallback", "compensate", "retry"},
	EndNode:   {"state_updates", "output"},
}

// requiredChoices say it of the types that have a choice.
var requiredChoices = map[Type]string{
	GraphNode: "start and nodes, or file",
	WaitNode:  "one of for, until, signal",
}

// requiredHint lists what is required.
func requiredHint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "required are, at the top level: %s; in every node: type", strings.Join(topRequired, ", "))
	for _, t := range Types {
		if fields := cmp.Or(requiredChoices[t], strings.Join(requiredFields[t], ", ")); fields != "" {
			fmt.Fprintf(&b, "; %s: %s", t, fields)
		}
	}
	return b.String()
}

// elsewhere says where a field belongs that nodes of the type t do not have: to other types, the top level or the settings; "" if
// there is no such field. An empty t is the top level.
func elsewhere(t Type, key string) string {
	var types []string
	for _, other := range Types {
		if other == GraphNode && slices.Contains(innerFields, key) {
			continue // it belongs to the top level first of all
		}
		if other != t && (slices.Contains(requiredFields[other], key) || slices.Contains(optionalFields[other], key)) {
			types = append(types, string(other))
		}
	}
	switch {
	case t == "" && slices.Contains(settingFields, key):
		return fmt.Sprintf("the top level has no %s, it is a field of settings", key)
	case t == "" && slices.Contains(commonFields, key):
		return fmt.Sprintf("the top level has no %s, it is a field of nodes", key)
	case t == "" && len(types) > 0:
		return fmt.Sprintf("the top level has no %s, it is a field of %s nodes", key, strings.Join(types, ", "))
	case t == "":
		return ""
	case len(types) > 0:
		return fmt.Sprintf("%s nodes have no %s, it is a field of %s", t, key, strings.Join(types, ", "))
	case slices.Contains(topFields, key):
		return fmt.Sprintf("%s nodes have no %s, it is a field of the top level", t, key)
	case slices.Contains(settingFields, key):
		return fmt.Sprintf("%s nodes have no %s, it is a field of settings", t, key)
	}
	return ""
}

func names[T ~string](words []T) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}
