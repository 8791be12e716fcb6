package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/app"
)

// What OAuth servers answer with another status than 200 is part of the protocol: it says
// why there is no token, or that the user of a device has to be waited for.
func TestLoginReadsAnswersOfAllStatuses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"authorization_pending","error_description":"wait"}`)
	}))
	defer server.Close()
	home := t.TempDir()
	config := `clients:
- type: gemini
  auth: oauth
  extra: {proxy: "-"}
  oauth: {flow: client_credentials, client_id: id, client_secret: s, token_url: "` + server.URL + `"}
`
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Environ: []string{"LOKI_CONFIG_DIR=" + home, "XDG_CACHE_HOME=" + home, "HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	err = a.Authenticate(t.Context(), "gemini", nil)
	if err == nil || !strings.Contains(err.Error(), "the server answers: authorization_pending wait") {
		t.Error(err)
	}
}
