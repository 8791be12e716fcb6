package display_test

import (
	"strings"
	"testing"
	"time"

	"loki/internal/api"
	"loki/internal/display"
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
		if got := display.Runs([]api.Run{{ID: "k3v9k3v9", Status: "suspended", Waits: waits}}); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
	if got := display.Wait(signal); strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "for signal paid") {
		t.Errorf("%q", got)
	}
}
