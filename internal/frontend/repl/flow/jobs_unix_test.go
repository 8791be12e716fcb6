//go:build unix

package flow_test

import (
	"context"
	"path/filepath"
	"testing"

	"loki/internal/agent/team/job"
)

// watching is the model of TestJobNews, which starts a job that ends when a file is there.
const watching = `rules:
  - match: {text: wait for it, turn: 1}
    tool_calls:
      - {name: execute_command, arguments: {command: "echo up; until [ -e go ]; do sleep 0.1; done; exit 3", background: true, ready: up}}
default: {reply: It waits.}
`

// TestJobNews: a job that ends while a line is typed has its line above the prompt at once.
func TestJobNews(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{columns: 100, rows: 40, rules: watching, config: "enabled_tools: all\n"})
	u.enter("wait for it")
	u.sees(`runs job-[0-9a-f]{8}: echo up`, `^It waits\.`)
	u.idle(1)
	u.typed("half a li")
	u.sees(`half a li$`)
	u.write("go", "")
	u.sees(`job-[0-9a-f]{8} \(echo up.*\) exited with status 3\n.*> half a li$`)
	u.typed("ne")
	u.keys("Enter")
	u.sees(`^It waits\.(.|\n)*half a line(.|\n)*^It waits\.`)
	u.idle(2)
}

// TestKeptJob: a job that outlives Loki is there at once when its session is continued.
func TestKeptJob(t *testing.T) {
	t.Parallel()
	const keeping = `rules:
  - match: {text: keep it, turn: 1}
    tool_calls:
      - {name: execute_command, arguments: {command: "echo up; sleep 600", background: true, keep: true, ready: up}}
default: {reply: It stays.}
`
	u := begin(t, setup{columns: 100, rows: 40, rules: keeping, config: "enabled_tools: all\n", args: []string{"-s", "srv"}, before: "loki -s srv; "})
	t.Cleanup(func() {
		dir := filepath.Join(u.home, "state", "jobs")
		for _, r := range job.KeptJobs(dir) {
			_, _ = job.KillKept(context.Background(), dir, r.ID) // it may have ended
		}
	})
	u.enter("keep it")
	u.answer("when Loki has ended", "y", "Enter")
	u.sees(`^It stays\.`)
	before := u.enter(".exit")
	u.sees(`it continues; to end it: loki --kill-job`)
	u.idle(before + 1)
	u.do(".jobs", `job-[0-9a-f]{8} .*running.*echo up`)
}
