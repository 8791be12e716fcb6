package server_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/process/npmtest"
	"loki/internal/frontend/server/servertest"
)

// TestOpenAPI has programs of others judge the document.
func TestOpenAPI(t *testing.T) {
	s := servertest.Start(t, nil)
	a := s.Get("/openapi.json")
	if a.Status != 200 || a.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	modules := npmtest.Install(t, "testdata/openapi")
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, []byte(a.Body), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"node", "testdata/openapi/validate.mjs", file},
		{filepath.Join(modules, ".bin", "redocly"), "lint", "--extends=minimal", file},
	} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "MODULES="+modules, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(command[len(command)-2]), err, out)
		}
	}
}

// TestDocsPage looks at the page for people: it has all endpoints and loads nothing.
func TestDocsPage(t *testing.T) {
	s := servertest.Start(t, nil)
	a := s.Get("/docs")
	if a.Status != 200 || !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", a.Status, a.Header)
	}
	var d struct{ Paths map[string]any }
	s.Get("/openapi.json").JSON(t, &d)
	for path := range d.Paths {
		if !strings.Contains(a.Body, "<code>"+path+"</code>") {
			t.Errorf("%s is missing", path)
		}
	}
	for _, hostile := range []string{"<script", "src=", "http://", "https://"} {
		if strings.Contains(a.Body, hostile) {
			t.Errorf("the page has %s", hostile)
		}
	}
}

// TestRoutesAreDocumented compares the routes with the document: only the page and the document itself are not in it.
func TestRoutesAreDocumented(t *testing.T) {
	s := servertest.Start(t, nil)
	var d struct{ Paths map[string]map[string]any }
	s.Get("/openapi.json").JSON(t, &d)
	for _, route := range []string{"POST /v1/hooks/{name}", "GET /answer/{token}", "POST /answer/{token}", "POST /mcp", "GET /mcp", "DELETE /mcp", "GET /v1/usage"} {
		method, path, _ := strings.Cut(route, " ")
		if d.Paths[path][strings.ToLower(method)] == nil {
			t.Errorf("%s is not in the document", route)
		}
	}
	var hidden []string
	undocumented := regexp.MustCompile(`\.Mount\("([^"]+)"|Path: "([^"]+)".*Hidden: true`)
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		for _, m := range undocumented.FindAllStringSubmatch(string(source), -1) {
			hidden = append(hidden, m[1]+m[2])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(hidden)
	if want := []string{"/docs", "/openapi.json", "/page/", "/{$}"}; !slices.Equal(hidden, want) {
		t.Errorf("routes that the document does not have: %q, want %q", hidden, want)
	}
}
