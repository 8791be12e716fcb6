package governor

import (
	"testing"
	"time"
)

// simulation runs calls against a server that takes a number of calls at once and refuses others with Retry-After.
type simulation struct {
	now      time.Time
	s        state
	width    int // calls that want to be at work at once
	left     int
	calls    []simCall   // under way
	refused  []time.Time // when refused calls continue
	refusals int
	most     func(time.Duration) int
}

type simCall struct {
	t    *ticket
	ends time.Time
	ok   bool
}

const took = 600 * time.Millisecond

// run returns how long all calls take.
func (m *simulation) run(t *testing.T) time.Duration {
	begin := time.Unix(1e9, 0)
	m.now = begin
	serving := func() (n int) {
		for _, c := range m.calls {
			if c.ok {
				n++
			}
		}
		return n
	}
	for m.left > 0 || len(m.calls) > 0 || len(m.refused) > 0 {
		for i := 0; i < len(m.calls); i++ {
			c := m.calls[i]
			if c.ends.After(m.now) {
				continue
			}
			m.calls = append(m.calls[:i], m.calls[i+1:]...)
			i--
			if c.ok {
				m.s.endSucceeded(m.now, "p", c.t, amount{})
				continue
			}
			m.refusals++
			wait := m.s.endRefused(m.now, "p", c.t, DefaultLimits(), time.Second, false)
			m.refused = append(m.refused, m.now.Add(wait))
		}
		for {
			ready := -1
			for i, at := range m.refused {
				if !at.After(m.now) {
					ready = i
					break
				}
			}
			if ready < 0 && m.left == 0 || ready < 0 && len(m.calls)+len(m.refused) >= m.width {
				break
			}
			ticket, _, _ := m.s.admit(m.now, "p", DefaultLimits(), amount{}, m.now)
			if ticket == nil {
				break
			}
			if ready >= 0 {
				m.refused = append(m.refused[:ready], m.refused[ready+1:]...)
			} else {
				m.left--
			}
			c := simCall{t: ticket, ok: serving() < m.most(m.now.Sub(begin))}
			c.ends = m.now.Add(took)
			if !c.ok {
				c.ends = m.now.Add(5 * time.Millisecond)
			}
			m.calls = append(m.calls, c)
		}
		m.now = m.now.Add(5 * time.Millisecond)
		if m.now.Sub(begin) > time.Hour {
			t.Fatalf("%d calls are left", m.left)
		}
	}
	return m.now.Sub(begin)
}

// TestChangingLimit: the number of calls at once follows that of a server.
func TestChangingLimit(t *testing.T) {
	limits := []int{2, 5, 1, 4}
	most := func(d time.Duration) int { return limits[int(d/time.Minute)%len(limits)] }
	best := time.Duration(0)
	for done := 0; done < 500; done += most(best) {
		best += took
	}
	for _, width := range []int{8, 64, 500} {
		m := simulation{s: state{AtOnce: firstAtOnce}, width: width, left: 500, most: most}
		d := m.run(t)
		if ratio := d.Seconds() / best.Seconds(); ratio > 1.10 || m.refusals >= 10 {
			t.Errorf("%d calls that want to be at work at once take %v, best is %v, %d refused", width, d, best, m.refusals)
		}
	}
}
