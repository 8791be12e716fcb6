package command

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"loki/internal/base/fault"
)

// TestShell: commands of the shell are the same in a macro, where one that fails ends it.
func TestShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	c, out := newConsole(t, map[string]string{
		"macros/works.yaml": "variables: [{name: word}]\nsteps: ['!echo {{word}}; exit 0', '!! what?']\n",
		"macros/fails.yaml": "steps: ['!echo one; exit 3', '!echo two']\n",
	})
	err := c.Do(t.Context(), ".macro works x")
	if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "macro works, step 1 of 2") || !strings.Contains(err.Error(), "cannot be run here") {
		t.Errorf("without a terminal: %v", err)
	}
	var printed bytes.Buffer
	lent := 0
	c.Shell = func() (Terminal, func()) {
		lent++
		return Terminal{Out: &printed, Environ: os.Environ()}, func() { lent-- }
	}
	*out = nil
	if err := c.Do(t.Context(), ".macro works word"); err != nil || printed.String() != "word\n" {
		t.Errorf("%v, printed %q", err, printed.String())
	}
	if got := strings.Join(*out, "|"); !strings.HasPrefix(got, ">> !echo word; exit 0|>> !! what?|what?") || !strings.Contains(got, "CMD: echo word; exit 0 ============\nword") {
		t.Errorf("got %q", got)
	}
	printed.Reset()
	err = c.Do(t.Context(), ".macro fails")
	if _, ok := errors.AsType[*ShellError](err); !ok || !strings.Contains(err.Error(), "macro fails, step 1 of 2") || printed.String() != "one\n" {
		t.Errorf("%v, printed %q", err, printed.String())
	}
	if err := c.Do(t.Context(), "!! of the macro"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("the output of a macro's command is there behind it: %v", err)
	}
	printed.Reset()
	if err := c.conv.Set(t.Context(), "dry_run", "true"); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), ".macro fails"); err != nil || printed.Len() > 0 {
		t.Errorf("in a dry run: %v, printed %q", err, printed.String())
	}
	if lent != 0 {
		t.Errorf("%d programs still have the terminal", lent)
	}
}

func TestTail(t *testing.T) {
	out := &tail{limit: 10}
	for range 100 {
		if _, err := out.Write([]byte("abcd\x1b[31m")); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = out.Write([]byte("0123456789"))
	if got := out.text(); !strings.HasSuffix(got, "\n0123456789") || len(out.kept) > 40 {
		t.Errorf("it keeps %q of %d bytes", got, len(out.kept))
	}
}
