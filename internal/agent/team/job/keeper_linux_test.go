package job_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"loki/internal/agent/team/job"
	"loki/internal/base/process"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/builtin/ignore"
)

// TestMain makes the test program a keeper, when it is started as one.
func TestMain(m *testing.M) {
	if job.ServeKeeper(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// keep has the jobs of a rig be kept.
func (r *rig) keep() {
	r.options.Ignored = func(string) ignore.Files { return ignore.Files{} }
	r.list = job.New(r.options)
	r.t.Cleanup(func() { r.list.Close("the test ended") })
	r.equip()
}

// startKept starts a job that is kept, and ends with the test at the latest.
func (r *rig) startKept(command string, more ...any) result {
	r.t.Helper()
	got := r.start(command, append(more, "keep", true)...)
	if got.Job != "" {
		r.t.Cleanup(func() {
			_, _ = job.KillKept(context.Background(), r.options.Dir, got.Job) // it may have ended
		})
	}
	return got
}

// TestKept checks that a job which is kept outlives its list, is found by the next one of the session, and ends on request.
func TestKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{LogBytes: 64 << 10})
	r.keep()
	mark := fmt.Sprintf("31415%d", os.Getpid())
	got := r.startKept(fmt.Sprintf("echo up; for i in {1..20000}; do echo line $i; done; (setsid sleep %s.1 &); echo all; sleep %[1]s.2", mark), "ready", "^all")
	if got.Status != job.Running || got.Ready == nil || !*got.Ready {
		t.Fatalf("the start returned %+v", got)
	}
	const begin = int64(len("up\n")) // positions are those of all that was printed
	total := begin + int64(len("all\n"))
	for i := 1; i <= 20000; i++ {
		total += int64(len(fmt.Sprintf("line %d\n", i)))
	}
	out := r.call("job__output", map[string]any{"id": got.Job, "since": total - 15})
	if out.Output != "line 20000\nall\n" || out.To != total || out.Dropped != 0 {
		t.Errorf("the output is %+v, want the end at %d", out, total)
	}
	if ended := r.list.Close("the conversation ended"); len(ended) != 1 || ended[0].Status != job.Kept || !strings.Contains(ended[0].Reason, "--kill-job "+got.Job) {
		t.Errorf("at its end the conversation says %+v", ended)
	}
	if processes(t, mark) == "" {
		t.Error("it did not outlive the list")
	}
	if out := r.call("job__output", map[string]any{"id": got.Job}); out.Status != job.Lost { // there is no session
		t.Errorf("another conversation reads %+v", out)
	}
	rec, err := job.KillKept(t.Context(), r.options.Dir, got.Job)
	if err != nil || rec.Status != job.Killed {
		t.Errorf("the kill returned %+v, %v", rec, err)
	}
	noneLeft(t, mark)
}

// TestKeptInSession checks that a later program has the jobs of its session that were kept.
func TestKeptInSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	r.keep()
	if _, err := r.list.Equip(tool.Set{}, "session-1"); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	got := r.startKept("echo up; until [ -e go ]; do sleep 0.1; done; exit 7", "ready", "up", "ports", []int{port}, "sandbox", "network")
	r.list.Close("over")
	other := job.New(r.options)
	if other.Continue("session-2"); len(other.All()) > 0 {
		t.Errorf("another session has %+v", other.All())
	}
	r.keep()
	if _, err := r.list.Equip(tool.Set{}, "session-1"); err != nil {
		t.Fatal(err)
	}
	if all := r.list.All(); len(all) != 1 || all[0].ID != got.Job || all[0].Status != job.Running {
		t.Errorf("at once there are %+v", all)
	}
	if _, ok := r.list.Reach()[port]; !ok {
		t.Errorf("commands do not reach port %d", port)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job}); out.Status != job.Running || out.Output != "up\n" {
		t.Fatalf("it reads %+v", out)
	}
	r.list.Continue("session-2")
	r.list.Continue("session-1")
	if all := r.list.All(); len(all) != 1 {
		t.Errorf("continued again, it has %+v", all)
	}
	if err := os.WriteFile(r.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-r.list.News()
	if ended := r.list.TakeEnded(); len(ended) != 1 || ended[0].Exit == nil || *ended[0].Exit != 7 {
		t.Errorf("ended are %+v", ended)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job}); out.Exit == nil || *out.Exit != 7 {
		t.Errorf("it reads %+v", out)
	}
}

// TestKeeperKilled checks that nothing is left of a job whose keeper is killed, and that it is lost.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	r.keep()
	mark := fmt.Sprintf("14142%d", os.Getpid())
	got := r.startKept(fmt.Sprintf("(trap '' TERM HUP; sleep %s.1; :) & echo up; sleep %[1]s.2; :", mark), "ready", "up")
	all := job.KeptJobs(r.options.Dir)
	if len(all) != 1 || all[0].ID != got.Job || all[0].Status != job.Running {
		t.Fatalf("the list is %+v", all)
	}
	if err := syscall.Kill(all[0].Keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, mark)
	out := r.call("job__output", map[string]any{"id": got.Job, "wait": "end", "timeout": 60})
	if out.Status != job.Killed || !strings.Contains(out.Reason, "keeper was killed") {
		t.Errorf("it reads %+v", out)
	}
	if _, err := job.KillKept(t.Context(), r.options.Dir, got.Job); err == nil {
		t.Error("it was killed twice")
	}
}

// TestKeptAgain checks that a job which runs is started again by a keeper, and that a command that cannot be started is an error.
func TestKeptAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	if got := r.start("true", "keep", true); !strings.Contains(got.Error, "no job outlives") {
		t.Errorf("without a keeper: %+v", got)
	}
	r.keep()
	got := r.start("echo up; sleep 600", "ready", "up")
	id, err := r.list.Keep(t.Context(), got.Job)
	if err != nil {
		t.Fatal(err)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job}); out.Status != job.Killed || !strings.Contains(out.Reason, id) {
		t.Errorf("the job before is %+v", out)
	}
	if out := r.call("job__output", map[string]any{"id": id, "wait": "output"}); out.Status != job.Running || out.Output != "up\n" {
		t.Errorf("the job is %+v", out)
	}
	if _, err := r.list.Keep(t.Context(), id); err == nil {
		t.Error("it is kept twice")
	}
	if killed := r.call("job__kill", map[string]any{"id": id}); killed.Status != job.Killed {
		t.Errorf("the kill returned %+v", killed)
	}
	_, err = r.list.Start(t.Context(), tool.Call{}, builtin.Job{Keep: true, Program: process.Command{Path: "/no/such/program"}})
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
	if all := job.KeptJobs(r.options.Dir); len(all) != 1 {
		t.Errorf("records of jobs: %+v", all)
	}
}

// TestNoRoomToKeep checks that a job continues that cannot be kept, as there are as many.
func TestNoRoomToKeep(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{Max: 1})
	r.keep()
	r.startKept("echo up; sleep 600", "ready", "up")
	r.list.Close("over")
	r.keep()
	got := r.start("echo up; sleep 600", "ready", "up")
	if _, err := r.list.Keep(t.Context(), got.Job); err == nil || !strings.Contains(err.Error(), "as many jobs are kept") {
		t.Errorf("it was kept: %v", err)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job}); out.Status != job.Running {
		t.Errorf("the job is %+v", out)
	}
}
