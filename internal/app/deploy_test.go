package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"loki/internal/base/process/environ"
)

// TestWorkingDirectoryOfServices: in the files of deploy/, the working directory holds nothing of Loki, so that models do not read it and servers of
// mcp.json have a directory that stays.
func TestWorkingDirectoryOfServices(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"loki.service", "Dockerfile"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		works := regexp.MustCompile(`(?m)^(?:WorkingDirectory=|WORKDIR )(/var\S+)`).FindAllStringSubmatch(string(text), -1)
		places := regexp.MustCompile(`(?:LOKI_STATE_DIR|LOKI_CONFIG_DIR|XDG_CACHE_HOME|LOKI_CONFIG_FILE)=(\S+)`).FindAllStringSubmatch(string(text), -1)
		if len(works) == 0 || len(places) < 4 {
			t.Fatalf("%s: %q, %q", name, works, places)
		}
		for _, work := range works {
			for _, place := range places {
				if environ.Inside(work[1], nil)(place[1]) {
					t.Errorf("%s: the working directory %s holds %s", name, work[1], place[1])
				}
			}
		}
	}
}
