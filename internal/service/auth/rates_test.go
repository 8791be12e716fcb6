package auth

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// takes takes until it is refused, and returns how often it was not and when to come again.
func takes(r *Rates[string], who string) (n int, after time.Duration) {
	for {
		err := r.Take(who)
		if tooMany, ok := errors.AsType[*TooManyError](err); ok {
			return n, tooMany.After
		}
		n++
		if n > 1_000_000 {
			return n, 0
		}
	}
}

// TestTooMany: the text says the same as Retry-After, which is in whole seconds and not too soon.
func TestTooMany(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Millisecond: "1s", time.Second: "1s", 7300 * time.Millisecond: "8s", 90 * time.Second: "1m30s"} {
		if got := (&TooManyError{Of: "requests", After: after}).Error(); got != "too many requests, try again in "+want {
			t.Errorf("%v: %s", after, got)
		}
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(Rates[string])
		for range 1000 {
			if err := r.Take("alice"); err != nil {
				t.Fatal(err)
			}
		}
		r.Set(60, 10)
		n, after := takes(r, "alice")
		if n != 70 {
			t.Errorf("%d in the first minute", n)
		}
		if n, _ := takes(r, "bob"); n != 70 {
			t.Errorf("%d of another subject", n)
		}
		for range 20 { // a request that comes after the time it was given passes, and none before
			time.Sleep(after - 2*time.Millisecond)
			if after > time.Second && r.Take("alice") == nil {
				t.Errorf("let through before %v are over", after)
			}
			time.Sleep(2 * time.Millisecond)
			if err := r.Take("alice"); err != nil {
				t.Fatalf("refused after %v: %v", after, err)
			}
			_, after = takes(r, "alice")
		}

		// In the long run it is as many as may be, after a quiet minute the burst more.
		begun, total := time.Now(), 0
		for time.Since(begun) < 10*time.Minute {
			n, after := takes(r, "alice")
			total += n
			time.Sleep(after)
		}
		if total < 590 || total > 620 {
			t.Errorf("%d in ten minutes", total)
		}
		time.Sleep(2 * time.Minute)
		if n, _ := takes(r, "alice"); n != 70 {
			t.Errorf("%d after a pause", n)
		}

		// A change of the limits holds at once.
		r.Set(600, 10)
		if n, _ := takes(r, "alice"); n != 540 {
			t.Errorf("%d more with a higher limit", n)
		}
		r.Set(6, 0)
		if n, after := takes(r, "alice"); n != 0 || after > 2*time.Minute {
			t.Errorf("%d with a lower limit, again after %v", n, after)
		}
	})
}

// TestRatesOfAnyMinute takes at random times. Two buckets cannot know when in the last minute something was done, but it is
// never twice as much.
func TestRatesOfAnyMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		r := new(Rates[string])
		r.Set(60, 10)
		var taken []time.Time
		for range 20000 {
			if random.IntN(200) == 0 {
				time.Sleep(time.Duration(random.IntN(90)) * time.Second)
			}
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			if r.Take("alice") == nil {
				taken = append(taken, time.Now())
			}
		}
		first, most := 0, 0
		for i, at := range taken {
			for at.Sub(taken[first]) >= time.Minute {
				first++
			}
			most = max(most, i-first+1)
		}
		if most > 130 {
			t.Errorf("%d in a minute (seed %d)", most, seed)
		}
	})
}

func TestRatesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(Rates[string])
		r.Set(60, 10)
		for minute := range 3 {
			for n := range maxRates {
				if err := r.Take(fmt.Sprint(minute, n)); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(r.now) + len(r.last); n > maxRates {
				t.Errorf("%d are kept", n)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Minute)
		_ = r.Take("alice")
		if n := len(r.now) + len(r.last); n != 1 {
			t.Errorf("%d are kept after two minutes", n)
		}
	})
}

func BenchmarkRates(b *testing.B) {
	r := new(Rates[string])
	r.Set(1_000_000, 10)
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprint("subject", i)
	}
	for i := 0; b.Loop(); i++ {
		_ = r.Take(names[i%len(names)])
	}
}
