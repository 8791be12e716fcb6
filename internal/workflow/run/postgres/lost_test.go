package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/identity"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/runtest"
)

// proxy stands between a process and the server. It can lose the answer to a message.
type proxy struct {
	net.Listener
	to   string
	lose atomic.Int32 // the answer to which message from now on is lost, with its connection; 0 for none
}

// between returns a proxy, and the address of a database through it. The process has one connection.
func between(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: u.Host}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String() + "&pool_max_conns=1"
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	var lost atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		defer c.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := s.Read(buf)
			if err != nil || lost.Load() {
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		if err != nil {
			break
		}
		if p.lose.Load() > 0 && p.lose.Add(-1) == 0 {
			lost.Store(true)
		}
		if _, err := s.Write(buf[:n]); err != nil {
			break
		}
	}
	_ = s.(*net.TCPConn).CloseWrite()
	back.Wait()
}

// TestLostAnswers loses the answers to messages of all kinds of writes, each of which is then tried again as runs
// do it. Afterwards everything is on record once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	direct := open(t, postgrestest.Database(t), Options{})
	for message := int32(1); message <= 7; message++ {
		t.Run(fmt.Sprint(message), func(t *testing.T) {
			p, address := between(t, direct.address)
			s := open(t, address, Options{})
			if _, err := s.Runs(t.Context(), run.Query{}); err != nil { // the tables are there
				t.Fatal(err)
			}
			ctx := t.Context()
			lost := 0
			try := func(what string, write func() error) {
				t.Helper()
				p.lose.Store(message)
				for {
					err := write()
					if err == nil {
						break
					}
					lost++
					if !errors.Is(err, run.ErrPassing) {
						t.Fatalf("%s: %v", what, err)
					}
					p.lose.Store(0)
				}
				p.lose.Store(0)
			}
			var j run.Journal
			name := fmt.Sprint("agent ", message)
			try("create", func() (err error) {
				j, err = s.Create(ctx, run.Info{Agent: name, Served: true}, run.Checkpoint{Position: run.Position{Frontier: []string{"a"}}})
				return err
			})
			last := run.Checkpoint{}
			var effects []string
			for step := 1; step <= 2; step++ {
				r := j.Task(step, "a")
				st := steps.Step{Kind: steps.Tool, Name: "t", Effect: true}
				for _, key := range []string{"1", "2"} {
					effects = append(effects, fmt.Sprint(step, key))
					j.Event(event.Event{Time: time.Now(), Body: event.Warning{Text: fmt.Sprint(step, key)}})
					try("begin", func() error { return r.Begin(ctx, key, st) })
					try("record", func() error { return r.Record(ctx, key, st, []byte(`"`+strings.Repeat(key, 3000)+`"`)) })
				}
				try("begin", func() error { return r.Begin(ctx, "f", st) })
				try("forget", func() error { return r.Forget(ctx, "f") })
				try("asked", func() error {
					return j.Asked(ctx, run.Pending{ID: fmt.Sprint("q", step), Step: step, Node: "a", Key: "q", Asked: time.Now()})
				})
				try("finished", func() error {
					return j.Finished(ctx, run.TaskRecord{Step: step, Result: graph.Result{Node: "a"}})
				})
				old, _ := last.State.Get("log")
				list, _ := old.AsList()
				last.Step, last.Visits = step, map[string]int{"a": step}
				last.State = last.State.With(value.Member{Name: "log", Value: list.Append(value.Of(step)).Value()})
				try("commit", func() error { return j.Commit(ctx, last, []run.Visit{{Step: step, Node: "a", Number: step}}) })
			}
			try("end", func() error { return j.End(ctx, run.Ending{Status: run.Suspended, Code: fault.Suspended}) })
			p.lose.Store(message)
			err := j.Close()
			if err != nil && !errors.Is(err, run.ErrPassing) {
				t.Error(err)
			}
			p.lose.Store(0)
			until(t, "the lease is given back", func() bool {
				i, err := direct.Info(ctx, j.ID())
				if err != nil {
					t.Fatal(err)
				}
				return !i.Active
			})
			var found run.Recovery
			try("open", func() error {
				k, f, err := s.Open(ctx, j.ID())
				if err == nil {
					j, found = k, f
				}
				return err
			})
			if got := string(found.Last.State.AppendJSON(nil)); got != `{"log":[1,2]}` || found.Last.Visits["a"] != 2 || len(found.Tasks) > 0 {
				t.Errorf("found %s, %+v", got, found)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			h, err := direct.History(ctx, j.ID())
			if err != nil {
				t.Fatal(err)
			}
			var recorded, events []string
			for _, st := range h.Steps {
				recorded = append(recorded, fmt.Sprint(st.Step, st.Key))
			}
			for _, ev := range h.Events {
				_, rest, _ := strings.Cut(string(ev), `"text":"`)
				text, _, _ := strings.Cut(rest, `"`)
				events = append(events, text)
			}
			if !slices.Equal(recorded, effects) || !slices.Equal(events, effects) || len(h.Visits) != 2 || len(h.Pending) > 0 {
				t.Errorf("steps %v, events %v, want %v; visits %v, pending %v", recorded, events, effects, h.Visits, h.Pending)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			infos, err := direct.Runs(ctx, run.Query{Agent: name})
			if err != nil || len(infos) != 1 {
				t.Errorf("%d runs, %v", len(infos), err)
			}
			t.Logf("%d answers were lost", lost)
			if lost == 0 && message < 3 {
				t.Error("no answer was lost")
			}
		})
	}
}

// TestServerRestarts records steps while the server is restarted, and gives up once it is gone for good.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := open(t, server.Database(t), Options{EventDelay: time.Millisecond})
	j := create(t, s, run.Info{Agent: "a", Served: true})
	var patience run.Patience
	var count atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for n := range 4 {
		work.Go(func() {
			r := j.Task(1, fmt.Sprint(n))
			for i := 0; ctx.Err() == nil; i++ {
				j.Event(event.Event{Time: time.Now(), Body: event.Warning{Text: "x"}})
				if err := patience.Do(t.Context(), nil, func() error {
					return r.Record(t.Context(), fmt.Sprint(i), steps.Step{Kind: steps.Tool}, []byte(`1`))
				}); err != nil {
					t.Error(err)
					return
				}
				count.Add(1)
			}
		})
	}
	for range 2 {
		n := count.Load()
		until(t, "steps are recorded", func() bool { return count.Load() > n+20 })
		server.Restart(t)
	}
	n := count.Load()
	until(t, "steps are recorded after a restart", func() bool { return count.Load() > n+20 })
	cancel()
	work.Wait()
	rest(t, j, run.Ending{Status: run.Suspended})
	h, err := s.History(t.Context(), j.ID())
	if err != nil || len(h.Steps) != int(count.Load()) || len(h.Events) != len(h.Steps) {
		t.Errorf("%d steps, %d events, %v, want %d", len(h.Steps), len(h.Events), err, count.Load())
	}

	j, _, err = s.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	server.Stop(t)
	if err := s.Probe(t.Context()); !errors.Is(err, run.ErrPassing) {
		t.Errorf("the probe without the server: %v", err)
	}
	err = j.Task(1, "a").Record(t.Context(), "k", steps.Step{}, []byte(`1`))
	if !errors.Is(err, run.ErrPassing) || fault.HintOf(err) == "" {
		t.Errorf("without the server: %v", err)
	}
	if err := j.Gap(t.Context(), run.Gap{Step: 1}); !errors.Is(err, run.ErrLeaseLost) || errors.Is(err, run.ErrPassing) {
		t.Errorf("a gap that cannot be noted: %v", err)
	}
	if err := context.Cause(j.Lease()); !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("the lease ends with %v", err)
	}
	_ = j.Close()
	server.Restart(t)
	until(t, "the run is ready again", func() bool {
		ids, _ := s.Ready(t.Context(), 1)
		return len(ids) == 1
	})
}

// TestTwoStores has two stores of one process: a lease that one of them holds is not free for the other.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	b := New(a.db, Options{})
	defer b.Close()
	j := create(t, a, run.Info{Agent: "a"})
	if _, _, err := b.Open(t.Context(), j.ID()); !errors.As(err, new(*run.LeaseError)) {
		t.Errorf("another store of the process: %v", err)
	}
	if err := errors.Join(j.Confirm(t.Context()), j.End(t.Context(), run.Ending{Status: run.Suspended})); err != nil {
		t.Error(err)
	}
}

// TestLeaseOfKilledProcess takes a run over whose process was killed on this machine, at the first try. No other process has
// looked for dead members before.
func TestLeaseOfKilledProcess(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	b := open(t, a.address, Options{})
	j := create(t, a, run.Info{Agent: "a"})
	a.exec(t, "UPDATE loki.members SET pid = 1 << 30") // as of a process that has ended
	list, err := b.Runs(t.Context(), run.Query{})
	if err != nil || len(list) != 1 || list[0].Active {
		t.Fatalf("the list has %+v, %v", list, err)
	}
	a.exec(t, "INSERT INTO loki.members (id, host, pid, seen, machine, born) OVERRIDING SYSTEM VALUE SELECT member, 'x', 1 << 30, clock_timestamp(), $1, '1' FROM loki.leases", identity.Self().Machine)
	k, _, err := b.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// TestLeaseOfDeadMember takes a run over whose process is not heard of. The process finds that by itself.
func TestLeaseOfDeadMember(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	b := open(t, a.address, Options{})
	j := create(t, a, run.Info{Agent: "a", Served: true})
	_, _, err := b.Open(t.Context(), j.ID())
	held, ok := errors.AsType[*run.LeaseError](err)
	if !ok || !strings.Contains(held.Owner, fmt.Sprint(os.Getpid())) {
		t.Fatal(err)
	}
	m, err := a.db.Member(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.exec(t, "DELETE FROM loki.members WHERE id = $1", m.ID()) // as b does that finds it dead
	k, _, err := b.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	select { // without a write
	case <-j.Lease().Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the journal does not find that its lease is lost")
	}
	if err := j.Confirm(t.Context()); !errors.Is(err, run.ErrLeaseLost) {
		t.Error(err)
	}
	if err := errors.Join(j.Close(), k.Confirm(t.Context())); err != nil {
		t.Error(err)
	}
	again, err := a.db.Member(t.Context())
	if err != nil || again.ID() == m.ID() {
		t.Errorf("the process is member %d still, %v", m.ID(), err)
	}
}

const childEnv = "POSTGRES_TEST_CHILD"

func TestMain(m *testing.M) {
	if op := os.Getenv(childEnv); op != "" {
		if err := child(op); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child drives a run and kills its own process at the n-th call of the hook.
func child(at string) error {
	db, err := postgres.Open(os.Getenv("ADDRESS"), postgres.Options{})
	if err != nil {
		return err
	}
	dir, n := os.Getenv("DIR"), 0
	s := New(db, Options{Hook: func(op string) {
		if n++; fmt.Sprint(n) == at {
			_ = runtest.AppendLine(filepath.Join(dir, "killed"), op)
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
			select {}
		}
	}})
	_, err = runtest.Drive(context.Background(), s, filepath.Join(dir, "log"))
	return err
}

// TestKill kills a process before and after writes of a run, and goes on with the run in another process.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	whole := open(t, postgrestest.Database(t), Options{})
	want, err := runtest.Drive(t.Context(), whole, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; ; at += 7 {
		dir, address := t.TempDir(), postgrestest.Database(t)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), fmt.Sprint(childEnv, "=", at), "DIR="+dir, "ADDRESS="+address)
		cmd.Stderr = os.Stderr
		err := cmd.Run()
		killed, _ := os.ReadFile(filepath.Join(dir, "killed"))
		op := strings.TrimSpace(string(killed))
		if op == "" {
			if err != nil {
				t.Fatalf("the process failed by itself: %v", err)
			}
			break
		}
		s := open(t, address, Options{})
		if _, err := s.Runs(t.Context(), run.Query{}); err != nil { // the tables are there
			t.Fatal(err)
		}
		s.bury(t)
		got, err := runtest.Drive(t.Context(), s, filepath.Join(dir, "log"))
		if err != nil {
			t.Fatalf("resuming after a kill at %s (%d): %v", op, at, err)
		}
		if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			t.Errorf("killed at %s (%d): the final state differs", op, at)
		}
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		lines := strings.Fields(string(log))
		most := 12
		if op == "record" && at%2 == 1 {
			most++ // it was made, and the record of it is missing
		}
		if len(lines) != most || len(slices.Compact(slices.Sorted(slices.Values(lines)))) != 12 {
			t.Errorf("killed at %s (%d): the effects were %v", op, at, lines)
		}
		infos, err := s.Runs(t.Context(), run.Query{})
		if err != nil || len(infos) != 1 || infos[0].Status != run.Done || infos[0].Steps != 4 {
			t.Errorf("killed at %s (%d): runs %+v, %v", op, at, infos, err)
		}
	}
}
