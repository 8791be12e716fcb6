//go:build linux || darwin

package ask

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/text/sample"
)

// TestKeysIntoFreshQuestion presses keys at 1,000 times within 0.6 s after a question about permission has appeared. None decides,
// and each is dropped or kept for the next line. A key after a pause does decide.
func TestKeysIntoFreshQuestion(t *testing.T) {
	t.Parallel()
	q := Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no", "always for this session: x", "edit the arguments"}, Consent: true}
	keys := []string{"y", "n", "a\r", "e", "1", "yes\r", "\r", "y\r", "4\r", "\x1b[200~y\x1b[201~"}
	const workers, trials = 50, 1000
	step := sample.Step(4)
	var tried atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		c := newConsole(t)
		wg.Go(func() {
			for i := w; i < trials; i += workers * step {
				c.forget()
				ctx, cancel := context.WithCancel(t.Context())
				begun := time.Now()
				done := c.ask(ctx, c.asker(xterm), q)
				c.sees("one moment")
				time.Sleep(time.Duration(i) * 600 * time.Microsecond)
				c.types(keys[i%len(keys)])
				inTime := time.Since(begun) < reading
				select {
				case o := <-done:
					if inTime {
						t.Errorf("%q after %s: got %q, %v", keys[i%len(keys)], time.Since(begun), o.answer, o.err)
					}
					cancel()
					continue
				case <-time.After(hesitation + pause):
				}
				if i%100 == w {
					c.sees("press ")
					c.types("y")
					(<-done).check(t, "yes")
				}
				cancel()
				if i%100 != w {
					if o := <-done; !errors.Is(o.err, context.Canceled) {
						t.Errorf("got %q, %v", o.answer, o.err)
					}
				}
				if inTime {
					tried.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := tried.Load(); n < trials/int64(step)/10 && !t.Failed() { // all but a few do if the machine has nothing else to do
		t.Errorf("only %d keys came in time", n)
	}
}
