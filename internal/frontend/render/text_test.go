package render

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for _, tt := range []struct {
		d           time.Duration
		took, going string
	}{
		{0, "0ms", "0.0s"},
		{250 * time.Millisecond, "250ms", "0.2s"},
		{999999 * time.Microsecond, "999ms", "0.9s"},
		{time.Second, "1.00s", "1.0s"},
		{1400 * time.Millisecond, "1.40s", "1.4s"},
		{59990 * time.Millisecond, "59.99s", "59.9s"},
		{65 * time.Second, "65.00s", "1m05s"},
		{2*time.Hour + 3*time.Minute + 4*time.Second, "7384.00s", "2h03m"},
	} {
		if got := duration(tt.d); got != tt.took {
			t.Errorf("duration(%v) = %s, want %s", tt.d, got, tt.took)
		}
		if got := elapsedText(tt.d); got != tt.going {
			t.Errorf("elapsed(%v) = %s, want %s", tt.d, got, tt.going)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 12: "12 nodes", 999: "999 nodes", 1000: "1,000 nodes", 1234567: "1,234,567 nodes"} {
		if got := count(n, "node"); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}
