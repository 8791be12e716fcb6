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

const all = "console|sh|yaml|python|bash"

// pagesRun are the languages of the blocks that are run, by pages.
var pagesRun = map[string]string{
	"runbook.md": "console", "begin.md": all, "graph-tutorial.md": all, "guide-review.md": all, "guide-folder.md": all, "guide-phone.md": all, "guide-test.md": all, "schedules.md": "sh", "concurrency.md": "console|yaml", "triggers.md": "console|sh|yaml", "alerts.md": "console|sh|yaml",
}

// pagesConsole are the pages of [TestConsoles], with the exit status of their commands.
var pagesConsole = map[string]int{"knowledge.md": 0, "plan.md": 8}

// pagesParsed are the pages with commands that no test runs as they stand, with the reason. TestCommandsInPages parses each call of
// loki in them.
var pagesParsed = map[string]string{
	"README.md":         "needs a release, a provider and files of the reader; .ci/run runs its two commands for a clone",
	"agents.md":         "needs a provider",
	"architecture.md":   "the command of README.md",
	"bash-tools.md":     "shows tools of the page; TestScripts has them",
	"benchmarks.md":     "measures for minutes",
	"builtin-models.md": "names files of the reader",
	"bundles.md":        "needs a repository of another host",
	"cli.md":            "needs a provider, and names files of the reader",
	"configuration.md":  "needs a provider",
	"custom-tools.md":   "names tools that the reader writes",
	"deployment.md":     "needs systemd, a domain and root",
	"events.md":         "needs a provider",
	"graph.md":          "TestScripts runs the examples that it names",
	"graph-nodes.md":    "TestScripts runs the examples that it names",
	"graph-running.md":  "TestScripts runs the examples that it names",
	"guide-servers.md":  "needs three machines; TestFleet has three servers",
	"install.md":        "needs a release, root and package managers; the tests of install.sh run it",
	"foreign-agents.md": "needs programs of others; TestScripts has one",
	"jobs.md":           "needs a provider; TestScripts has jobs",
	"limits.md":         "needs a provider that refuses calls",
	"macros.md":         "names a macro that the reader writes",
	"memory.md":         "keeps facts of the reader; TestScripts has the commands",
	"observability.md":  "needs a provider and a collector",
	"page.md":           "starts a server, which does not end",
	"plan-mode.md":      "needs a provider; TestScripts has the commands",
	"rendering.md":      "needs a provider",
	"repl.md":           "a dialog; the tests of package flow have it",
	"rest-api.md":       "needs a server with keys and agents of the reader; the tests of the server have the requests",
	"roles.md":          "needs a provider",
	"runs.md":           "needs runs of the reader; runbook.md is run",
	"sandbox.md":        "names agents of the reader",
	"sessions.md":       "needs a provider",
	"shell.md":          "changes the configuration of shells; TestScripts has the scripts",
	"skills.md":         "names files of the reader; TestScripts has them",
	"temporal.md":       "needs a server of Temporal",
	"testing-agents.md": "names cases of the reader; guide-test.md is run",
	"tools.md":          "searches a directory of the reader",
	"updates.md":        "needs a release",
	"vault.md":          "needs the keyrings of systems, and a browser",
	"workspace.md":      "names files of the reader; TestScripts has them",
	"worktrees.md":      "needs a repository of the reader; TestScripts has the commands",
}

// TestPagesAccountedFor finds the pages with commands that neither run in a test nor say why they do not.
func TestPagesAccountedFor(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join("..", "..", "..", "README.md")) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		if name == "README.md" && filepath.Base(filepath.Dir(page)) == "docs" {
			continue // a list of the others
		}
		_, run := pagesRun[name]
		_, console := pagesConsole[name]
		_, parsed := pagesParsed[name]
		if commands := regexp.MustCompile("(?m)^ *```(sh|console)$").Match(source); commands != (run || console || parsed) {
			t.Errorf("%s: commands %v, run %v, compared %v, with a reason %v", name, commands, run, console, parsed)
		}
	}
}

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
	for name, languages := range pagesRun {
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
