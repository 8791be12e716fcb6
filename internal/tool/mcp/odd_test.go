package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loki/internal/tool/mcp"
)

// TestOddServers has servers do what is known to stop other clients.
func TestOddServers(t *testing.T) {
	const plain = `{"name": "one", "inputSchema": {"type": "object"}}`
	for _, tt := range []struct {
		name   string
		tool   string
		result string                                            // of the call
		first  func(w http.ResponseWriter, r *http.Request) bool // may answer a request itself
		check  func(t *testing.T, arguments string)              // of the call as it was sent
		want   string                                            // in the output or the error
	}{
		{
			// A reference in outputSchema leads nowhere, and all tools are lost.
			name: "dangling_reference", tool: `{"name": "one", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}, "outputSchema": {"type": "object", "properties": {"s": {"$ref": "#/$defs/ScreenInstance"}}}}`,
			result: `{"content": [{"type": "text", "text": "fine"}], "structuredContent": {"s": 1}}`, want: "fine",
		},
		{
			// The answer to a notification is a text.
			name: "notification_answered_by_text", tool: plain, result: `{"content": [{"type": "text", "text": "fine"}]}`, want: "fine",
			first: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != "notification" {
					return false
				}
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_, _ = io.WriteString(w, "Accepted")
				return true
			},
		},
		{
			// A result that reports a failure has its details in structuredContent only.
			name: "details_of_a_failure", tool: plain, result: `{"isError": true, "content": [{"type": "text", "text": "see structuredContent"}], "structuredContent": {"caret_row": 121}}`, want: `"caret_row":121`,
		},
		{
			// A call without arguments has none at all, which servers refuse.
			name: "no_arguments", tool: plain, result: `{"content": [{"type": "text", "text": "fine"}]}`, want: "fine",
			check: func(t *testing.T, arguments string) {
				if arguments != "{}" {
					t.Errorf("arguments %s", arguments)
				}
			},
		},
		{
			// A server redirects each message to the address with a slash.
			name: "redirect_to_a_slash", tool: plain, result: `{"content": [{"type": "text", "text": "fine"}]}`, want: "fine",
			first: func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/") {
					return false
				}
				http.Redirect(w, r, r.URL.Path+"/", http.StatusTemporaryRedirect)
				return true
			},
		},
		{
			// A failure does not have the form of outputSchema, and the client hides what it says.
			name: "failure_in_another_form", tool: `{"name": "one", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["success"], "properties": {"success": {"type": "boolean"}}, "additionalProperties": false}}`,
			result: `{"isError": true, "content": [{"type": "text", "text": "rejected: non-fast-forward"}], "structuredContent": {"code": 7}}`, want: "rejected: non-fast-forward",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var m struct {
					ID     json.RawMessage
					Method string
					Params struct{ Arguments json.RawMessage }
				}
				_ = json.Unmarshal(body, &m)
				if m.ID == nil && m.Method != "" {
					r = r.Clone(r.Context())
					r.Method = "notification"
				}
				if tt.first != nil && tt.first(w, r) {
					return
				}
				result := "{}"
				switch {
				case r.Method == "notification":
					w.WriteHeader(http.StatusAccepted)
					return
				case r.Method != http.MethodPost:
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				case m.Method == "initialize":
					result = `{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}`
				case m.Method == "tools/list":
					result = `{"tools": [` + tt.tool + `]}`
				case m.Method == "tools/call":
					result = tt.result
					if tt.check != nil {
						tt.check(t, string(m.Params.Arguments))
					}
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, "result": %s}`, m.ID, result)
			}))
			defer s.Close()
			sc := scope(t, pool(t, nil), mcp.ScopeOptions{}, server(t, "one", map[string]any{"url": s.URL + "/mcp"}))
			out, err := call(t.Context(), sc, "invoke", `{"tool": "one"}`)
			if got := out + fmt.Sprint(err); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
