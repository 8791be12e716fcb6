package script

import (
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// Schema returns the declarations of tools as models see them: a JSON array, indented, and
// a line feed.
func Schema(tools []tool.Tool) ([]byte, error) {
	list := make([]chat.Tool, 0, len(tools))
	for _, t := range tools {
		list = append(list, t.Declaration())
	}
	return value.MarshalLines(list)
}
