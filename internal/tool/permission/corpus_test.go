package permission_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"loki/internal/base/process/sandbox"
	"loki/internal/tool/permission"
)

// corpusRules are those under which the lists of commands are judged.
var corpusRules = []permission.Rule{
	{Tool: "execute_command", Action: permission.Deny, Commands: []string{"rm *"}},
	{Tool: "execute_command", Action: permission.Deny, Commands: []string{"git push --force*"}},
	{Tool: "execute_command", Action: permission.Allow, Commands: []string{"npm run build*", "git commit *"}},
}

// project makes a workspace with a few files, and a link that leads out of it.
func project(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"a.txt": "foo\nbar\n", "README.md": "# x\n", "a b.txt": "x\n", "a.json": `{"a": [1]}`, "sub/b.txt": "b\n", "x": "x\n", "y.go": "package y\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func judge(t testing.TB, o permission.Options) *permission.Judge {
	t.Helper()
	j, err := permission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// shellCall is a call of execute_command.
func shellCall(text string) permission.Call {
	args, _ := json.Marshal(map[string]string{"command": text}) // cannot fail
	return permission.Call{Tool: "execute_command", Arguments: args, Destructive: true}
}

// unescape reads the escapes of the lists; others belong to the shell.
func unescape(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' || i+1 == len(line) {
			b.WriteByte(line[i])
			continue
		}
		i++
		switch line[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case '\\':
			b.WriteByte('\\')
		case 'u':
			if i+5 <= len(line) {
				if r, err := strconv.ParseUint(line[i+1:i+5], 16, 32); err == nil {
					b.WriteRune(rune(r))
					i += 4
					continue
				}
			}
			b.WriteString(`\u`)
		default:
			b.WriteByte('\\')
			b.WriteByte(line[i])
		}
	}
	return b.String()
}

// corpus reads a list of commands, each with what comes after a tab.
func corpus(t testing.TB, name string) (texts, wants []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		text, want, _ := strings.Cut(line, "\t")
		texts, wants = append(texts, unescape(text)), append(wants, want)
	}
	return texts, wants
}

// linked is a project with links that lead out of it.
func linked(t *testing.T) string {
	t.Helper()
	root := project(t)
	if err := os.Symlink("/etc", filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "sub", "inner")); err != nil {
		t.Fatal(err)
	}
	return root
}

// No command of the list, which is about getting around the rules, may be allowed without a
// sandbox, with any shell, or above the level read in one. Those that a rule is about may not be allowed at all.
func TestBypass(t *testing.T) {
	t.Parallel()
	root := linked(t)
	texts, wants := corpus(t, "bypass.txt")
	if len(texts) < 400 {
		t.Fatalf("only %d commands", len(texts))
	}
	for _, shell := range []string{"bash", "sh", "dash", "zsh", "ksh", "fish", "nushell", "pwsh", "cmd"} {
		o := permission.Options{Root: root, Home: "/home/user", Shell: shell, Rules: permission.Rules{List: corpusRules}}
		bare := judge(t, o)
		o.Sandboxed = true
		sandboxed := judge(t, o)
		asked := 0
		for i, text := range texts {
			if v := bare.Judge(shellCall(text)); v.Action == permission.Allow || v.Reason == "" {
				t.Errorf("%s: %q: %+v", shell, text, v)
			}
			v := sandboxed.Judge(shellCall(text))
			if v.Action == permission.Allow && (v.Level != sandbox.Read || wants[i] == "rule") {
				t.Errorf("%s: %q is allowed in the sandbox: %+v", shell, text, v)
			}
			if v.Action != permission.Allow {
				asked++
			}
		}
		t.Logf("%s: in the sandbox, %d of %d run at level read", shell, len(texts)-asked, len(texts))
	}
}

// The harmless commands that models run all day run unasked at level read, and so do they beside rules about
// other commands: those with rules after a tab are asked about then.
func TestHarmless(t *testing.T) {
	t.Parallel()
	root := project(t)
	texts, wants := corpus(t, "harmless.txt")
	if len(texts) < 200 {
		t.Fatalf("only %d commands", len(texts))
	}
	for _, shell := range []string{"bash", "sh", "zsh"} {
		o := permission.Options{Root: root, Home: "/home/user", Shell: shell, Sandboxed: true}
		free := judge(t, o)
		o.Rules.List = corpusRules
		ruled := judge(t, o)
		asked := 0
		for i, text := range texts {
			if v := free.Judge(shellCall(text)); v.Action != permission.Allow || v.Level != sandbox.Read {
				t.Errorf("%s: %q: %+v", shell, text, v)
			}
			v := ruled.Judge(shellCall(text))
			if v.Action != permission.Allow {
				asked++
			}
			if shell == "bash" && (v.Action != permission.Allow) != (wants[i] == "rules") {
				t.Errorf("%s: %q: %+v", shell, text, v)
			}
		}
		t.Logf("%s: beside rules that deny, asked about %d of %d", shell, asked, len(texts))
	}
}
