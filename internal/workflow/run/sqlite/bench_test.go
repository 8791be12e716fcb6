package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// prose returns n characters of different text for every seed, like what tools print.
func prose(seed uint64, n int) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%08x %s = \"%d\",\n", rnd.Uint32(), strings.Repeat("word ", rnd.IntN(12)), rnd.IntN(1e6))
	}
	return b.String()[:n]
}

// median reports the median of the times that an operation took.
func median(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "median-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, "p99-µs")
}

func create(t testing.TB, s *Store, st graph.State) run.Journal {
	t.Helper()
	j, err := s.Create(t.Context(), run.Info{Agent: "a", Definition: []byte("x")}, run.Checkpoint{State: st, Position: run.Position{Frontier: []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{100, 36180} {
		for _, durability := range []Durability{Process, Power, Off} {
			b.Run(fmt.Sprintf("%s/%d", durability, size), func(b *testing.B) {
				s := open(b, filepath.Join(b.TempDir(), "runs.db"), Options{Durability: durability})
				j := create(b, s, graph.State{})
				r := j.Task(1, "a")
				st := steps.Step{Kind: steps.Tool, Name: "fs_cat"}
				body := []byte(`"` + strings.ReplaceAll(strings.ReplaceAll(prose(1, size), `"`, "'"), "\n", `\n`) + `"`)
				var times []time.Duration
				n := 0
				for b.Loop() {
					n++
					copy(body[1:], fmt.Sprintf("%08d", n))
					start := time.Now()
					if err := r.Record(b.Context(), fmt.Sprint(n), st, body); err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(start))
				}
				median(b, times)
			})
		}
	}
}

// BenchmarkAlone makes the inserts of BenchmarkRecord with SQLite alone: one row in one
// transaction, with the same driver and settings. It is the limit that a journal can reach.
func BenchmarkAlone(b *testing.B) {
	for _, size := range []int{100, 36180} {
		b.Run(fmt.Sprintf("process/%d", size), func(b *testing.B) {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "alone.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			if _, err := db.Exec("CREATE TABLE result (id INTEGER PRIMARY KEY, key TEXT, body BLOB)"); err != nil {
				b.Fatal(err)
			}
			insert, err := db.Prepare("INSERT INTO result (key, body) VALUES (?, ?)")
			if err != nil {
				b.Fatal(err)
			}
			body := []byte(prose(1, size))
			var times []time.Duration
			n := 0
			for b.Loop() {
				n++
				copy(body, fmt.Sprintf("%08d", n))
				start := time.Now()
				if _, err := insert.Exec(fmt.Sprint(n), body); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			median(b, times)
		})
	}
}

// BenchmarkEffect makes a step as a tool call makes it: begun, with events, recorded.
func BenchmarkEffect(b *testing.B) {
	for _, size := range []int{100, 36180} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "runs.db"), Options{})
			j := create(b, s, graph.State{})
			sc := steps.New(j.Task(1, "a"))
			var times []time.Duration
			n := 0
			for b.Loop() {
				n++
				text := prose(uint64(n), size)
				start := time.Now()
				_, err := steps.Do(b.Context(), sc, steps.Step{Kind: steps.Tool, Key: fmt.Sprint(n), Effect: true}, func(context.Context) (string, error) {
					j.Event(event.Event{Time: start, Body: event.ToolCall{ID: "1", Name: "fs_cat", Arguments: "{}"}})
					j.Event(event.Event{Time: start, Body: event.ToolResult{ID: "1", Name: "fs_cat", Text: text}})
					return text, nil
				})
				if err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			median(b, times)
		})
	}
}

func BenchmarkCommit(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "runs.db"), Options{})
	st := graph.NewState(value.ObjectOf(value.Member{Name: "topic", Value: value.Of("go")}, value.Member{Name: "n", Value: value.Of(0)}))
	j := create(b, s, st)
	c := run.Checkpoint{State: st}
	var times []time.Duration
	for b.Loop() {
		c.Step++
		c.Frontier = []string{"a"}
		c.Visits = map[string]int{"a": c.Step}
		c.State = c.State.With(value.Member{Name: "n", Value: value.Of(c.Step)})
		start := time.Now()
		if err := j.Commit(b.Context(), c, []run.Visit{{Step: c.Step, Node: "a", Number: c.Step, Started: start}}); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	median(b, times)
}

// BenchmarkReact appends 100 tool results to a list, each recorded as a step, told as
// an event and committed; and reads the last checkpoint.
func BenchmarkReact(b *testing.B) {
	const rounds, size = 100, 36180
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "runs.db")
		s := open(b, path, Options{})
		j := react(b, s, rounds, size)
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		c, err := s.Checkpoint(b.Context(), j.ID(), -1)
		if v, _ := c.State.Get("messages"); err != nil || len(v.Text()) < rounds*size {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "read-ms")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/(rounds*size), "file/changed")
	}
}

// react makes such a run.
func react(t testing.TB, s *Store, rounds, size int) run.Journal {
	t.Helper()
	var list value.List
	c := run.Checkpoint{}
	j := create(t, s, c.State)
	for i := range rounds {
		text := prose(uint64(i), size)
		c.Step++
		_, err := steps.Do(t.Context(), steps.New(j.Task(c.Step, "a")), steps.Step{Kind: steps.Tool, Key: "t"}, func(context.Context) (string, error) {
			j.Event(event.Event{Time: time.Now(), Body: event.ToolResult{ID: "1", Name: "fs_cat", Text: text}})
			return text, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list = list.Append(value.ObjectOf(value.Member{Name: "role", Value: value.Of("tool")}, value.Member{Name: "content", Value: value.Of(text)}).Value())
		c.State = c.State.With(value.Member{Name: "messages", Value: list.Value()})
		c.Visits = map[string]int{"a": c.Step}
		j.Event(event.Event{Time: time.Now(), Body: event.StateUpdated{Values: []value.Member{{Name: "messages", Value: list.Value()}}}})
		if err := j.Commit(t.Context(), c, []run.Visit{{Step: c.Step, Node: "a", Number: c.Step}}); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func BenchmarkEncodeJSON(b *testing.B) {
	text := []byte(value.Of(prose(1, 36180)).String())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if d := record.Sealer(nil).EncodeJSON(text); len(d.Blobs) != 1 || bytes.Equal(d.Data, text) {
			b.Fatal(len(d.Blobs))
		}
	}
}
