package process

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func shell(script string) Command {
	return Command{Path: "cmd.exe", Args: []string{"/d", "/c", script}, Env: os.Environ()}
}

func TestWindowsOutcome(t *testing.T) {
	res, err := Run(t.Context(), shell("echo out& echo err 1>&2& exit 3"))
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || exit.Code != 3 || exit.Stderr != "err" || strings.TrimSpace(string(res.Stdout)) != "out" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestWindowsTreeIsKilled(t *testing.T) {
	cmd := shell("start /b ping -n 60 127.0.0.1& ping -n 60 127.0.0.1")
	cmd.Timeout, cmd.HasTimeout = 500*time.Millisecond, true
	res, err := Run(t.Context(), cmd)
	if _, ok := errors.AsType[*TimeoutError](err); !ok || res.Duration > 10*time.Second {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestWindowsStragglerIsKilled(t *testing.T) {
	res, err := Run(t.Context(), shell("start /b ping -n 60 127.0.0.1& exit 0"))
	if err != nil || !res.Held || res.Duration > 10*time.Second {
		t.Errorf("got %+v, %v", res, err)
	}
}
