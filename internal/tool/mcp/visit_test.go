package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/ask/asktest"
	"loki/internal/tool/mcp"
)

// TestPagesOfServers: a page to which a server refers is opened if the user agrees, and only if its address is safe.
func TestPagesOfServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		address, answer, want string
		asked                 int
	}{
		{"https://pay.example.com/x?y=1", "open", "accept", 1},
		{"https://pay.example.com/x", "decline", "decline", 1},
		{"http://pay.example.com/x", "open", "decline", 0},
		{"https://me@pay.example.com/x", "open", "decline", 0},
		{"javascript:alert(1)", "open", "decline", 0},
		{"file:///etc/passwd", "open", "decline", 0},
	} {
		t.Run(tt.address+" "+tt.answer, func(t *testing.T) {
			t.Parallel()
			server := sdk.NewServer(&sdk.Implementation{Name: "pages", Version: "1"}, nil)
			sdk.AddTool(server, &sdk.Tool{Name: "pay"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
				r, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Mode: "url", Message: "Pay here", URL: tt.address, ElicitationID: "1"})
				if err != nil {
					return nil, nil, err
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Action}}}, nil, nil
			})
			s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
			t.Cleanup(s.Close)
			var opened []string
			p := pool(t, func(o *mcp.Options) { o.Open = func(address string) { opened = append(opened, address) } })
			asker := asktest.NewScripted(tt.answer)
			sc := scope(t, p, mcp.ScopeOptions{Asker: asker}, serverAt(t, s.URL))
			out, err := call(t.Context(), sc, "invoke", `{"tool":"pay"}`)
			if err != nil || out != tt.want {
				t.Fatalf("got %q, %v", out, err)
			}
			asked := asker.Asked()
			if len(asked) != tt.asked || tt.asked == 1 && (!asked[0].Consent || !strings.Contains(asked[0].Text, "pay.example.com")) {
				t.Errorf("%+v", asked)
			}
			if (tt.want == "accept") != (len(opened) == 1) {
				t.Errorf("opened %v", opened)
			}
		})
	}
}

func serverAt(t *testing.T, address string) mcp.Server {
	t.Helper()
	return server(t, "pages", map[string]any{"url": address})
}

// TestBytesInFiles: bytes that models do not take are in a file, whose name is in the result.
func TestBytesInFiles(t *testing.T) {
	t.Parallel()
	server := sdk.NewServer(&sdk.Implementation{Name: "pages", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "sound"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")}}}, nil, nil
	})
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(s.Close)
	p := pool(t, func(o *mcp.Options) {
		o.Keep = func(kind string, data []byte) (string, error) { return "/kept/" + kind + "/" + string(data), nil }
	})
	out, err := call(t.Context(), scope(t, p, mcp.ScopeOptions{}, serverAt(t, s.URL)), "invoke", `{"tool":"sound"}`)
	if err != nil || out != "[audio audio/wav, 4 bytes, in the file /kept/audio/wav/RIFF]" {
		t.Errorf("%q, %v", out, err)
	}
}
