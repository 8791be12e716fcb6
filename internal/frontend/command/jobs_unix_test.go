//go:build unix

package command

import (
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

func TestJobs(t *testing.T) {
	none, _ := newConsoleWith(t, "jobs: {max: 0}\n", nil)
	if err := none.Do(t.Context(), ".jobs"); fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
		t.Errorf("without jobs: %v", err)
	}
	c, _ := talk(t, nil, nil, "",
		step{line: ".jobs", want: "no jobs in this conversation"},
		step{line: ".jobs job-00000000", err: `there is no job "job-00000000" in this conversation; .jobs lists .*`},
		step{line: ".jobs kill", err: `.jobs takes nothing, an ID, kill ID or keep ID, not "kill"; .*`},
		step{line: ".jobs end job-00000000", err: `.jobs takes nothing, .*`},
	)
	program := process.Command{Path: "sh", Args: []string{"-c", "echo begun; exec sleep 600"}, Env: []string{"PATH=/bin:/usr/bin"}}
	if _, err := c.conv.Jobs().Start(t.Context(), tool.Call{}, builtin.Job{Text: "serve it", Program: program}); err != nil {
		t.Fatal(err)
	}
	out := new(notes)
	c.Out = out
	do := func(line string) string {
		t.Helper()
		*out = nil
		if err := c.Do(t.Context(), line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return strings.Join(*out, "|")
	}
	id := c.conv.Jobs().All()[0].ID
	if got := do(".jobs"); !strings.HasPrefix(got, id+"  running  ") || !strings.HasSuffix(got, "serve it") {
		t.Errorf(".jobs prints %q", got)
	}
	if got := do(".jobs " + id); got != "begun" {
		t.Errorf("the output is %q", got)
	}
	if found := completeJobs(c, t.Context(), []string{"kill", ""}); len(found) != 1 || found[0].Value != id {
		t.Errorf("completion offers %+v", found)
	}
	if got := do(".mode plan"); !strings.Contains(got, "still running: 1 job that may write") {
		t.Errorf("plan mode with a job says %q", got)
	}
	do(".jobs kill " + id)
	if got := do(".mode plan"); strings.Contains(got, "still running") {
		t.Errorf("plan mode without a job says %q", got)
	}
	if got := do(".jobs"); !strings.HasPrefix(got, id+"  killed  ") {
		t.Errorf(".jobs prints %q", got)
	}
	if found := completeJobs(c, t.Context(), []string{"kill", ""}); len(found) != 0 {
		t.Errorf("completion offers %+v to be ended", found)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
