package sqlite

import (
	"strings"
	"testing"

	"loki/internal/tool/builtin/sqltext"
)

// TestLargeValues: a statement that needs no consent makes no value that fills the memory.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"select length(randomblob(1000000000))", "select length(zeroblob(1000000000))", "select length(printf('%1000000000d', 1))",
	} {
		out, err := Database{File: ":memory:", ReadOnly: true}.Run(t.Context(), sqltext.Split(text, sqltext.SQLite))
		if err == nil || !strings.Contains(err.Error(), "too big") {
			t.Errorf("%s: %s, %v", text, out, err)
		}
	}
	out, err := Database{File: ":memory:", ReadOnly: true}.Run(t.Context(), sqltext.Split("select length(randomblob(10000000)) as n", sqltext.SQLite))
	if err != nil || !strings.Contains(out, "10000000") {
		t.Errorf("%s, %v", out, err)
	}
}
