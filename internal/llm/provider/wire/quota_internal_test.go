package wire

import (
	"testing"
	"time"
)

// TestQuotas: which quota of Google's is used up says when the call may work, and that fewer calls at once would not.
func TestQuotas(t *testing.T) {
	now := time.Date(2026, 12, 1, 20, 0, 0, 0, time.UTC) // noon at the Pacific coast
	details := func(quota, delay string) string {
		return `{"error":{"code":429,"message":"exceeded","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"` + quota + `","quotaValue":"15"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}]}}`
	}
	for _, tt := range []struct {
		doc   string
		after time.Duration
		rate  bool
	}{
		{details("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "2.5s"), 2500 * time.Millisecond, true},
		{details("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "30s"), 12 * time.Hour, true},
		{"[" + details("ConcurrentSessions", "1s") + "]", time.Second, false},
		{details("", "-5s"), 0, false},
		{details("", "1e9h"), 0, false},
		{`{"error":{"details":[{"violations":[{"quotaId":7}],"retryDelay":3}]}}`, 0, false},
		{`{"error":{"details":7}}`, 0, false},
		{`{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"quota_limit":"RequestsPerDay"}}]}}`, 12 * time.Hour, true},
		{`{"error":{"details":[{"metadata":{"quota_limit":["RequestsPerDay"],"x":{}}}]}}`, 0, false},
		{`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":7200}}`, 2 * time.Hour, true},
		{`{"error":{"resets_in_seconds":"soon"}}`, 0, false},
	} {
		if after, rate := quotaInfo([]byte(tt.doc), now); after != tt.after || rate != tt.rate {
			t.Errorf("%s: %v, %v", tt.doc, after, rate)
		}
	}
}
