package wire

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault/retry"
)

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns how long a server asks to wait: by retry-after-ms, by
// Retry-After in seconds or as a date, by the reset of a used-up limit, or in the
// words of its message; 0 if it does not say. h may be nil.
func retryAfter(h http.Header, msg string) time.Duration {
	d := cmp.Or(
		milliseconds(h.Get("Retry-After-Ms")),
		retry.After(h),
		limitReset(h),
		waitInWords(msg),
	)
	return min(d, maxRetryAfter)
}

func milliseconds(s string) time.Duration {
	return duration(s, time.Millisecond)
}

// duration returns s, a number of units, as a duration; 0 if it is not a number above 0.
func duration(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
}

// limitReset returns when the limit that is used up starts anew, the longest time
// if there are several.
func limitReset(h http.Header) time.Duration {
	var longest time.Duration
	for _, of := range []string{"", "-Requests", "-Tokens"} {
		if h.Get("X-Ratelimit-Remaining"+of) == "0" {
			longest = max(longest, resetTime(h.Get("X-Ratelimit-Reset"+of), h.Get("Date")))
		}
	}
	return longest
}

// resetTime reads a duration such as 6m0s or 120ms, seconds, or a Unix time in
// seconds or milliseconds.
func resetTime(s, date string) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return max(0, d)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	var at time.Time
	switch {
	case n > 1e12:
		at = time.UnixMilli(n)
	case n > 1e9:
		at = time.Unix(n, 0)
	default:
		return duration(s, time.Second)
	}
	now, err := http.ParseTime(date)
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}

// quotaInfo returns what an error document, which some methods of Google put into an array, says about a quota: the delay of
// its google.rpc.RetryInfo, 0 for none, and whether a quota of a time is used up. A quota of a day is filled up again at midnight of the
// Pacific coast, whatever the delay is.
func quotaInfo(doc []byte, now time.Time) (after time.Duration, rate bool) {
	var reply struct {
		Error struct {
			Details []struct {
				RetryDelay String
				Violations []struct{ QuotaID String }
				Metadata   struct {
					QuotaLimit String `json:"quota_limit"`
				}
			}
			ResetsInSeconds String `json:"resets_in_seconds"` // not of Google
		}
	}
	if Tolerate(json.Unmarshal(firstItem(doc), &reply)) != nil {
		return 0, false
	}
	after = duration(string(reply.Error.ResetsInSeconds), time.Second)
	rate = after > 0
	for _, detail := range reply.Error.Details {
		if d, err := time.ParseDuration(string(detail.RetryDelay)); err == nil && d > 0 && after == 0 {
			after = min(d, maxRetryAfter)
		}
		ids := []String{detail.Metadata.QuotaLimit}
		for _, v := range detail.Violations {
			ids = append(ids, v.QuotaID)
		}
		for _, id := range ids {
			id := string(id)
			rate = rate || strings.Contains(id, "PerMinute") || strings.Contains(id, "PerDay")
			if strings.Contains(id, "PerDay") {
				day := now.In(time.FixedZone("PST", -8*60*60))
				after = time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, day.Location()).Sub(now)
			}
		}
	}
	return after, rate
}

// waitInWords reads "try again in 1.2s", "retry in 34.07s" and "retry after 45 seconds".
func waitInWords(msg string) time.Duration {
	for _, lead := range []string{"try again in ", "retry in ", "retry after "} {
		_, rest, ok := strings.Cut(strings.ToLower(msg), lead)
		if !ok {
			continue
		}
		word, rest, _ := strings.Cut(rest, " ")
		for of, unit := range map[string]time.Duration{"second": time.Second, "minute": time.Minute} {
			if d := duration(word, unit); d > 0 && strings.HasPrefix(rest, of) {
				return d
			}
		}
		if d, err := time.ParseDuration(strings.TrimRight(word, ".,;:!)")); err == nil {
			return max(0, d)
		}
	}
	return 0
}
