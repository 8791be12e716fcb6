package script_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage loads the tools in the user's page, which all take the same.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/custom-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	extensions := map[string]string{"bash": ".sh", "python": ".py", "ts": ".ts"}
	found := 0
	for _, block := range regexp.MustCompile("(?ms)^```(bash|python|ts)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		found++
		h := newHome(t)
		tools := h.load(t, "greet"+extensions[block[1]], block[2])
		d := tools[0].Declaration()
		for _, part := range []string{`"name":{"type":"string","description":"Whom to greet"}`, `"enum":["en","fr"]`, `"description":"How often`, `"required":["name"]`} {
			if d.Name != "greet" || !strings.Contains(string(d.Parameters), part) {
				t.Errorf("%s: %s has no %s", block[1], d.Parameters, part)
			}
		}
		if block[1] != "ts" {
			needs(t, extensions[block[1]])
			h.want(t, tools[0], `{"name":"Ada"}`, map[string]string{"bash": "hello Ada\n", "python": "hello Ada"}[block[1]])
		}
	}
	if found != 3 {
		t.Errorf("%d tools in the page", found)
	}
}
