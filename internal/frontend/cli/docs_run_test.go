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

// TestPagesRun runs the commands of pages as a user would who types them from top to bottom, each page in one shell, and
// compares what they print with what the page shows. There, "…" is any text. A server listens at another address than the
// page shows.
func TestPagesRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pages are for POSIX systems")
	}
	for _, program := range []string{"bash", "curl", "git", "ps", "python3", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	const all = "console|sh|yaml|python|bash"
	for name, languages := range map[string]string{"runbook.md": "console", "begin.md": all, "graph-tutorial.md": all, "guide-review.md": all, "guide-folder.md": all, "guide-phone.md": all, "guide-test.md": all} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runPage(t, name, languages)
		})
	}
}

var fileLine = regexp.MustCompile(`^# (\S+\.\w+)\n`)

// runPage runs the blocks of a page that are in one of languages, which has a vertical bar between two. A block that is
// neither a console nor sh is written to the file that its first line names in a comment, if it names one.
func runPage(t *testing.T, name, languages string) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	const (
		mark = "-- command "
		ends = "status=$?; [ $status = 0 ] || { echo \"exit status $status\"; exit 1; }\n"
	)
	var script strings.Builder
	var commands, wants []string
	for _, block := range regexp.MustCompile("(?ms)^```("+languages+")$\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		if path := fileLine.FindStringSubmatch(block[2]); path != nil && block[1] != "console" {
			block[1], block[2] = "sh", fmt.Sprintf("mkdir -p %s; cat >%s <<'END'\n%sEND\n", filepath.Dir(path[1]), path[1], block[2])
		}
		switch block[1] {
		case "yaml", "python", "bash": // a part of a file
			continue
		case "sh":
			fmt.Fprintf(&script, "echo '%s%d'\n%s%s", mark, len(commands), block[2], ends)
			commands, wants = append(commands, block[2]), append(wants, "…")
			continue
		}
		for line := range strings.Lines(block[2]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				fmt.Fprintf(&script, "echo '%s%d'\n%s%s", mark, len(commands), command, ends)
				if command == "loki --serve &\n" {
					script.WriteString("until loki --healthcheck http://127.0.0.1:3400 >/dev/null 2>&1; do sleep 0.1; done\n")
				}
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
	text := strings.ReplaceAll(script.String(), "loki --serve &\n", "loki --serve 127.0.0.1:3400 &\n")
	address := freeAddress(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "trap 'kill $SERVER $(jobs -p) 2>/dev/null' EXIT\n"+strings.ReplaceAll(text, "127.0.0.1:3400", address))
	cmd.Dir = dir
	for _, name := range []string{"config", "state"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(emptyHome(dir), "LOKI_CONFIG_DIR="+filepath.Join(dir, "config"), "LOKI_STATE_DIR="+filepath.Join(dir, "state"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for i, got := range regexp.MustCompile(`(?m)^`+mark+`\d+\n`).Split(strings.ReplaceAll(string(output), address, "127.0.0.1:3400"), -1)[1:] {
		if strings.HasPrefix(commands[i], "kill ") {
			continue // the shell may say that a job has ended
		}
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
