package cli

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"loki/internal/app"
)

// What the user has executed is a child like any other, and a failure names what it lacked.
func TestRunShellEnvironment(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a POSIX shell is needed")
	}
	home := t.TempDir()
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LOKI_CONFIG_DIR=" + home, "LOKI_SHELL=sh", "LOKI_SAVE_SHELL_HISTORY=false",
		"PLAIN=plain", "SOME_TOKEN=secret-value",
	}
	var out, errOut bytes.Buffer
	c := &command{Streams: Streams{Out: &out, Err: &errOut}, environ: environ}
	var err error
	if c.app, err = app.New(app.Options{Environ: environ}); err != nil {
		t.Fatal(err)
	}
	if err := c.runShell(`echo "$PLAIN $SOME_TOKEN."`); err != nil || out.String() != "plain .\n" || errOut.Len() > 0 {
		t.Errorf("%v, printed %q and %q", err, out.String(), errOut.String())
	}
	err = c.runShell("exit 3")
	if status, ok := errors.AsType[commandStatus](err); !ok || status != 3 {
		t.Errorf("got %v", err)
	}
	err = c.runShell("kill -TERM $$")
	if status, ok := errors.AsType[commandStatus](err); !ok || status != 143 {
		t.Errorf("killed by SIGTERM: %v", err)
	}
	if text := errOut.String(); !strings.Contains(text, "withheld from its environment: SOME_TOKEN; ") || strings.Contains(text, "secret-value") {
		t.Errorf("the failure says %q", text)
	}
}
