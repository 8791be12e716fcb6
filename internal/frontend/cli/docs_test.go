package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^[ \t]*```sh[ \t]*$(.*?)^[ \t]*```[ \t]*$")
	inlineCode = regexp.MustCompile("`((?:go run ./cmd/loki|loki) [^`\n]*)`")
)

// TestCommandsInPages parses every command line of this program that a page names, and
// looks for the examples that it runs.
func TestCommandsInPages(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	parsed := 0
	err := filepath.WalkDir(root, func(page string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && page != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(page, ".md"):
			return nil
		}
		source, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, args := range commandsIn(string(source)) {
			parsed++
			if err := parseOnly(args); err != nil {
				t.Errorf("%s: loki %s: %v", page, strings.Join(args, " "), err)
			}
			for _, arg := range args {
				if !strings.HasPrefix(arg, "./examples/") {
					continue
				}
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(arg))); err != nil {
					t.Errorf("%s: %s is not there", page, arg)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if parsed < 15 {
		t.Errorf("only %d commands found", parsed)
	}
}

// parseOnly reads a command line as [command.run] does, and does nothing.
func parseOnly(args []string) error {
	var o options
	cmd := newCommand(&o, func(*cobra.Command) error { return nil })
	expanded, err := expandArgs(cmd.Flags(), args)
	if err != nil {
		return err
	}
	cmd.SetArgs(expanded)
	return cmd.Execute()
}

// commandsIn returns the arguments of each call of the program in a page.
func commandsIn(page string) [][]string {
	var calls [][]string
	for _, m := range shellBlock.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", " ")) {
			calls = append(calls, callsIn(line)...)
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(page, ""), -1) {
		calls = append(calls, callsIn(m[1])...)
	}
	return calls
}

// callsIn returns the arguments of each call of the program in a line of shell.
func callsIn(line string) [][]string {
	var calls [][]string
	for _, words := range shellCommands(line) {
		for len(words) > 0 && assignment.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 3 && slices.Equal(words[:3], []string{"go", "run", "./cmd/loki"}) {
			words = words[2:]
		} else if len(words) == 0 || words[0] != "loki" {
			continue
		}
		calls = append(calls, words[1:])
	}
	return calls
}

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)

// shellCommands splits a line into commands and these into words, as far as pages need
// it: quotes, comments, pipes, substitutions in parentheses.
func shellCommands(line string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	started := false
	endWord := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, started = c, true
		case c == '#' && !started:
			i = len(line)
		case c == ' ' || c == '\t' || c == '\n':
			endWord()
		case strings.IndexByte("|;&()", c) >= 0:
			endWord()
			commands, words = append(commands, words), nil
		case c == '>' || c == '<':
			endWord()
			commands, words = append(commands, words), nil // what follows is a file
		default:
			word.WriteByte(c)
			started = true
		}
	}
	endWord()
	return append(commands, words)
}

func TestShellCommands(t *testing.T) {
	for line, want := range map[string]string{
		`loki -m a "b  c" # not this`:             "-m|a|b  c",
		`cat x | loki 'it''s' > out`:              "its",
		`A=1 B="2 3" loki hi`:                     "hi",
		`answer=$(loki -a weather "What?")`:       "-a|weather|What?",
		`go run ./cmd/loki -a digest ./docs`:      "-a|digest|./docs",
		`printf 'x\n' | go run ./cmd/loki "$(y)"`: "$(y)",
	} {
		calls := callsIn(line)
		if len(calls) != 1 || strings.Join(calls[0], "|") != want {
			t.Errorf("%s: %q, want %s", line, calls, want)
		}
	}
	if calls := callsIn("echo loki -a x"); len(calls) != 0 {
		t.Errorf("words of another command: %q", calls)
	}
}

// TestOfflineCommands looks at the command lines that promise to work offline, in pages
// and in the help: each names a model that is part of the program. A configured model
// would get the text otherwise.
func TestOfflineCommands(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"the help": examples}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(source)
	}
	command := regexp.MustCompile(`(?m)^.*\bloki -.*\boffline\b.*$|\boffline\b[^\x60]*\n[^\x60]*` + "```sh\n" + `(.*\bloki .*)$`)
	found := 0
	for page, text := range texts {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			found++
			if line := m[0]; !strings.Contains(line, "builtin:") {
				t.Errorf("%s promises offline, but a configured model would be asked: %s", page, line)
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d such commands found", found)
	}
}
