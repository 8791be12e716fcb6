package live_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/live"
	"loki/internal/workflow/run/memstore"
)

// lasting is a store that stays when it is closed.
type lasting struct{ run.Store }

func (lasting) Close() error { return nil }

// reply is work that emits a reply in two pieces. Between them it calls meanwhile.
type reply struct{ meanwhile func() }

func (reply) Started() event.Started { return event.Started{} }

func (w reply) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	err := f.Events.Emit(ctx, event.Delta{Text: "Hello, "})
	w.meanwhile()
	err = errors.Join(err, f.Events.Emit(ctx, event.Delta{Text: "world"}), f.Events.Emit(ctx, event.Reply{Text: "Hello, world"}))
	return run.Outcome{Output: "Hello, world"}, err
}

// start runs the work, shared in dir, and returns the id.
func start(t *testing.T, store run.Store, dir string, meanwhile func(id string)) string {
	t.Helper()
	s := &run.Service{
		Open: func(graph.Durability) (run.Store, error) { return lasting{store}, nil },
		Live: func(id string) (event.Emitter, func()) { return live.Share(dir, id) },
	}
	job := run.Job{
		Info: run.Info{Kind: run.ChatRun}, Durability: graph.DurabilityProcess, Events: event.NewScope(event.Discard, event.Source{}, nil),
		Make: func(context.Context, run.Point) (run.Work, func() error, error) {
			return reply{func() {
				runs, err := store.Runs(t.Context(), run.Query{})
				if err != nil || len(runs) != 1 {
					t.Fatalf("%d runs, %v", len(runs), err)
				}
				meanwhile(runs[0].ID)
			}}, func() error { return nil }, nil
		},
	}
	out, err := s.Start(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return out.Run
}

// types watches a run and returns the types of its events, and the pieces of its reply. Seen is called after each event.
func types(t *testing.T, store run.Store, dir, id string, seen func(event.Event)) (names []string, text string) {
	for w, err := range live.Watch(t.Context(), store, dir, id) {
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		if w.Now {
			continue
		}
		names = append(names, w.Event.Body.Type())
		if d, ok := w.Event.Body.(event.Delta); ok {
			text += d.Text
		}
		seen(w.Event)
	}
	return names, text
}

// TestWatch watches a run at work, which gives pieces that are not on record, and one that is over.
func TestWatch(t *testing.T) {
	dir, store := filepath.Join(t.TempDir(), "live"), memstore.New(nil)
	type result struct {
		names []string
		text  string
	}
	watched := make(chan result, 2)
	id := start(t, store, dir, func(id string) {
		info, err := os.Stat(filepath.Join(dir, id+".sock"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket: %v, %v", info, err)
		}
		began := make(chan bool, 2)
		for range 2 {
			go func() { // ends with the run
				names, text := types(t, store, dir, id, func(ev event.Event) {
					if ev.Body.Type() == "delta" {
						select {
						case began <- true:
						default:
						}
					}
				})
				watched <- result{names, text}
			}()
		}
		<-began
		<-began
	})
	for range 2 {
		got := <-watched
		if want := []string{"started", "delta", "delta", "reply", "finished"}; !slices.Equal(got.names, want) || got.text != "Hello, world" {
			t.Errorf("at work: %v, %q, want %v", got.names, got.text, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, id+".sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	names, _ := types(t, store, dir, id, func(event.Event) {})
	if want := []string{"started", "reply", "finished"}; !slices.Equal(names, want) {
		t.Errorf("over: %v, want %v", names, want)
	}
}

// TestWatchWithoutSocket watches a run whose process cannot be reached: the record has all but pieces.
func TestWatchWithoutSocket(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) string{
		"no_directory": func(t *testing.T, dir string) string {
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "file")
		},
		"long_path": func(_ *testing.T, dir string) string { return filepath.Join(dir, strings.Repeat("long", 40)) },
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(nil)
			dir := prepare(t, t.TempDir())
			var ended chan []string
			start(t, store, dir, func(id string) {
				ended = make(chan []string, 1)
				go func() { // ends with the run
					names, _ := types(t, store, dir, id, func(event.Event) {})
					ended <- names
				}()
			})
			if got := <-ended; !slices.Equal(got, []string{"started", "reply", "finished"}) {
				t.Errorf("events: %v", got)
			}
		})
	}
}

// TestSocketOfDeadProcess: what a killed process has left is removed by a watcher, and does not keep the next process from sharing.
func TestSocketOfDeadProcess(t *testing.T) {
	dir, store := t.TempDir(), memstore.New(nil)
	j, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, j.ID()+".sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for w, err := range live.Watch(t.Context(), store, dir, j.ID()) {
		if err != nil || !w.Now {
			t.Fatalf("%+v, %v", w, err)
		}
		break
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sink, end := live.Share(dir, j.ID())
	if sink == nil {
		t.Error("the run is not shared")
	}
	end()
}

// TestWatchEnds: a watcher that leaves, or whose context ends, leaves nothing behind; an unknown run is an error.
func TestWatchEnds(t *testing.T) {
	dir, store := t.TempDir(), memstore.New(nil)
	start(t, store, dir, func(id string) {
		for w, err := range live.Watch(t.Context(), store, dir, id) {
			if err == nil && w.Event.Body != nil && w.Event.Body.Type() == "delta" {
				break
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, err := range live.Watch(ctx, store, dir, id) {
			if cancel(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	for _, err := range live.Watch(t.Context(), store, dir, "zzzzzzzz") {
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("an unknown run: %v", err)
		}
	}
}

// TestSweep: the first run that a process shares removes the sockets that nobody listens at, and no others.
func TestSweep(t *testing.T) {
	dir, store := t.TempDir(), memstore.New(nil)
	old := time.Now().Add(-time.Hour)
	socket := func(name string, age time.Time) *net.UnixListener {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = os.Chtimes(path, age, age)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	dead, young, working := socket("dead.sock", old), socket("young.sock", time.Now()), socket("working.sock", old)
	defer working.Close()
	if err := errors.Join(dead.Close(), young.Close(), os.WriteFile(filepath.Join(dir, "file.sock"), nil, 0o600), os.Chtimes(filepath.Join(dir, "file.sock"), old, old)); err != nil {
		t.Fatal(err)
	}
	start(t, store, dir, func(string) {})
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"file.sock", "working.sock", "young.sock"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %v, %v", left, err)
	}
}
