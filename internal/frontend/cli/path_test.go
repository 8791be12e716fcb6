package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestWithoutMiddle(t *testing.T) {
	path := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "  %d  node\n", i+1)
		}
		return b.String()
	}
	if got := withoutMiddle(path(2*pathEnd), "k3v9"); got != path(2*pathEnd) {
		t.Errorf("a path of %d lines is cut", 2*pathEnd)
	}
	got := withoutMiddle(path(20_000), "k3v9")
	if n := strings.Count(got, "\n"); n != 2*pathEnd {
		t.Errorf("%d lines are shown", n)
	}
	for _, want := range []string{"  1  node\n", "  200  node\n  ... 19601 lines left out; all of them: loki --run k3v9 --output json\n  19802  node\n", "  20000  node\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
