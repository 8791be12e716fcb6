package render

import (
	"strings"
	"testing"
	"time"
)

// TestTimeLeft: what a map of 500 items says of the time left is right within 25 %, from the tenth part on, and within 25 s of a change of
// what its provider takes. The clock is simulated.
func TestTimeLeft(t *testing.T) {
	const total, took = 500, 600 * time.Millisecond
	for name, atOnce := range map[string]func(d time.Duration) int{
		"two at once":    func(time.Duration) int { return 2 },
		"learned":        func(d time.Duration) int { return min(4, 2+int(d/(5*time.Second))) },
		"each minute":    func(d time.Duration) int { return []int{2, 5, 1, 4}[int(d/time.Minute)%4] },
		"fewer, in time": func(d time.Duration) int { return map[bool]int{true: 5, false: 2}[d < 30*time.Second] },
	} {
		begin := time.Unix(1.8e9, 0)
		var at []time.Duration // when an item is done
		for d := time.Duration(0); len(at) < total; d += took {
			for range atOnce(d) {
				at = append(at, d+took+time.Duration(len(at)*37%100)*time.Millisecond)
			}
		}
		last, changed := task{total: total, atOnce: atOnce(0)}, time.Duration(0)
		for i, d := range at[:total] {
			now := begin.Add(d)
			last.done = i + 1
			last.pace.add(now, last.done)
			if n := atOnce(d); n != last.atOnce {
				last.atOnce, changed = n, d
			}
			said, _, found := strings.Cut(strings.TrimPrefix(last.estimate(now), ", about "), " left")
			if i < total/10 || i > total-20 || changed > 0 && d-changed < 25*time.Second || atOnce(at[total-1]) != atOnce(d) {
				continue
			}
			left, err := time.ParseDuration(said)
			if real := at[total-1] - d; !found || err != nil || left.Seconds() < 0.75*real.Seconds() || left.Seconds() > 1.25*real.Seconds()+1 {
				t.Errorf("%s: after %d items %q, and %v are left", name, i+1, last.estimate(now), real)
				break
			}
		}
	}
}
