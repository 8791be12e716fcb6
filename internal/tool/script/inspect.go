package script

import (
	"bytes"
	"encoding/json"

	"loki/internal/chat"
	"loki/internal/tool"
)

// Schema returns the declarations of tools as models see them: a JSON array, indented, and
// a line feed.
func Schema(tools []tool.Tool) ([]byte, error) {
	list := make([]chat.Tool, 0, len(tools))
	for _, t := range tools {
		list = append(list, t.Declaration())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(list); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
