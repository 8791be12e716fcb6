package script

import (
	"bytes"
	"context"
	"encoding/json"

	"loki/internal/chat"
	"loki/internal/fault"
	"loki/internal/steps"
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

// CallOnce makes one call as a model would make it, and returns what the model would read.
// o.Tools has to hold the tool. The error is a *fault.Error of code NotFound if there is
// no such tool, or one of [tool.Box]'s.
func CallOnce(ctx context.Context, o tool.Options, name, arguments string) (text string, failed bool, err error) {
	if _, ok := o.Tools.Lookup(name); !ok {
		return "", false, fault.New(fault.NotFound, "%s", (&tool.UnknownError{Name: name, Available: o.Tools.Names()}).Error())
	}
	return tool.NewBox(o).Call(ctx, chat.ToolCall{ID: "call", Name: name, Arguments: arguments}, steps.Steps{})
}
