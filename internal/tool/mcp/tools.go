package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

const (
	defaultTop = 8
	maxTop     = 20
	// maxDirect is how many tools of one server are declared; providers take 128 in all.
	maxDirect = 100
	// maxHint is how much of a tool's description a search shows, in bytes.
	maxHint = 1000
)

// ownLimit replaces the time limit of a tool where this package has its own limit, which
// does not count the time that the user takes to answer a question of the server.
const ownLimit = 24 * time.Hour

// function is one tool for the model.
type function struct {
	declared chat.Tool
	hints    tool.Hints
	of       string // name of the server's tool, empty for the functions that are Loki's
	run      func(ctx context.Context, call tool.Call) (tool.Result, error)
}

func (f *function) Declaration() chat.Tool { return f.declared }

func (f *function) Hints() tool.Hints { return f.hints }

// Fit implements [tool.Fitter]. What a server's tool takes is known where it is called, and the others read what they need.
func (f *function) Fit(args json.RawMessage) (json.RawMessage, error) { return args, nil }

func (f *function) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return f.run(ctx, call)
}

// toolset returns the tools for the server. The names are added to taken.
func (l *connection) toolset(ctx context.Context, taken map[string]bool) ([]tool.Tool, error) {
	if l.server.Err != nil {
		return nil, l.server.Err
	}
	if l.server.Expose == Direct {
		return l.direct(ctx, taken)
	}
	return l.meta(taken), nil
}

// name returns the name of one of the functions for the server.
func (l *connection) name(verb string, taken map[string]bool) string {
	return unique("mcp__"+verb+"_"+l.slug(), maxName, verb+"\x00"+l.server.ID, taken)
}

func (l *connection) slug() string {
	if l.server.slug == "" { // not from a file
		return unique(slugOf(l.server.ID), maxSlug, l.server.ID, make(map[string]bool))
	}
	return l.server.slug
}

func (l *connection) meta(taken map[string]bool) []tool.Tool {
	id := l.server.ID
	invoke, search, describe := l.name("invoke", taken), l.name("search", taken), l.name("describe", taken)
	tools := []tool.Tool{
		&invoker{
			function: function{
				declared: chat.Tool{
					Name: invoke,
					Description: fmt.Sprintf("Run a tool of the MCP server %q. Call %s first to learn the tool's parameters, "+
						"unless you know them already.", id, describe),
					Parameters: json.RawMessage(`{"type":"object","properties":{` +
						`"tool":{"type":"string","description":"name of the tool"},` +
						`"arguments":{"type":"object","description":"arguments of the tool, as its schema says","additionalProperties":true}},` +
						`"required":["tool"]}`),
				},
				hints: tool.Hints{Destructive: true, Timeout: ownLimit},
			},
			link:     l,
			describe: describe,
		},
		&function{
			declared: chat.Tool{
				Name: search,
				Description: fmt.Sprintf("Find tools of the MCP server %q by keywords. The result is a short list of candidates; "+
					"%s returns the parameters of one.", id, describe),
				Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
					`"query":{"type":"string","description":"keywords for what you want to do"},`+
					`"top_k":{"type":"integer","minimum":1,"maximum":%d,"default":%d,"description":"how many candidates"}},`+
					`"required":["query"]}`, maxTop, defaultTop)),
			},
			hints: tool.Hints{ReadOnly: true, Timeout: ownLimit},
			run:   l.search,
		},
		&function{
			declared: chat.Tool{
				Name:        describe,
				Description: fmt.Sprintf("Return the JSON Schema of the arguments that one tool of the MCP server %q takes.", id),
				Parameters: json.RawMessage(`{"type":"object","properties":{` +
					`"tool":{"type":"string","description":"name of the tool, such as search_issues"}},"required":["tool"]}`),
			},
			hints: tool.Hints{ReadOnly: true, Timeout: ownLimit},
			run:   l.describe,
		},
	}
	return append(tools, l.resourceTool(taken)...)
}

// candidate is a tool in the result of a search.
type candidate struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Description string `json:"description"`
}

func (l *connection) search(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct {
		Query *string  `json:"query"`
		TopK  *float64 `json:"top_k"`
	}](call)
	if err != nil {
		return tool.Result{}, fmt.Errorf("MCP search failed: %w", err)
	}
	if args.Query == nil {
		return tool.Result{}, fmt.Errorf("MCP search failed: query is missing")
	}
	top := defaultTop
	if args.TopK != nil {
		top = int(min(*args.TopK, maxTop))
		if *args.TopK < 0 || *args.TopK != float64(int64(*args.TopK)) {
			return tool.Result{}, fmt.Errorf("MCP search failed: top_k must be a whole number from 0 to %d", maxTop)
		}
	}
	box, err := l.list(ctx)
	if err != nil {
		return tool.Result{}, fmt.Errorf("MCP search failed: %w", err)
	}
	found := []candidate{}
	for _, i := range box.ranking().Search(*args.Query, top) {
		t := box.tools[i]
		found = append(found, candidate{t.Name, l.server.ID, text.Cut(t.Description, maxHint)})
	}
	return answer(found)
}

func (l *connection) describe(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct {
		Tool string `json:"tool"`
	}](call)
	if err != nil {
		return tool.Result{}, fmt.Errorf("MCP describe failed: %w", err)
	}
	if args.Tool == "" {
		return tool.Result{}, fmt.Errorf("MCP describe failed: tool is missing")
	}
	box, err := l.list(ctx)
	if err != nil {
		return tool.Result{}, fmt.Errorf("MCP describe failed: %w", err)
	}
	t, ok := box.lookup(args.Tool)
	if !ok {
		return tool.Result{}, fmt.Errorf("MCP describe failed: %w", box.missingError(args.Tool, l.server.ID))
	}
	return answer(map[string]any{
		"type": "object",
		"properties": map[string]any{
			"tool":      map[string]string{"type": "string"},
			"arguments": t.Schema,
		},
	})
}

// missingError returns the error for a tool that is not in the list.
func (b *toolbox) missingError(name, server string) error {
	if near := yamldoc.Nearest(name, slices.Sorted(maps.Keys(b.byName))); near != "" {
		return fmt.Errorf("the MCP server %q has no tool %q; did you mean %q?", server, name, near)
	}
	return fmt.Errorf("the MCP server %q has no tool %q", server, name)
}

func answer(v any) (tool.Result, error) {
	text, err := json.Marshal(v)
	return tool.Result{Output: string(text)}, err
}

// list returns the server's tools.
func (l *connection) list(ctx context.Context) (*toolbox, error) {
	return use(ctx, l, true, func(c *conn) (*toolbox, error) { return c.toolList(ctx) })
}

// call runs a tool of the server. If it became a task before the run was interrupted, its result is that of the task.
func (l *connection) call(ctx context.Context, name string, arguments json.RawMessage, record steps.Steps) (tool.Result, error) {
	var out tool.Result
	var result toolResult
	begun, _, err := steps.ReadNote[taskNote](ctx, record, tool.TaskNote)
	if err != nil {
		return out, err
	}
	if result.Task = begun.ID; result.Task == "" {
		result, out.Refused, err = l.begin(ctx, name, arguments)
	}
	if err == nil && result.Task != "" {
		result, err = l.await(ctx, name, result.Task, record)
	}
	if err != nil {
		return out, err
	}
	shown := result.contents(l.scope.pool.opts.Keep)
	if err := failure(result, shown.text()); err != nil {
		return out, err
	}
	out.Output, out.Pictures = shown.text(), shown.pictures
	return out, nil
}

// begin calls a tool of the server. The result may be a task. Refused is what the sandbox withheld.
func (l *connection) begin(ctx context.Context, name string, arguments json.RawMessage) (result toolResult, refused []sandbox.Refusal, err error) {
	result, err = use(ctx, l, false, func(c *conn) (toolResult, error) {
		arguments, err := c.fit(ctx, name, arguments)
		if err != nil {
			return toolResult{}, fmt.Errorf("%s was not run: %w. Write the call again", name, err)
		}
		end, err := c.watch()
		if err != nil {
			return toolResult{}, fmt.Errorf("%s was not run: %w", name, err)
		}
		result, err := c.callTool(ctx, name, arguments, &call{scope: l.scope})
		if refused = end(); err != nil {
			err = fmt.Errorf("MCP tool invocation failed: %w", err)
		}
		return result, err
	})
	return result, refused, err
}

// direct returns the server's own tools.
func (l *connection) direct(ctx context.Context, taken map[string]bool) ([]tool.Tool, error) {
	box, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(box.tools) > maxDirect {
		l.scope.pool.opts.Log.Warn("an MCP server has too many tools to declare them all; the model gets functions to search them",
			"mcp_server", l.server.ID, "tools", len(box.tools), "limit", maxDirect)
		return l.meta(taken), nil
	}
	tools := make([]tool.Tool, 0, len(box.tools))
	for _, t := range box.tools {
		tools = append(tools, &function{
			declared: chat.Tool{
				Name:        unique("mcp__"+l.slug()+"__"+legal(t.Name), maxName, l.server.ID+"\x00"+t.Name, taken),
				Description: text.Cut(t.Description, 16<<10),
				Parameters:  t.Schema,
			},
			hints: tool.Hints{ReadOnly: t.ReadOnly, Destructive: t.Destructive, Timeout: ownLimit},
			of:    t.Name,
			run: func(ctx context.Context, call tool.Call) (tool.Result, error) {
				return l.call(ctx, t.Name, call.Arguments, call.Steps)
			},
		})
	}
	return append(tools, l.resourceTool(taken)...), nil
}
