package job_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"loki/internal/setup/config"
)

// markVariable makes the test a program that starts jobs, of which the value marks the processes.
const markVariable = "LOKI_TEST_JOBS"

// TestStartsJobs is that program. It runs until it is killed.
func TestStartsJobs(t *testing.T) {
	mark := os.Getenv(markVariable)
	if mark == "" {
		t.Skip("it is started by TestKills")
	}
	r := newRig(t, config.Jobs{})
	fmt.Println("begun")
	for i := 0; ; i++ {
		level := []string{"read", "write", "full"}[i%3]
		leave := "setsid "
		if level == "full" { // a process that leaves its session escapes there
			leave = ""
		}
		r.start(fmt.Sprintf("%ssleep %s.1 & (trap '' TERM HUP; sleep %s.2; :) & echo up; sleep %s.3; :", leave, mark, mark, mark), "sandbox", level, "ready", "up")
		if i == 4 {
			select {}
		}
	}
}

// TestKills kills a program that has jobs, and starts some, and expects that no process of theirs is left.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 50
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		kills = 1000
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("27182%d", os.Getpid())
	for i := range kills {
		cmd := exec.Command(exe, "-test.run=^TestStartsJobs$", "-test.v")
		cmd.Env = append(os.Environ(), markVariable+"="+mark)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "begun"; {
		}
		<-time.After(rand.N(400 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if i%10 == 9 || i == kills-1 {
			noneLeft(t, mark)
		}
	}
}

// noneLeft waits until no process has mark in its command line.
func noneLeft(t *testing.T, mark string) {
	t.Helper()
	left := ""
	for deadline := time.After(20 * time.Second); ; {
		if left = processes(t, mark); left == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("left are %s", left)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
