package permission_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/process/sandbox"
	"loki/internal/tool/permission"
)

// levelCall is a call of execute_command that asks for a level.
func levelCall(text string, level sandbox.Level, hosts ...string) permission.Call {
	args, _ := json.Marshal(map[string]any{"command": text, "sandbox": level, "hosts": hosts, "reason": "it needs that"}) // cannot fail
	return permission.Call{Tool: "execute_command", Arguments: args, Destructive: true}
}

// TestEverydayCommands counts the false questions about everyday commands: those about commands that need the level
// read, and those about commands that need write after the user has granted that for the session.
func TestEverydayCommands(t *testing.T) {
	t.Parallel()
	levels, texts := corpus(t, "everyday.txt")
	if len(texts) < 400 {
		t.Fatalf("only %d commands", len(texts))
	}
	for _, tt := range []struct{ name, rules string }{
		{"without_rules", ""},
		{"with_rules", `execute_command: {"git push*": ask, "rm *": deny, "sudo *": ask}`},
	} {
		j := judge(t, permission.Options{Root: project(t), Home: "/home/user", Shell: "bash", Sandboxed: true, Rules: read(t, tt.rules), Memory: permission.NewMemory("")})
		if v := j.Judge(levelCall("touch x", sandbox.Write)); v.Action != permission.Ask || len(v.Wider) != 1 {
			t.Fatalf("%+v", v)
		} else if err := j.Remember(t.Context(), permission.Session, v.Wider); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for i, text := range texts {
			level := sandbox.Level(levels[i])
			call := levelCall(unescape(text), level)
			if level == sandbox.Read {
				call = shellCall(unescape(text))
			}
			v := j.Judge(call)
			switch {
			case level == sandbox.Network:
				if v.Action == permission.Allow {
					t.Errorf("%s is allowed: %+v", text, v)
				}
			case v.Action != permission.Allow:
				asked++
				t.Logf("%s: %q: %s", tt.name, text, v.Reason)
			case v.Level != level:
				t.Errorf("%s: level %s", text, v.Level)
			}
		}
		t.Logf("%s: %d false questions about %d commands", tt.name, asked, len(texts))
		if asked*50 >= len(texts) {
			t.Errorf("%s: %d false questions", tt.name, asked)
		}
	}
}

// TestLevels holds what calls for levels lead to.
func TestLevels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, rules, text string
		level             sandbox.Level
		want              string
	}{
		{"nothing_asked_for", "", "make; $X > y", "", "allow read"},
		{"not_even_readable", "", "ls 'x", "", "allow read"},
		{"more_asked_for", "", "make", sandbox.Write, "ask write"},
		{"everything_asked_for", "", "make", sandbox.Full, "ask full"},
		{"rule", `execute_command: {"make*": allow}`, "make", "", "allow full"},
		{"rule_and_less", `execute_command: {"make*": allow}`, "make", sandbox.Write, "allow write"},
		{"rule_for_a_part", `execute_command: {"make*": allow}`, "make && ./x", "", "allow read"},
		{"rule_beside_readers", `execute_command: {"make*": allow}`, "make | tail -5 && echo $?", "", "allow full"},
		{"rule_does_not_cover_altered", `execute_command: {"make*": allow}`, "PATH=. make", "", "allow read"},
		{"rule_does_not_cover_escapes", `execute_command: {"git *": allow}`, "git -c core.pager=x log", "", "allow read"},
		{"rule_with_level", `rules: [{tool: execute_command, action: allow, command: make, sandbox: write}]`, "make", "", "allow write"},
		{"rule_with_less", `rules: [{tool: execute_command, action: allow, command: make, sandbox: write}]`, "make", sandbox.Full, "ask full"},
		{"rule_writes", `rules: [{tool: execute_command, action: allow, path: "build/**", access: write}]`, "echo x > build/y", "", "allow write"},
		{"redirection_of_a_rule", `rules: [{tool: execute_command, action: allow, command: make, sandbox: write}]`, "make > out", "", "allow write"},
		{"all_commands_with_level", `rules: [{tool: execute_command, action: allow, sandbox: write}]`, "$X > y", sandbox.Write, "allow write"},
		{"asked_about", `execute_command: {"git push*": ask}`, "git push", "", "ask read"},
		{"asked_about_at_read", `execute_command: {"git push*": ask}`, "git push", sandbox.Read, "ask read"},
		{"asked_about_each", `execute_command: {"*": ask}`, "make", "", "ask read"},
		{"asked_about_beside_a_rule", `execute_command: {"*": allow, "git push*": ask}`, "make && git push", "", "ask read"},
		{"asked_about_with_level", `execute_command: {"git push*": ask}`, "git push", sandbox.Network, "ask network"},
		{"denied", `execute_command: {"rm *": deny}`, "ls; rm x", "", "deny "},
		{"hidden", `execute_command: {"rm *": deny}`, "$X y", "", "ask read"},
		{"hidden_from_nothing", `rules: [{tool: "*", action: deny, path: "**/.env"}]`, "$X y", "", "allow read"},
		{"default_allow", "default: allow", "make", sandbox.Write, "allow write"},
		{"default_deny", "default: deny", "make", sandbox.Write, "deny "},
		{"default_deny_of_nothing", "default: deny", "make", "", "allow read"},
		{"denied_file_below_full", `rules: [{tool: "*", action: deny, path: "**/.env"}]`, "cat .env", "", "allow read"},
		{"denied_file_at_full", `{execute_command: allow, rules: [{tool: "*", action: deny, path: "**/.env"}]}`, "cat .env", "", "deny "},
		{"denied_file_asked_for_at_full", `rules: [{tool: "*", action: deny, path: "**/.env"}]`, "make; sudo head -n1 ./.env", sandbox.Full, "deny "},
		{"denied_file_by_pattern_at_full", `rules: [{tool: "*", action: deny, path: "**/.env"}]`, "cat .e*", sandbox.Full, "ask full"},
		{"denied_file_and_a_rule_that_asks", `{execute_command: {"head *": ask}, rules: [{tool: "*", action: deny, path: "**/.env"}]}`, "head .env", "", "ask read"},
		{"denied_file_and_a_rule_that_asks_at_full", `{execute_command: {"head *": ask}, rules: [{tool: "*", action: deny, path: "**/.env"}]}`, "head .env", sandbox.Full, "deny "},
		{"denied_file_in_a_message", `{execute_command: allow, rules: [{tool: "*", action: deny, path: "**/*.env"}]}`, "git commit -m 'read x.env'", "", "ask full"},
		{"denied_file_spoken_of", `rules: [{tool: "*", action: deny, path: "**/.env"}]`, "echo .env", sandbox.Full, "ask full"},
		{"written_by_no_call_at_read", `rules: [{tool: "*", action: deny, path: "**/*.env", access: write}]`, "cat conf.env; $X", "", "allow read"},
		{"may_be_written", `{execute_command: allow, rules: [{tool: "*", action: deny, path: "**/.env", access: write}]}`, "tee .env", "", "ask full"},
		{"hidden_beside_a_rule_for_a_part", `execute_command: {"git *": allow, "rm *": deny}`, "git push; $X", "", "ask read"},
		{"unknown_level", "", "make", "all", "deny "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := project(t)
			plant(t, root, map[string]string{".env": "KEY=1\n"})
			v := judge(t, permission.Options{Root: root, Shell: "bash", Sandboxed: true, Rules: read(t, tt.rules)}).Judge(levelCall(tt.text, tt.level))
			if got := string(v.Action) + " " + string(v.Level); got != tt.want {
				t.Errorf("%s: %+v, want %s", got, v, tt.want)
			}
		})
	}
}

// TestGrantsWithLevels: a grant holds at its level and for its hosts, and not for more.
func TestGrantsWithLevels(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Rules: read(t, `execute_command: {"git push*": ask}`), Memory: permission.NewMemory("")})
	v := j.Judge(levelCall("npm ci", sandbox.Network, "registry.npmjs.org"))
	if v.Action != permission.Ask || v.Reason != "it asks for level network to reach registry.npmjs.org" || !slices.Equal(v.Hosts, []string{"registry.npmjs.org"}) || len(v.Always) != 1 || len(v.Wider) > 0 {
		t.Fatalf("%+v", v)
	}
	if err := j.Remember(t.Context(), permission.Session, v.Always); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		call permission.Call
		want permission.Action
	}{
		{levelCall("npm ci", sandbox.Network, "registry.npmjs.org"), permission.Allow},
		{levelCall("npm ci", sandbox.Write), permission.Allow},
		{levelCall("npm ci", sandbox.Network, "registry.npmjs.org", "example.com"), permission.Ask},
		{levelCall("npm ci", sandbox.Full), permission.Ask},
		{levelCall("npm install", sandbox.Network, "registry.npmjs.org"), permission.Ask},
	} {
		if v := j.Judge(tt.call); v.Action != tt.want {
			t.Errorf("%s: %+v, want %s", tt.call.Arguments, v, tt.want)
		}
	}
	if err := j.Remember(t.Context(), permission.Session, []permission.Grant{{Tool: "execute_command", Level: sandbox.Write}}); err != nil {
		t.Fatal(err)
	}
	if v := j.Judge(levelCall("make > y", sandbox.Write)); v.Action != permission.Allow || v.Level != sandbox.Write {
		t.Errorf("%+v", v)
	}
	if v := j.Judge(shellCall("make")); v.Action != permission.Allow || v.Level != sandbox.Read {
		t.Errorf("a call that asks for nothing got %+v", v)
	}
	if v := j.Judge(levelCall("git push", sandbox.Write)); v.Action != permission.Ask {
		t.Errorf("what a rule asks about: %+v", v)
	}
}

// TestLastingAnswers: in the sandbox, no lasting answer reaches further than the text that was asked about, at its level.
func TestLastingAnswers(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Memory: permission.NewMemory("")})
	for _, tt := range []struct {
		call permission.Call
		want string
	}{
		{levelCall("touch x", sandbox.Full), "level full: exactly touch x"},
		{levelCall("go test ./...", sandbox.Write), "level write: exactly go test ./..."},
		{levelCall("echo a >> notes.txt", sandbox.Write), "level write: exactly echo a >> notes.txt"},
		{levelCall("cat a b > c; sort -o a b", sandbox.Write), "level write: exactly cat a b > c; sort -o a b"},
		{levelCall("npm ci", sandbox.Network, "a.com", "b.com"), "level network (a.com, b.com): exactly npm ci"},
	} {
		if v := j.Judge(tt.call); v.Action != permission.Ask || len(v.Always) != 1 || v.Always[0].String() != tt.want {
			t.Errorf("%s: %+v, want %s", tt.call.Arguments, v, tt.want)
		}
	}
	if err := j.Remember(t.Context(), permission.Session, j.Judge(levelCall("touch x", sandbox.Full)).Always); err != nil {
		t.Fatal(err)
	}
	if v := j.Judge(levelCall("touch x", sandbox.Full)); v.Action != permission.Allow || v.Level != sandbox.Full {
		t.Errorf("the same: %+v", v)
	}
	if v := j.Judge(levelCall("touch y", sandbox.Full)); v.Action != permission.Ask {
		t.Errorf("another: %+v", v)
	}
	full := permission.Call{Tool: "execute_py_code", Arguments: json.RawMessage(`{"code":"1"}`), Destructive: true, Sandbox: sandbox.Declaration{Level: sandbox.Full}}
	if v := j.Judge(full); v.Action != permission.Ask || len(v.Always) > 0 {
		t.Errorf("a program at full: %+v", v)
	}
}

// TestAllReasons: a question has all reasons for it, and offers no lasting answer that would not change it.
func TestAllReasons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rules, text string
		level       sandbox.Level
		want        string
		wider       bool
	}{
		{"", "touch x", sandbox.Write, "it asks for level write", true},
		{`execute_command: {"rm *": deny}`, "touch x", sandbox.Write, "it asks for level write", true},
		{`execute_command: {"rm *": deny}`, "echo '\x1b' > x", sandbox.Write, "the text holds the character U+001B; it asks for level write", false},
		{`execute_command: {"*": allow, "rm *": deny}`, "echo '\x1b' > x", sandbox.Write, "the text holds the character U+001B", false},
		{`execute_command: {"date*": ask}`, "date", "", "rule: ask execute_command \"date*\" (line 1)", false},
		{`execute_command: {"date*": ask}`, "date", sandbox.Full, "rule: ask execute_command \"date*\" (line 1); it asks for level full", false},
	} {
		j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Rules: read(t, tt.rules), Memory: permission.NewMemory("")})
		v := j.Judge(levelCall(tt.text, tt.level))
		if v.Action != permission.Ask || v.Reason != tt.want || len(v.Wider) > 0 != tt.wider {
			t.Errorf("%q: %+v, want %s", tt.text, v, tt.want)
		}
		if tt.wider {
			if err := j.Remember(t.Context(), permission.Session, v.Wider); err != nil {
				t.Fatal(err)
			}
			if v := j.Judge(levelCall(tt.text, tt.level)); v.Action != permission.Allow {
				t.Errorf("%q: the answer changes nothing: %+v", tt.text, v)
			}
		}
	}
	python := permission.Call{Tool: "execute_py_code", Arguments: json.RawMessage(`{"code":"1"}`), Destructive: true, Sandbox: sandbox.Declaration{Level: sandbox.Read}}
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Rules: read(t, "execute_py_code: ask")})
	if v := j.Judge(python); v.Action != permission.Ask || v.Level != sandbox.Read {
		t.Errorf("Python that a rule asks about: %+v", v)
	}
}

// TestWriteInTheWorkspace: the grant is for all programs that ask for the level write, and for nothing else.
func TestWriteInTheWorkspace(t *testing.T) {
	t.Parallel()
	python := func(l sandbox.Level) permission.Call {
		return permission.Call{Tool: "execute_py_code", Arguments: json.RawMessage(`{"code":"1"}`), Destructive: true, Sandbox: sandbox.Declaration{Level: l}}
	}
	for _, first := range []permission.Call{levelCall("touch x", sandbox.Write), python(sandbox.Write)} {
		j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Memory: permission.NewMemory("")})
		v := j.Judge(first)
		if v.Action != permission.Ask || len(v.Wider) != 1 || v.Wider[0].String() != "write in the workspace" {
			t.Fatalf("%s: %+v", first.Tool, v)
		}
		if err := j.Remember(t.Context(), permission.Session, v.Wider); err != nil {
			t.Fatal(err)
		}
		for _, c := range []permission.Call{levelCall("touch y", sandbox.Write), python(sandbox.Write)} {
			if v := j.Judge(c); v.Action != permission.Allow || v.Level != sandbox.Write {
				t.Errorf("%s: %+v", c.Tool, v)
			}
		}
		if v := j.Judge(python(sandbox.Read)); v.Action != permission.Allow || v.Level != sandbox.Read {
			t.Errorf("what asks for nothing: %+v", v)
		}
		full := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Memory: permission.NewMemory(""), Rules: read(t, `execute_command: {"make*": allow}`)})
		if err := full.Remember(t.Context(), permission.Session, v.Wider); err != nil {
			t.Fatal(err)
		}
		if v := full.Judge(shellCall("make")); v.Level != sandbox.Full {
			t.Errorf("the grant lowers the level of a rule: %+v", v)
		}
		rm := permission.Call{Tool: "fs_rm", Arguments: json.RawMessage(`{"path":"x"}`), Destructive: true}
		for _, c := range []permission.Call{levelCall("touch y", sandbox.Full), python(sandbox.Network), python(sandbox.Full), rm} {
			if v := j.Judge(c); v.Action == permission.Allow && v.Decided {
				t.Errorf("%s: %+v", c.Tool, v)
			}
		}
	}
}

// TestPathRulesWithoutASandbox: a text that may use a file which a rule denies is asked about, whatever else is allowed.
func TestPathRulesWithoutASandbox(t *testing.T) {
	t.Parallel()
	root := project(t)
	plant(t, root, map[string]string{".env": "KEY=1\n", "conf/prod.env": "KEY=2\n", "other/x": ""})
	j := judge(t, permission.Options{Root: root, Shell: "bash", Rules: read(t, `{execute_command: allow, fs_rm: allow, rules: [{tool: "*", action: deny, path: ["**/.env", "**/*.env"]}]}`)})
	for _, text := range []string{
		"cat .env", "grep -r K= .", "rg --hidden K=", "grep -r K=", "find . -name .env -type f -exec cat {} +", "cat .e*", "cat conf/*", "diff -rN conf other", "cat $X",
		"git show HEAD:.env", "git blame .env", "git cat-file -p HEAD:.env", "git log -p", "git grep K=", "git --no-pager grep K=", "xargs cat", "cd conf; cat prod.env", "tar cf x.tar .", "cp -r conf other", "python3 x.py --file=.env",
	} {
		if v := j.Judge(shellCall(text)); v.Action == permission.Allow {
			t.Errorf("%s: %+v", text, v)
		}
	}
	for _, text := range []string{"cat README.md", "ls other", "git status", "git commit -m x", "echo .env $X", "make test"} {
		if v := j.Judge(shellCall(text)); v.Action != permission.Allow {
			t.Errorf("%s: %+v", text, v)
		}
	}
	if v := j.Judge(permission.Call{Tool: "fs_rm", Arguments: json.RawMessage(`{"path":"conf"}`), Destructive: true}); v.Action != permission.Deny {
		t.Errorf("fs_rm: %+v", v)
	}
	if v := j.Judge(permission.Call{Tool: "fs_rm", Arguments: json.RawMessage(`{"path":"other"}`), Destructive: true}); v.Action != permission.Allow {
		t.Errorf("fs_rm: %+v", v)
	}
	v := j.Judge(permission.Call{Tool: "fs_grep", Arguments: json.RawMessage(`{"path":".","pattern":"K"}`), ReadOnly: true})
	if v.Action != permission.Allow || v.Hidden == nil || !v.Hidden(filepath.Join(resolved(t, root), "conf", "prod.env")) || v.Hidden(filepath.Join(resolved(t, root), "README.md")) {
		t.Errorf("fs_grep: %+v", v)
	}
	var got []string
	for _, b := range closed(j) {
		got = append(got, b.String())
	}
	if !slices.Equal(got, []string{resolved(t, root) + "/**/.env", resolved(t, root) + "/**/*.env"}) {
		t.Errorf("denied: %q", got)
	}
}

// TestOptionsBeforeSubcommands do not lead past rules that ask.
func TestOptionsBeforeSubcommands(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Rules: read(t, `execute_command: {"*": allow, "git push*": ask, "docker push*": ask, "kubectl delete*": deny, "npm publish*": ask}`)})
	for _, text := range []string{
		"git --no-pager push", "git -P push", "git --bare push", "git -c a=b push", "docker --context x push y", "docker -D push y", "kubectl -n prod delete pod x", "kubectl --namespace=prod delete pod x",
		"npm --silent publish", "npm --prefix x publish", "timeout 30 git push", "env -u X git push", "find . -exec git push \\;", "sudo -u x -- git push", "xargs -n1 git push", "/usr/bin/git push", "GIT push",
		"if true; then git push; fi", "echo $(git push)", "sh -c 'git push'", "nice -n 5 bash -ec 'ls; git push'",
	} {
		if v := j.Judge(shellCall(text)); v.Action == permission.Allow {
			t.Errorf("%s: %+v", text, v)
		}
	}
	for _, text := range []string{"git --no-pager log", "git commit -m push", "docker ps", "npm run publish-docs", "kubectl get pods -n delete"} {
		if v := j.Judge(shellCall(text)); v.Action != permission.Allow {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

// TestManyWords judges a long command by a pattern with several stars in a time that is bounded.
func TestManyWords(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Rules: read(t, `execute_command: {"git * a * b * c": deny}`)})
	if v := j.Judge(shellCall("git " + strings.Repeat("a b ", 15000))); v.Action != permission.Ask {
		t.Errorf("%+v", v)
	}
}

// TestPatternsOfWrappers: a pattern that only names the wrapper does not allow what it runs.
func TestPatternsOfWrappers(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Rules: read(t, `execute_command: {"find . *": allow, "timeout 30 *": allow, "git log *": allow, "sudo systemctl *": allow}`)})
	for text, want := range map[string]permission.Action{
		`find . -maxdepth 0 -exec touch PWN \;`: permission.Ask, "timeout 30 touch x": permission.Ask, "git log --output=.git/config": permission.Ask, "sudo systemctl status x": permission.Allow,
		"git log -1": permission.Allow, "find . -name x": permission.Allow,
	} {
		if v := j.Judge(shellCall(text)); v.Action != want {
			t.Errorf("%s: %+v, want %s", text, v, want)
		}
	}
}

// TestHomeAsWorkspace: credentials and settings are asked about, for reading and for writing.
func TestHomeAsWorkspace(t *testing.T) {
	t.Parallel()
	home := resolved(t, project(t))
	config := filepath.Join(home, ".config", "loki")
	j := judge(t, permission.Options{Root: home, Home: home, Shell: "bash", Protected: []string{config}})
	for _, tt := range []struct {
		tool, path string
		want       permission.Action
	}{
		{"fs_cat", ".ssh/id_rsa", permission.Ask},
		{"fs_cat", ".config/loki/vault.yml", permission.Ask},
		{"fs_cat", "a.txt", permission.Allow},
		{"fs_cat", ".profile", permission.Ask}, // as in the sandbox: .loki_password and others are beside it,
		{"fs_write", ".gitconfig", permission.Ask},
		{"fs_write", ".config/autostart/x.desktop", permission.Ask},
		{"fs_write", "a.txt", permission.Allow},
		{"fs_write", "project/.venv/lib/x.pth", permission.Ask},
		{"fs_write", "project/.npmrc", permission.Ask},
		{"fs_write", "project/node_modules/.bin/tsx", permission.Ask},
		{"fs_write", "project/.github/workflows/x.yml", permission.Ask},
		{"fs_write", "project/main.go", permission.Allow},
	} {
		v := j.Judge(permission.Call{Tool: tt.tool, Arguments: json.RawMessage(fmt.Sprintf(`{"path":%q}`, tt.path)), ReadOnly: tt.tool == "fs_cat"})
		if v.Action != tt.want {
			t.Errorf("%s %s: %+v, want %s", tt.tool, tt.path, v, tt.want)
		}
	}
	if v := j.Judge(shellCall("cat .ssh/id_rsa")); v.Action != permission.Ask {
		t.Errorf("%+v", v)
	}
}

// TestGrantsOfSeveralProcesses: each keeps its own when they grant at once.
func TestGrantsOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "permissions.yaml")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := permission.NewMemory(file).Add(t.Context(), permission.Agent, "coder", []permission.Grant{{Tool: fmt.Sprint("tool", i), Level: sandbox.Network, Hosts: "a b"}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := permission.NewMemory(file).Grants("coder"); len(got) != 20 || got[0].Level != sandbox.Network || got[0].Hosts != "a b" {
		data, _ := os.ReadFile(file) // shown if it can be read
		t.Errorf("%d grants: %s", len(got), strings.TrimSpace(string(data)))
	}
}
