package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/text/rank"
	"loki/internal/base/value"
)

// Tool is a tool of a server, as the server describes it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // of the arguments; an object that providers take
	ReadOnly    bool            // marked as read-only
	Destructive bool            // marked as destructive
}

const (
	maxPages    = 1000
	maxToolName = 256 // in bytes; longer ones are left out
)

// listing is the list of a server's tools, fetched when it is needed, and again after the
// server has announced a change.
type listing struct {
	fetching chan struct{} // holds one element while a goroutine fetches

	mu      sync.Mutex
	changes int // announced by the server
	known   *toolbox
}

// toolbox is one state of the list.
type toolbox struct {
	tools   []Tool
	byName  map[string]int // into tools
	ranking func() *rank.Index
}

func (l *listing) init() { l.fetching = make(chan struct{}, 1) }

func (l *listing) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	l.known = nil
}

// peek returns the list if it is known.
func (l *listing) peek() *toolbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// toolList returns the tools of the server.
func (c *conn) toolList(ctx context.Context) (*toolbox, error) {
	l := &c.tools
	if box := l.peek(); box != nil {
		return box, nil
	}
	select {
	case l.fetching <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("MCP server %q: %w", c.server.ID, context.Cause(ctx))
	}
	defer func() { <-l.fetching }()
	l.mu.Lock()
	box, changes := l.known, l.changes
	l.mu.Unlock()
	if box != nil {
		return box, nil
	}
	box, err := c.fetchTools(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes == changes {
		l.known = box
	}
	return box, nil
}

// fetchTools reads all pages.
func (c *conn) fetchTools(ctx context.Context) (*toolbox, error) {
	box := &toolbox{byName: make(map[string]int)}
	dropped := 0
	err := pages(func(cursor string) (string, error) {
		page, err := do(ctx, c, func(ctx context.Context) (*sdk.ListToolsResult, error) {
			return c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		})
		if err != nil {
			return "", err
		}
		var raw struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(original(page, page.Meta), &raw); err != nil {
			return "", fmt.Errorf("MCP server %q: its list of tools is not understood: %w", c.server.ID, err)
		}
		for _, t := range raw.Tools {
			if !box.add(t, c.opts.MaxTools) {
				dropped++
			}
		}
		if len(box.tools) >= c.opts.MaxTools {
			return "", nil
		}
		return page.NextCursor, nil
	})
	if _, refused := errors.AsType[*serverError](err); refused && c.can.Tools == nil {
		err = nil // the server announced it
	}
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		c.log.Warn("some tools of the MCP server were skipped: too many, or duplicate, empty or overlong names", "tools", dropped)
	}
	box.index(c.server.ID)
	return box, nil
}

// pages calls fetch with the cursor of each page, until it returns "" or one that it had before, as servers of one page
// do. Pages without an end are an error.
func pages(fetch func(cursor string) (next string, err error)) error {
	seen := make(map[string]bool)
	for cursor := ""; ; {
		next, err := fetch(cursor)
		if err != nil || next == "" || seen[next] {
			return err
		}
		if len(seen) >= maxPages {
			return errors.New("the server's list does not end")
		}
		seen[next] = true
		cursor = next
	}
}

// add appends a tool and reports true, unless the tool cannot be called. Only its name must be understood.
func (b *toolbox) add(raw json.RawMessage, limit int) bool {
	var t struct {
		Name        string          `json:"name"`
		Title       json.RawMessage `json:"title"`
		Description json.RawMessage `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations"`
	}
	if json.Unmarshal(raw, &t) != nil {
		return false
	}
	if _, double := b.byName[t.Name]; double || t.Name == "" || len(t.Name) > maxToolName || len(b.tools) >= limit {
		return false
	}
	tool := Tool{Name: t.Name, Schema: schemaText(t.InputSchema)}
	if _ = json.Unmarshal(t.Description, &tool.Description); tool.Description == "" {
		_ = json.Unmarshal(t.Title, &tool.Description)
	}
	var hints map[string]json.RawMessage
	_ = json.Unmarshal(t.Annotations, &hints)
	_ = json.Unmarshal(hints["readOnlyHint"], &tool.ReadOnly)
	// The protocol's default is true, but hardly any server sets false.
	_ = json.Unmarshal(hints["destructiveHint"], &tool.Destructive)
	tool.Destructive = tool.Destructive && !tool.ReadOnly
	b.byName[t.Name] = len(b.tools)
	b.tools = append(b.tools, tool)
	return true
}

// index prepares the search.
func (b *toolbox) index(server string) {
	b.ranking = sync.OnceValue(func() *rank.Index {
		docs := make([]string, len(b.tools))
		for i, t := range b.tools {
			docs[i] = t.Name + "\n" + t.Description + "\nserver:" + server
		}
		return rank.New(docs)
	})
}

func (b *toolbox) lookup(name string) (Tool, bool) {
	i, ok := b.byName[name]
	if !ok {
		return Tool{}, false
	}
	return b.tools[i], true
}

// anything is the schema of unknown arguments.
const anything = `{"type":"object","additionalProperties":true}`

// schemaText returns the schema of an object, even if the server sent something
// else. It keeps the order and the numbers of the server.
func schemaText(raw json.RawMessage) json.RawMessage {
	v, err := value.ParseJSON(raw)
	object := v.AsObject()
	if err != nil || object == nil {
		return json.RawMessage(anything)
	}
	var compact bytes.Buffer
	t, _ := object.Get("type")
	if name, _ := t.AsString(); name == "object" && json.Compact(&compact, raw) == nil {
		return compact.Bytes()
	}
	return value.ObjectOf(value.Member{Name: "type", Value: value.Of("object")}).Merge(object.Without("type")).Value().AppendJSON(nil)
}
