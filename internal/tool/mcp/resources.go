package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// maxListed bounds how many resources or prompts of a server are listed.
const maxListed = 1000

// resourceTool returns the function that lists and reads the resources of a server. It
// needs a connection, which shows whether the server has any.
func (l *connection) resourceTool(taken map[string]bool) []tool.Tool {
	c, err := l.current()
	if err != nil || c == nil || c.can.Resources == nil {
		return nil
	}
	return []tool.Tool{&function{
		declared: chat.Tool{
			Name: l.name("resources", taken),
			Description: fmt.Sprintf("List the resources of the MCP server %q, such as files and records, or read one of them. "+
				"Without a uri they are listed.", l.server.ID),
			Parameters: json.RawMessage(`{"type":"object","properties":{` +
				`"uri":{"type":"string","description":"resource to read, from the list or made from a template of it"}}}`),
		},
		hints: tool.Hints{ReadOnly: true, Timeout: ownLimit},
		run:   l.resources,
	}}
}

// Resource is a resource that a server offers, or a template of some.
type Resource struct {
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uri_template,omitempty"` // RFC 6570; instead of a URI
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mime_type,omitempty"`
}

func (l *connection) resources(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct {
		URI string `json:"uri"`
	}](call)
	if err != nil {
		return tool.Result{}, err
	}
	out, err := use(ctx, l, true, func(c *conn) (tool.Result, error) {
		if args.URI != "" {
			shown, err := c.readResource(ctx, args.URI)
			return tool.Result{Output: shown.text(), Pictures: shown.pictures}, err
		}
		list, err := c.listResources(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		return answer(list)
	})
	if err != nil {
		return tool.Result{}, fmt.Errorf("MCP resources failed: %w", err)
	}
	return out, nil
}

func (c *conn) readResource(ctx context.Context, uri string) (shown contents, err error) {
	result, err := do(ctx, c, func(ctx context.Context) (*sdk.ReadResourceResult, error) {
		return c.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
	if err != nil {
		return shown, err
	}
	shown.keep = c.opts.Keep
	var raw struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(original(result, result.Meta), &raw); err != nil {
		return shown, fmt.Errorf("MCP server %q: the resource is not understood: %w", c.server.ID, err)
	}
	for _, r := range raw.Contents {
		shown.addResource(r)
	}
	return shown, nil
}

// listResources returns the resources and, after them, the templates.
func (c *conn) listResources(ctx context.Context) ([]Resource, error) {
	list := []Resource{}
	err := pages(func(cursor string) (string, error) {
		page, err := do(ctx, c, func(ctx context.Context) (*sdk.ListResourcesResult, error) {
			return c.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		})
		if err != nil {
			return "", err
		}
		for _, r := range page.Resources {
			if r != nil && len(list) < maxListed {
				list = append(list, Resource{URI: r.URI, Name: r.Name, Description: text.Cut(r.Description, maxHint), MIMEType: r.MIMEType})
			}
		}
		return c.more(page.NextCursor, len(list)), nil
	})
	if err != nil {
		return nil, err
	}
	templates, err := do(ctx, c, func(ctx context.Context) (*sdk.ListResourceTemplatesResult, error) {
		return c.session.ListResourceTemplates(ctx, nil)
	})
	if err != nil {
		return list, nil // not every server supports the request
	}
	for _, t := range templates.ResourceTemplates {
		if t != nil && len(list) < maxListed {
			list = append(list, Resource{Template: t.URITemplate, Name: t.Name, Description: text.Cut(t.Description, maxHint), MIMEType: t.MIMEType})
		}
	}
	return list, nil
}

// Resources returns the resources of the server with that id and, after them, the templates of some; nil if it has
// no resources.
func (s *Scope) Resources(ctx context.Context, server string) ([]Resource, error) {
	return useServer(ctx, s, server, func(c *conn) ([]Resource, error) {
		if c.can.Resources == nil {
			return nil, nil
		}
		return c.listResources(ctx)
	})
}

// Resource returns the text of a resource of the server with that id. Of what is not text it says what it is.
func (s *Scope) Resource(ctx context.Context, server, uri string) (string, error) {
	return useServer(ctx, s, server, func(c *conn) (string, error) {
		shown, err := c.readResource(ctx, uri)
		return shown.text(), err
	})
}

// List returns the tools of the server with that id, as it describes them.
func (s *Scope) List(ctx context.Context, server string) ([]Tool, error) {
	return useServer(ctx, s, server, func(c *conn) ([]Tool, error) {
		box, err := c.toolList(ctx)
		if err != nil {
			return nil, err
		}
		return box.tools, nil
	})
}

// more returns the cursor of the next page, unless n entries are enough.
func (c *conn) more(next string, n int) string {
	if n >= maxListed {
		return ""
	}
	return next
}
