package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a program of the scripts: an MCP server with a tool that greets, one
// that tells a variable of its environment, also on standard error, and a resource.
func mcpServer() {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type person struct {
		Name string `json:"name" jsonschema:"who to greet"`
	}
	text := func(s string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "read_person", Description: "Read about a person by name", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a person"}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "greet_person", Description: "Greet a person by name"},
		func(_ context.Context, _ *mcp.CallToolRequest, p person) (*mcp.CallToolResult, any, error) {
			return text("hello, " + p.Name)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "tell_variable", Description: "Tell the value of a variable"},
		func(_ context.Context, _ *mcp.CallToolRequest, p person) (*mcp.CallToolResult, any, error) {
			fmt.Fprintf(os.Stderr, "asked for %s, which is %s\n", p.Name, os.Getenv(p.Name))
			return text("[" + os.Getenv(p.Name) + "]")
		})
	server.AddResource(&mcp.Resource{URI: "text://motto", Name: "motto"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "greet everyone"}}}, nil
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
