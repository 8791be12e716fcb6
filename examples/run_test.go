package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"loki/internal/frontend/cli"
)

const bees = "Bees are insects. They make honey from nectar. A hive has one queen. " +
	"She lays up to two thousand eggs a day. In winter the bees keep the hive warm."

// TestRun runs each example as its README says, offline, in an empty home.
func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples' scripts need a POSIX shell")
	}
	for _, tt := range []struct {
		name    string
		args    []string
		stdin   string
		want    []string
		lines   int // of the answer that are bullets
		stderr  string
		status  int
		example string
	}{
		{name: "diamond", example: "diamond", args: []string{bees}, want: []string{"**In short:** ", "**In detail:**"}, lines: 3, stderr: "report"},
		{name: "diamond_with_a_variable", example: "diamond", args: []string{"--agent-variable", "bullets", "2", bees}, want: []string{"**In short:** "}, lines: 2},
		{name: "diamond_with_a_wrong_variable", example: "diamond", args: []string{"--agent-variable", "bullets", "some", bees}, status: 6, stderr: "the variable bullets must be a whole number"},
		{name: "approval_accepted", example: "approval-loop", args: []string{bees}, stdin: "accept\n", want: []string{". "}, stderr: "review"},
		{name: "approval_changed_twice", example: "approval-loop", args: []string{bees}, stdin: "in 1 sentence\nin 2 bullets\naccept\n", lines: 2, stderr: "in 1 sentence"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LOKI_CONFIG_DIR=" + filepath.Join(home, "config"), "LOKI_STATE_DIR=" + filepath.Join(home, "state")}
			var out, errOut bytes.Buffer
			status := cli.Main(append([]string{"-a", "./" + tt.example}, tt.args...), env, cli.Streams{In: strings.NewReader(tt.stdin), Out: &out, Err: &errOut}, cli.Faces{})
			if status != tt.status {
				t.Errorf("status %d: %s", status, &errOut)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the answer lacks %q:\n%s", want, &out)
				}
			}
			if got := strings.Count("\n"+out.String(), "\n- "); got != tt.lines {
				t.Errorf("%d bullets, want %d:\n%s", got, tt.lines, &out)
			}
			if !strings.Contains(errOut.String(), tt.stderr) {
				t.Errorf("standard error lacks %q:\n%s", tt.stderr, &errOut)
			}
		})
	}
}

// TestRunIsListed makes sure that no example is left out above.
func TestRunIsListed(t *testing.T) {
	source, err := os.ReadFile("run_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*/graph.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if dir := filepath.Dir(file); !bytes.Contains(source, []byte(`example: "`+dir+`"`)) {
			t.Errorf("example %s is not run", dir)
		}
	}
}
