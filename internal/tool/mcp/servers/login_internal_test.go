package servers

import (
	"net/http"
	"strings"
	"testing"
)

// TestDiscoveryStaysOutside: a server of the public internet does not make the program connect with this machine, and one of this machine does.
func TestDiscoveryStaysOutside(t *testing.T) {
	t.Parallel()
	s := Service{Options: Options{Getenv: func(string) string { return "" }}}
	for server, private := range map[string]bool{"https://8.8.8.8/mcp": true, "http://127.0.0.1:1/mcp": false, "https://10.0.0.1/mcp": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.discoveryHTTP(t.Context(), server).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if refused := err != nil && strings.Contains(err.Error(), "not an address of the public internet"); refused != private {
			t.Errorf("%s: %v", server, err)
		}
	}
}
