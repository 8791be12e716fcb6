//go:build unix

package killtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
)

const schedulesYAML = `
schedules:
  tick: {agent: tick, every: 1s, missed: skip, prompt: "from {{schedule.name}}"}
  week: {agent: tick, cron: "15,45 9-10 1 * MON", timezone: Asia/Tokyo, blackout: [{days: [MON], from: "10:30", to: "12:00"}]}
  refused: {agent: tick, every: 1h, overlap: cancel}
`

// TestSchedules has the server start runs, while a worker is killed: each is done, and makes its effect once.
func TestSchedules(t *testing.T) {
	w := newWorld(t, newServer(t))
	config := filepath.Join(w.dir, "config", "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		config: string(text) + schedulesYAML,
		filepath.Join(w.dir, "config", "agents", "tick", "graph.yaml"): "name: tick\nstart: one\nnodes:\n  one: {type: script, script: count.sh, next: done}\n  done: {type: end, output: \"{{initial_prompt}}\"}\n",
		filepath.Join(w.dir, "config", "agents", "tick", "count.sh"):   countScript,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}
	effects := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.made)
	}
	w.work()
	w.do("--schedule-put", "tick")
	until("runs", func() bool { return effects() >= 2 })
	w.kill(0)
	w.work()
	before := effects()
	until("runs after a kill", func() bool { return effects() >= before+2 })
	until("the list", func() bool {
		return strings.HasPrefix(w.do("--schedules"), "tick ") && strings.Contains(w.do("--schedules"), " tick-")
	})
	w.do("--schedule-pause", "tick")
	tick := w.client.ScheduleClient().GetHandle(t.Context(), "schedule/tick")
	d, err := tick.Describe(t.Context())
	if err != nil || !d.Schedule.State.Paused || len(d.Info.RecentActions) == 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, a := range d.Info.RecentActions {
		s := w.await(a.StartWorkflowResult.WorkflowID, "done", nil)
		if s.Output != "from tick" {
			t.Errorf("output %q", s.Output)
		}
	}
	if n := effects(); n != d.Info.NumActions {
		t.Errorf("%d effects of %d runs", n, d.Info.NumActions)
	}
	t.Logf("%d runs, %d times skipped", d.Info.NumActions, d.Info.NumActionsSkippedOverlap)
	w.do("--schedule-continue", "tick")
	before = effects()
	until("runs when continued", func() bool { return effects() > before })
	w.do("--schedule-put", "tick") // again
	w.do("--schedule-delete", "tick")
	if _, said, code := w.try("--schedule-delete", "tick"); code != 4 || !strings.Contains(said, "the server has no schedule tick") {
		t.Errorf("exit status %d\n%s", code, said)
	}
	if _, said, code := w.try("--schedule-put", "refused"); code != 2 || !strings.Contains(said, "schedule refused: missed: once needs overlap: skip or queue") {
		t.Errorf("exit status %d\n%s", code, said)
	}
	if _, said, code := w.try("--schedule-put", "none"); code != 4 || !strings.Contains(said, "the configuration has no schedule none") {
		t.Errorf("exit status %d\n%s", code, said)
	}

	w.do("--schedule-put", "week")
	d, err = w.client.ScheduleClient().GetHandle(t.Context(), "schedule/week").Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compareTimes(t, d)
}

// compareTimes compares the next times of a server for the schedule week with the minutes that its words mean.
func compareTimes(t *testing.T, d *client.ScheduleDescription) {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	due := func(at time.Time) bool {
		monday, minutes := at.Weekday() == time.Monday, at.Hour()*60+at.Minute()
		return (minutes == 9*60+15 || minutes == 9*60+45 || minutes == 10*60+15 || minutes == 10*60+45) && (monday || at.Day() == 1) &&
			(!monday || minutes < 10*60+30 || minutes >= 12*60)
	}
	if len(d.Info.NextActionTimes) < 5 {
		t.Fatalf("%+v", d.Info)
	}
	at := d.Info.NextActionTimes[0].In(zone).Add(-time.Minute)
	for _, got := range d.Info.NextActionTimes {
		for at = at.Add(time.Minute); !due(at); at = at.Add(time.Minute) {
		}
		if !got.Equal(at) {
			t.Fatalf("the server is due at %s, want %s", got, at)
		}
	}
}
