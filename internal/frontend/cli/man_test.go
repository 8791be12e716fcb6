package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loki/internal/base/fault"
)

// TestManual: the manual page has every flag once, with its value, and every exit status.
func TestManual(t *testing.T) {
	page := manual()
	newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden { // is shown as another flag
			return
		}
		spelled, usage := manualFlag(f)
		if n := strings.Count(page, "\n.TP\n"+spelled+"\n"); n != 1 || !strings.Contains(spelled, `\-\-`+roff(f.Name)+`\fR`) {
			t.Errorf("%q is %d times in the page", spelled, n)
		}
		if usage == "" {
			t.Errorf("--%s has no description", f.Name)
		}
	})
	for _, code := range []fault.Code{
		fault.Failure, fault.Usage, fault.Config, fault.NotFound, fault.Provider, fault.Refused, fault.Tool, fault.Limit, fault.Suspended, fault.Canceled,
	} {
		if status := fault.ExitCode(&fault.Error{Code: code}); !strings.Contains(page, fmt.Sprintf("\n.B %d\n", status)) {
			t.Errorf("status %d of %s is missing", status, code)
		}
	}
}

// TestManualRenders: man reads the page without a warning.
func TestManualRenders(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-P-cbou", "-ww")
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(manual()), &out, &problems
	if err := cmd.Run(); err != nil || problems.Len() > 0 {
		t.Errorf("%v, %s", err, problems.String())
	}
	for _, want := range []string{"LOKI(1)", "-m, --model MODEL", "--update [VERSION]", "--call-tool NAME JSON", "  cat log.txt | loki -m builtin:extract"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a-b": `a\-b`, ".x\n.y": "\\&.x\n\\&.y", `\n`: `\en`, "it's": `it\(aqs`} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
