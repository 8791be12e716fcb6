package conversation

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
)

// TestPageOfSettings: docs/settings.md marks what roles (R), sessions (S) and .set (C) have.
func TestPageOfSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var (
		of   chat.Settings
		role []string
	)
	for _, s := range of.List() {
		role = append(role, s.Key)
	}
	has := map[string][]string{
		"R": role, "S": append([]string{"save_session", "compression_threshold"}, role...), "C": (&Conversation{}).SettingKeys(),
	}
	listed := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| ([A-Z ]+) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, place := range strings.Fields(row[2]) {
			listed[place] = append(listed[place], row[1])
		}
	}
	for place, want := range has {
		got := listed[place]
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the page marks with %s\n%q\nand these are there\n%q", place, got, want)
		}
	}
}
