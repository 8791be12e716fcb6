package display_test

import (
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/command/display"
)

// TestRunsShowWhatTheyWaitFor lists suspended runs: with a wait, with several, and without any.
func TestRunsShowWhatTheyWaitFor(t *testing.T) {
	at := time.Date(2126, 12, 24, 18, 0, 0, 0, time.Local)
	timer, signal, both := api.Wait{Until: &at}, api.Wait{Signal: "paid\x1b"}, api.Wait{Signal: "sent", Until: &at}
	for want, waits := range map[string][]api.Wait{
		"suspended until 2126-12-24 18:00:00  ":                             {timer},
		"suspended for signal sent, until 2126-12-24 18:00:00  ":            {both},
		"suspended for signal sent, until 2126-12-24 18:00:00, and 2 more ": {both, timer, signal},
		"suspended  ": nil,
	} {
		if got := display.Runs([]api.Run{{ID: "k3v9k3v9", Status: "suspended", Waits: waits}}, 0); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
	if got := display.Wait(signal); strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "for signal paid") {
		t.Errorf("%q", got)
	}
}

// TestFit wraps what is too long for a terminal below the column that it is in, and cuts rows of runs.
func TestFit(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"short", "short"},
		{"mcp_sandbox    one: full, two: full, three: full, four: full", "mcp_sandbox    one: full, two: full,\n               three: full, four: full"},
		{"  prompt: what one finds is longer than a line has columns", "  prompt: what one finds is longer than\n  a line has columns"},
		{"no columns but many more words than a line has", "no columns but many more words than a\nline has"},
		{"a wide word 日本語日本語日本語日本語 and more", "a wide word 日本語日本語日本語日本語 and\nmore"},
		{"one  " + strings.Repeat("x", 50), "one  " + strings.Repeat("x", 50)},
	} {
		if got := display.Fit(tt.in, 40); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
		if got := display.Fit(tt.in, 0); got != tt.in {
			t.Errorf("%q without a terminal: %q", tt.in, got)
		}
	}
	long := []api.Run{{ID: "k3v9k3v9", Agent: "a-long-name-of-an-agent", Prompt: strings.Repeat("word ", 20)}}
	for line := range strings.Lines(display.Runs(long, 80)) {
		if len([]rune(line)) > 81 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	if cut, whole := display.Runs(long, 80), display.Runs(long, 0); len(cut) >= len(whole) || strings.Count(cut, "\n") != strings.Count(whole, "\n") {
		t.Errorf("cut:\n%swhole:\n%s", cut, whole)
	}
}
