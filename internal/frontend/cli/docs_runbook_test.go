package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestRunbook runs the commands of the consoles on docs/runbook.md in one shell, on a server, and compares what they
// print with what the page shows. There, "…" stands for any text.
func TestRunbook(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the page is for POSIX systems")
	}
	for _, program := range []string{"bash", "curl", "ps", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "-- command "
	var script strings.Builder
	var commands, wants []string
	for _, console := range regexp.MustCompile("(?ms)^```console$\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(console[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				fmt.Fprintf(&script, "echo '%s%d'\n%s", mark, len(commands), command)
				fmt.Fprintf(&script, "status=$?; [ $status = 0 ] || { echo \"exit status $status\"; exit 1; }\n")
				commands, wants = append(commands, command), append(wants, "")
				continue
			}
			wants[len(wants)-1] += line
		}
	}
	if len(commands) == 0 {
		t.Fatal("the page has no command")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "trap 'kill $SERVER 2>/dev/null' EXIT\n"+strings.ReplaceAll(script.String(), "127.0.0.1:3400", freeAddress(t)))
	cmd.Dir = dir
	for _, name := range []string{"config", "state"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(emptyHome(dir), "LOKI_CONFIG_DIR="+filepath.Join(dir, "config"), "LOKI_STATE_DIR="+filepath.Join(dir, "state"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for i, got := range regexp.MustCompile(`(?m)^`+mark+`\d+\n`).Split(string(output), -1)[1:] {
		want := strings.ReplaceAll(regexp.QuoteMeta(wants[i]), "…", ".*")
		if !regexp.MustCompile("^(?s:" + strings.TrimSuffix(want, "\n") + ")\\n?$").MatchString(got) {
			t.Errorf("$ %sgot\n%s\nthe page shows\n%s", commands[i], got, wants[i])
		}
	}
}

// freeAddress returns an address of this machine at which no program listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
