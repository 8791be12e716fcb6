// Package graphs is tested here: the graphs below this directory and the pages that show
// them say the same, and the graphs do what the pages say they do.
package graphs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"loki/internal/frontend/cli"
	"loki/internal/workflow/graph"
)

const root = "../.."

// pages are the reference of graphs.
var pages = []string{root + "/docs/graph.md", root + "/docs/graph-nodes.md", root + "/docs/graph-running.md", root + "/docs/graph-checking.md"}

// reference returns the text of all pages.
func reference(t *testing.T) string {
	t.Helper()
	var all []byte
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}

// TestMain is loki itself if it is called by that name.
func TestMain(m *testing.M) {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "loki" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{}))
	}
	os.Exit(m.Run())
}

// block is a fenced part of a page.
type block struct {
	page string
	line int // of its first line
	text string
}

// blocksOf returns the fenced parts of pages that are marked with language.
func blocksOf(t *testing.T, language string, pages ...string) []block {
	t.Helper()
	var list []block
	for _, page := range pages {
		list = append(list, blocks(t, page, language)...)
	}
	if len(list) == 0 {
		t.Fatalf("%q have no %s blocks", pages, language)
	}
	return list
}

// blocks returns the fenced parts of a page that are marked with language.
func blocks(t *testing.T, path, language string) []block {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var (
		list []block
		in   bool
	)
	for i, line := range strings.SplitAfter(string(src), "\n") {
		switch {
		case !in && strings.TrimSpace(line) == "```"+language:
			in = true
			list = append(list, block{page: path, line: i + 2})
		case in && strings.TrimSpace(line) == "```":
			in = false
		case in:
			list[len(list)-1].text += line
		}
	}
	return list
}

// TestPagesShowValidGraphs reads and checks every YAML block of the pages.
func TestPagesShowValidGraphs(t *testing.T) {
	env := graph.ValidateEnv{
		Dir: "/x", FileExists: func(string) bool { return true },
		Agent: func(string) (bool, bool) { return true, true },
	}
	for _, b := range blocksOf(t, "yaml", append(pages, root+"/README.md", root+"/docs/graph-tutorial.md", root+"/docs/guide-review.md", root+"/docs/guide-test.md", root+"/docs/guide-phone.md")...) {
		where := fmt.Sprintf("%s:%d", b.page, b.line)
		first, _, _ := strings.Cut(b.text, "\n")
		file, ok := strings.CutPrefix(first, "# ")
		file = strings.TrimPrefix(file, "examples/graphs/")
		if ok && strings.HasSuffix(file, ".yaml") && filepath.Base(file) != graph.FileName {
			continue // a subgraph, which is read with the graph, or the answers of a model
		}
		g, findings, err := graph.Read(where, []byte(b.text), graph.Beside(filepath.Dir(file)))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if !strings.Contains(b.text, "on_failure: ") {
			t.Errorf("%s does not say what a failure does", where)
		}
		for _, f := range append(findings, graph.Validate(g, env)...) {
			t.Errorf("%s: line %d of it: %s %s: %v", where, f.Line, f.Severity, f.Rule, f)
		}
	}
}

// TestReadmeRuns runs the workflow of the README as its first line says, with no other file.
func TestReadmeRuns(t *testing.T) {
	text := blocks(t, root+"/README.md", "yaml")[0].text
	command := regexp.MustCompile(`^# review/graph.yaml: run it with +loki -a ./review (.+) "(.+)"\n`).FindStringSubmatch(text)
	if command == nil {
		t.Fatalf("the first line does not say how to run it:\n%s", text)
	}
	dir := filepath.Join(t.TempDir(), "review")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "graph.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LOKI_CONFIG_DIR=" + home, "LOKI_STATE_DIR=" + home}
	var out, errOut bytes.Buffer
	args := append([]string{"-a", dir}, strings.Fields(command[1])...)
	if status := cli.Main(append(args, command[2]), env, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, cli.Faces{}); status != 0 {
		t.Fatalf("status %d: %s", status, &errOut)
	}
	if !strings.Contains(out.String(), "Style: ") || strings.Count(out.String(), command[2]) < 2 {
		t.Errorf("the answer is\n%s", &out)
	}
}

// modeline begins each graph, so that editors check it; the page leaves it out.
const modeline = "# yaml-language-server: $schema=../../../docs/graph.schema.json\n"

// TestPageShowsTheFiles compares the blocks that name a file with the file: whole
// graphs but for the modeline, and of scripts the lines that are shown.
func TestPageShowsTheFiles(t *testing.T) {
	shown := map[string]bool{}
	for _, b := range append(blocksOf(t, "yaml", pages...), blocksOf(t, "bash", pages...)...) {
		first, rest, _ := strings.Cut(b.text, "\n")
		path, ok := strings.CutPrefix(first, "# examples/graphs/")
		if !ok {
			continue
		}
		shown[path] = true
		src, err := os.ReadFile(path)
		switch {
		case err != nil:
			t.Error(err)
		case filepath.Base(path) == graph.FileName && string(src) != modeline+b.text,
			filepath.Base(path) != graph.FileName && !strings.HasSuffix(string(src), rest):
			t.Errorf("%s:%d differs from %s", b.page, b.line, path)
		}
	}
	files, err := filepath.Glob("*/" + graph.FileName)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !shown[filepath.ToSlash(file)] {
			t.Errorf("no page shows %s", file)
		}
	}
}

// TestExamplesAreValid checks the graphs with the scripts that are there.
func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("*/" + graph.FileName)
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		g, findings, err := graph.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range append(findings, graph.Validate(g, graph.ValidateEnv{Dir: filepath.Dir(file)})...) {
			t.Errorf("%s:%d: %s %s: %v", file, f.Line, f.Severity, f.Rule, f)
		}
		if g.Name != filepath.Dir(file) {
			t.Errorf("%s is called %q", file, g.Name)
		}
	}
}

// TestCommandsOfThePages runs the console blocks of the pages as a user would, with a home of their
// own, and compares what is printed to standard output.
func TestCommandsOfThePages(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples need bash")
	}
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "loki")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // the scripts of some examples write in the working directory
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocksOf(t, "console", append(pages, root+"/docs/knowledge.md")...) {
		t.Run(fmt.Sprintf("%s_line_%d", strings.TrimSuffix(filepath.Base(b.page), ".md"), b.line), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			for command, want := range commands(b.text) {
				cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
				cmd.Dir = dir
				cmd.Env = []string{
					"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "NO_COLOR=1", "HOME=" + home, "TMPDIR=" + home,
					"LOKI_CONFIG_DIR=" + filepath.Join(home, "config"), "LOKI_STATE_DIR=" + filepath.Join(home, "state"),
					"LOKI_TRUSTED_DIRS=" + filepath.Join(dir, "examples", "graphs"),
					"GORACE=atexit_sleep_ms=0", // the race detector waits a second at each exit
				}
				var stderr strings.Builder
				cmd.Stderr = &stderr
				got, err := cmd.Output()
				if err != nil || string(got) != want {
					t.Fatalf("%s\ngot  %s, %v\nwant %s\n%s", command, got, err, want, stderr.String())
				}
			}
		})
	}
}

// commands yields the commands of a console block, each with its output.
func commands(text string) func(yield func(command, output string) bool) {
	return func(yield func(command, output string) bool) {
		for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
			command, output, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
			if !yield(command, output) {
				return
			}
		}
	}
}

// TestPageListsTheRules compares the table of rules with the source.
func TestPageListsTheRules(t *testing.T) {
	src, err := os.ReadFile(root + "/internal/workflow/graph/validate.go")
	if err != nil {
		t.Fatal(err)
	}
	text := reference(t)
	listed := func(pattern, text string) []string {
		var names []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	want := listed(`\bRule\w+ +Rule = "([a-z-]+)"`, string(src))
	for _, rule := range want {
		row := regexp.MustCompile("(?m)^\\| `" + rule + "` \\| (?:error|warning)[a-z, ]* \\| (.*) \\|$").FindStringSubmatch(text)
		if meaning := graph.Rule(rule).Meaning(); row == nil || row[1] != meaning || meaning == "" {
			t.Errorf("the page says of %s\n%q\nand internal/workflow/graph/rule.go\n%q", rule, row, meaning)
		}
	}
	got := listed("(?m)^\\| `([a-z-]+)` \\| (?:error|warning)", text)
	if !slices.Equal(got, want) || len(want) < 30 {
		t.Errorf("the page lists\n%q\nthe rules are\n%q", got, want)
	}
}

// TestPageNamesEveryField checks that a field the parser reads is on the page.
func TestPageNamesEveryField(t *testing.T) {
	text := reference(t)
	var fields []string
	for _, file := range []string{"parse.go", "parse_node.go", "parse_policy.go"} {
		src, err := os.ReadFile(root + "/internal/workflow/graph/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\("([a-z_]+)", (?:&|m\.|c\.|templates)|[mrbc], "([a-z_]+)"`).FindAllStringSubmatch(string(src), -1) {
			fields = append(fields, m[1]+m[2])
		}
	}
	if len(fields) < 50 {
		t.Fatalf("only %d fields were found: %q", len(fields), fields)
	}
	for _, field := range fields {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("no page names %s", field)
		}
	}
}
