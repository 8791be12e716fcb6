package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/base/process/environ"
	"loki/internal/tool/mcp"
)

// hold is a program that holds servers, until it is killed.
func hold() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p := mcp.NewPool(mcp.Options{Child: environ.Child{Environ: os.Environ()}, Stderr: os.Stdout})
	for _, kind := range []string{"child", "sound", "deaf"} {
		s := mcp.Server{ID: kind, Type: mcp.Stdio, Command: self, Env: map[string]string{"LOKI_TEST_SERVER": kind}}
		if _, err := p.Acquire(context.Background(), s); err != nil {
			panic(err)
		}
	}
	for _, s := range p.Status() {
		fmt.Println("server", s.PID)
	}
	fmt.Println("ready")
	select {}
}

func TestKilledHolderLeavesNoOrphan(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "LOKI_TEST_HOLDER=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		fields := strings.Fields(lines.Text())
		pid, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			t.Fatal(lines.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 4 {
		t.Errorf("processes: %v", pids)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range pids {
		if !gone(pid, 5*time.Second) {
			t.Errorf("process %d lives on", pid)
		}
	}
}

// gone waits until there is no such process, or only its remains.
func gone(pid int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

// children returns the processes that this one started and that still are there.
func children(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		t.Skip(err)
	}
	list := strings.Fields(string(text))
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		text, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		list = append(list, strings.Fields(string(text))...)
	}
	return list
}
