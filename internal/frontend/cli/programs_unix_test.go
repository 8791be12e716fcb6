//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/text/sample"
)

// way is how a program that Loki starts for its user could come to run a file of a directory.
type way struct {
	name    string
	needs   string            // a program that must be there for the way to lead anywhere; empty for none
	files   map[string]string // in the directory; those with a #! are executable
	entry   map[string]any    // of mcp.json
	hook    any               // command of a hook
	setting map[string]any    // of config.yaml
	user    map[string]string // files in the configuration directory
	args    []string          // of Loki; a question without them
	env     string            // of Loki, as NAME=value
	home    bool              // the directory is the home directory
}

// Files that make the marker. WS is the directory, MARK the marker of the way.
const (
	evilPython = "open('MARK','w').write('x')\n"
	evilNode   = "#!/usr/bin/env node\nrequire('fs').writeFileSync('MARK','x')\n"
	evilShell  = "#!/bin/sh\ntouch MARK\n"
	evilPerl   = "open(my $f, '>', 'MARK'); print $f 'x'; close $f; 1;\n"
	evilMake   = "all serve run:\n\ttouch MARK\n"
	evilGo     = "package main\n\nimport \"os\"\n\nfunc main() { os.WriteFile(\"MARK\", nil, 0o600) }\n"
)

func commandLine(words ...string) map[string]any {
	return map[string]any{"command": words[0], "args": words[1:]}
}

// with returns an entry with more members.
func with(entry map[string]any, key string, value any) map[string]any {
	entry[key] = value
	return entry
}

func ways() []way {
	const bin = `{"name": "x", "version": "1.0.0", "bin": {"mcp-remote": "./evil.js", "x": "./evil.js"}, "scripts": {"start": "node evil.js", "serve": "node evil.js"}}`
	project := map[string]string{"package.json": bin, "evil.js": evilNode}
	tool := map[string]string{"node_modules/.bin/some-tool": evilShell, "node_modules/some-tool/package.json": `{"name": "some-tool", "version": "1.0.0", "bin": "i.js"}`, "node_modules/some-tool/i.js": evilNode}
	all := []way{
		// Servers, by what their programs find in the working directory.
		{name: "python_module", needs: "python3", files: map[string]string{"mcp_server_git.py": evilPython}, entry: commandLine("python3", "-m", "mcp_server_git")},
		{name: "python_package", needs: "python3", files: map[string]string{"mcp_server_git/__init__.py": "", "mcp_server_git/__main__.py": evilPython}, entry: commandLine("python3", "-m", "mcp_server_git")},
		{name: "python_library", needs: "python3", files: map[string]string{"json.py": evilPython}, entry: commandLine("python3", "-c", "import json")},
		{name: "python_site", needs: "python3", files: map[string]string{"sitecustomize.py": evilPython}, entry: commandLine("python3", "-c", "pass"), env: "PYTHONPATH=:/nowhere"},
		{name: "python_path", needs: "python3", files: map[string]string{"lib/some_lib.py": evilPython}, entry: commandLine("python3", "-c", "import some_lib"), env: "PYTHONPATH=WS/lib"},
		{name: "python_script", needs: "python3", files: map[string]string{"server.py": evilPython}, entry: commandLine("python3", "server.py")},
		{name: "python_script_explicit", needs: "python3", files: map[string]string{"server.py": evilPython}, entry: commandLine("python3", "-u", "./server.py")},
		{name: "python_script_absolute", needs: "python3", files: map[string]string{"server.py": "import helper\n", "helper.py": evilPython}, entry: commandLine("python3", "WS/server.py")},
		{name: "python_directory", needs: "python3", files: map[string]string{"app/__main__.py": evilPython}, entry: commandLine("python3", "app")},
		{name: "npx_bin", needs: "npx", files: project, entry: commandLine("npx", "--offline", "-y", "mcp-remote", "http://127.0.0.1:9/mcp")},
		{name: "npx_node_modules", needs: "npx", files: tool, entry: commandLine("npx", "--offline", "some-tool")},
		{name: "npx_directory", needs: "npx", files: map[string]string{"mcp-remote/package.json": bin, "mcp-remote/evil.js": evilNode}, entry: commandLine("npx", "--offline", "-y", "mcp-remote")},
		{name: "npx_explicit_directory", needs: "npx", files: map[string]string{"tool/package.json": bin, "tool/evil.js": evilNode}, entry: commandLine("npx", "--offline", "-y", "./tool")},
		{name: "npx_package_option", needs: "npx", files: map[string]string{"tool/package.json": bin, "tool/evil.js": evilNode}, entry: commandLine("npx", "--offline", "-y", "--package=./tool", "x")},
		{name: "npx_npmrc", needs: "npx", files: map[string]string{".npmrc": "node-options=--require WS/evil.js\n", "evil.js": evilNode}, entry: commandLine("npx", "--offline", "-y", "nothing-here")},
		{name: "npx_by_env", needs: "npx", files: project, entry: commandLine("env", "X=1", "npx", "--offline", "-y", "mcp-remote")},
		{name: "npx_by_shell", needs: "npx", files: project, entry: commandLine("sh", "-c", "npx --offline -y mcp-remote")},
		{name: "npx_by_shell_in_directory", needs: "npx", files: project, entry: commandLine("sh", "-c", "cd WS && npx --offline -y mcp-remote")},
		{name: "npx_by_timeout", needs: "npx", files: map[string]string{"mcp-remote/package.json": bin, "mcp-remote/evil.js": evilNode}, entry: commandLine("timeout", "20", "npx", "--offline", "-y", "mcp-remote")},
		{name: "npm_exec", needs: "npm", files: project, entry: commandLine("npm", "exec", "--offline", "-y", "mcp-remote")},
		{name: "npm_start", needs: "npm", files: project, entry: commandLine("npm", "start")},
		{name: "npm_prefix", needs: "npm", files: project, entry: commandLine("npm", "--prefix", "WS", "run", "serve")},
		{name: "node_script", needs: "node", files: map[string]string{"index.js": evilNode}, entry: commandLine("node", "index.js")},
		{name: "node_main", needs: "node", files: map[string]string{"index.js": evilNode}, entry: commandLine("node", ".")},
		{name: "node_module_beside", needs: "node", files: map[string]string{"server.js": "require('zod')\n", "node_modules/zod/index.js": evilNode}, entry: commandLine("node", "WS/server.js")},
		{name: "node_require", needs: "node", files: map[string]string{"evil.js": evilNode}, entry: commandLine("node", "--require", "./evil.js", "-e", "0")},
		{name: "node_options", needs: "node", files: map[string]string{"evil.js": evilNode}, entry: commandLine("node", "-e", "0"), env: "NODE_OPTIONS=--require ./evil.js"},
		{name: "node_path", needs: "node", files: map[string]string{"lib/dep/index.js": evilNode}, entry: commandLine("node", "-e", "require('dep')"), env: "NODE_PATH=WS/lib"},
		{name: "node_resolves", needs: "node", files: map[string]string{"node_modules/dep/index.js": evilNode}, entry: commandLine("node", "-e", "require('dep')")},
		{name: "node_env_file", needs: "node", files: map[string]string{".env": "NODE_OPTIONS=--require WS/evil.js\n", "evil.js": evilNode}, entry: commandLine("node", "--env-file=.env", "-e", "require('child_process').execSync('node -e 0')")},
		{name: "entry_node_options", needs: "node", files: map[string]string{"evil.js": evilNode}, entry: with(commandLine("node", "-e", "0"), "env", map[string]any{"NODE_OPTIONS": "--require ./evil.js"})},
		{name: "path_dot", files: map[string]string{"some-server": evilShell}, entry: commandLine("some-server"), env: "PATH=.:PATHS"},
		{name: "path_empty", files: map[string]string{"some-server": evilShell}, entry: commandLine("some-server"), env: "PATH=:PATHS"},
		{name: "path_bin", files: map[string]string{"node_modules/.bin/some-server": evilShell}, entry: commandLine("some-server"), env: "PATH=WS/node_modules/.bin:PATHS"},
		{name: "path_of_child", files: map[string]string{"bin/some-server": evilShell}, entry: commandLine("sh", "-c", "some-server"), env: "PATH=WS/bin:PATHS"},
		{name: "entry_path", files: map[string]string{"bin/some-server": evilShell}, entry: with(commandLine("some-server"), "env", map[string]any{"PATH": "WS/bin:PATHS"})},
		{name: "relative_command", files: map[string]string{"run/server": evilShell}, entry: commandLine("run/server")},
		{name: "absolute_command", files: map[string]string{"server": evilShell}, entry: commandLine("WS/server")},
		{name: "cwd", files: map[string]string{"mcp_server_git.py": evilPython}, needs: "python3", entry: with(commandLine("python3", "-m", "mcp_server_git"), "cwd", ".")},
		{name: "cwd_absolute", files: project, needs: "npx", entry: with(commandLine("npx", "--offline", "-y", "mcp-remote"), "cwd", "WS")},
		{name: "cwd_below", files: map[string]string{"sub/Makefile": evilMake}, needs: "make", entry: with(commandLine("make", "serve"), "cwd", "sub")},
		{name: "make", needs: "make", files: map[string]string{"Makefile": evilMake}, entry: commandLine("make", "serve")},
		{name: "make_directory", needs: "make", files: map[string]string{"sub/Makefile": evilMake}, entry: commandLine("make", "-C", "sub", "serve")},
		{name: "go_run", needs: "go", files: map[string]string{"go.mod": "module x\n", "main.go": evilGo}, entry: commandLine("go", "run", ".")},
		{name: "perl_script", needs: "perl", files: map[string]string{"server.pl": evilPerl}, entry: commandLine("perl", "server.pl")},
		{name: "perl_library", needs: "perl", files: map[string]string{"lib/Some.pm": "package Some; " + evilPerl}, entry: commandLine("perl", "-MSome", "-e", "1"), env: "PERL5LIB=lib"},
		{name: "bash_env", needs: "bash", files: map[string]string{"env.sh": evilShell}, entry: commandLine("bash", "-c", "true"), env: "BASH_ENV=WS/env.sh"},
		{name: "shell_script", files: map[string]string{"server.sh": evilShell}, entry: commandLine("sh", "server.sh")},
		{name: "git_monitor", needs: "git", files: map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch MARK; false\"\n", ".git/objects/x": "", ".git/refs/x": ""}, entry: commandLine("git", "status")},
		{name: "git_directory", needs: "git", files: map[string]string{"repo/HEAD": "ref: refs/heads/main\n", "repo/config": "[core]\n\tfsmonitor = \"touch MARK; false\"\n", "repo/objects/x": "", "repo/refs/x": ""}, entry: commandLine("git", "status"), env: "GIT_DIR=WS/repo"},
		{name: "home_npx", home: true, needs: "npx", files: project, entry: commandLine("npx", "--offline", "-y", "mcp-remote")},
		{name: "home_node_resolves", home: true, needs: "node", files: map[string]string{"node_modules/dep/index.js": evilNode}, entry: commandLine("node", "-e", "require('dep')")},
		{name: "home_python_module", home: true, needs: "python3", files: map[string]string{"mcp_server_git.py": evilPython}, entry: commandLine("python3", "-m", "mcp_server_git")},
		{name: "home_path", home: true, files: map[string]string{"tools/some-server": evilShell}, entry: commandLine("some-server"), env: "PATH=WS/tools:PATHS"},

		// Hooks. Each runs after a call of a tool.
		{name: "hook_python", needs: "python3", files: map[string]string{"py_compile.py": evilPython}, hook: `python3 -m py_compile x`},
		{name: "hook_python_code", needs: "python3", files: map[string]string{"json.py": evilPython}, hook: `python3 -c 'import json'`},
		{name: "hook_npx", needs: "npx", files: project, hook: `npx --offline mcp-remote`},
		{name: "hook_npx_list", needs: "npx", files: project, hook: []string{"npx", "--offline", "mcp-remote"}},
		{name: "hook_make", needs: "make", files: map[string]string{"Makefile": evilMake}, hook: `make run`},
		{name: "hook_git", needs: "git", files: map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch MARK; false\"\n", ".git/objects/x": "", ".git/refs/x": ""}, hook: `git status`},
		{name: "hook_script", files: map[string]string{"check.sh": evilShell}, hook: `./check.sh`},
		{name: "hook_path", files: map[string]string{"jq": evilShell}, hook: `jq . || true`, env: "PATH=.:WS:PATHS"},
		{name: "hook_node", needs: "node", files: map[string]string{"node_modules/prettier/index.js": evilNode}, hook: `node -e "require('prettier')"`},
		{name: "hook_settings", needs: "node", files: map[string]string{"prettier.config.js": evilNode}, hook: `node -e "require(process.cwd() + '/prettier.config.js')"`},

		// Document loaders and interpreters of scripts.
		{name: "loader_python", needs: "python3", files: map[string]string{"conv.py": evilPython, "a.xyz": "x"}, setting: map[string]any{"document_loaders": map[string]any{"xyz": "python3 -m conv $1"}}, args: []string{"-m", "builtin:echo", "-f", "a.xyz", "hello"}},
		{name: "loader_of_addresses", needs: "python3", files: map[string]string{"conv.py": evilPython}, setting: map[string]any{"document_loaders": map[string]any{"site": "python3 -m conv $1"}}, args: []string{"-m", "builtin:echo", "-f", "site:some/page", "hello"}},
		{name: "loader_npx", needs: "npx", files: project, setting: map[string]any{"document_loaders": map[string]any{"site": "npx --offline mcp-remote $1"}}, args: []string{"-m", "builtin:echo", "-f", "site:some/page", "hello"}},
		{name: "tool_venv", needs: "python3", files: map[string]string{".venv/bin/python": evilShell}, user: map[string]string{"functions/tools/mine.py": "def run():\n    'Does it.'\n    return 'x'\n"}, args: []string{"-y", "--call-tool", "mine", "{}"}},
		{name: "tool_library", needs: "python3", files: map[string]string{"json.py": evilPython}, user: map[string]string{"functions/tools/mine.py": "import json\ndef run():\n    'Does it.'\n    return 'x'\n"}, args: []string{"-y", "--call-tool", "mine", "{}"}},
		{name: "tool_tsx", needs: "node", files: map[string]string{"node_modules/.bin/tsx": evilShell}, user: map[string]string{"functions/tools/mine.ts": "/** Does it. */\nexport function run(): string { return 'x'; }\n"}, args: []string{"-y", "--call-tool", "mine", "{}"}},
		{name: "tool_path", needs: "bash", files: map[string]string{"bin/some-tool": evilShell}, user: map[string]string{"functions/tools/mine.sh": "#!/usr/bin/env bash\n# @describe Does it.\nmain() { some-tool; }\n"}, env: "PATH=WS/bin:.:PATHS", args: []string{"-y", "--call-tool", "mine", "{}"}},
		{name: "graph_tsx", needs: "node", files: map[string]string{"node_modules/.bin/tsx": evilShell}, user: map[string]string{"agents/g/graph.yaml": "name: g\nstart: a\nnodes:\n  a: {type: script, script: a.ts, next: b}\n  b: {type: end, output: x}\n", "agents/g/a.ts": "console.log('{}')\n"}, args: []string{"-a", "g", "hello"}},
	}
	return all
}

// TestNoCodeOfTheWorkspace gives programs that Loki starts for its user every occasion to run a file of a directory that is not trusted,
// with the rights of the user: each would leave a marker outside of that directory.
func TestNoCodeOfTheWorkspace(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many programs")
	}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(w.needs); w.needs != "" && err != nil {
				t.Skip(err)
			}
			if out := w.try(t); out.marked {
				t.Errorf("a file of the directory was run:\n%s", out.said)
			}
		})
	}
}

type outcome struct {
	marked bool
	said   string
}

// try makes the directory, and has Loki start the program there.
func (w way) try(t *testing.T) outcome {
	t.Helper()
	base := t.TempDir()
	ws, mark := filepath.Join(base, "ws"), filepath.Join(base, "marker")
	fill := strings.NewReplacer("WS", ws, "MARK", mark, "PATHS", os.Getenv("PATH")).Replace
	for name, content := range w.files {
		path := filepath.Join(ws, name)
		write(t, path, fill(content))
		if strings.HasPrefix(content, "#!") {
			if err := os.Chmod(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := map[string]any{"clients": []any{map[string]any{"type": "builtin"}}, "enabled_tools": "get_current_time"}
	if w.entry != nil {
		config["enabled_mcp_servers"] = "way"
		servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"way": with(w.entry, "expose", "direct")}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(base, "home", "config", "functions", "mcp.json"), fill(string(servers)))
	}
	if w.hook != nil {
		config["hooks"] = map[string]any{"after_model": []any{map[string]any{"command": w.hook}}}
	}
	maps.Copy(config, w.setting)
	for name, content := range w.user {
		write(t, filepath.Join(base, "home", "config", name), content)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "home", "config", "config.yaml"), fill(string(text)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := w.args
	if args == nil {
		args = []string{"-m", "builtin:echo", "hello"}
	}
	loki := exec.CommandContext(ctx, "loki", args...)
	loki.Dir = ws
	loki.Env = append(emptyHome(base, "LOKI_TRUSTED_DIRS="), "PWD="+ws)
	if w.home {
		loki.Env = append(loki.Env, "HOME="+ws, "LOKI_STATE_DIR="+filepath.Join(ws, ".local", "state", "loki"))
	}
	if w.env != "" {
		loki.Env = append(loki.Env, fill(w.env))
	}
	said, _ := loki.CombinedOutput() // a server that does not start is no error
	_, err = os.Stat(mark)
	return outcome{err == nil, string(said)}
}

// TestServersInCommonUse starts servers from npm, configured as their pages say, and lists their tools. It downloads them, so it runs
// with LOKI_TEST=full only.
func TestServersInCommonUse(t *testing.T) {
	if _, err := exec.LookPath("npx"); err != nil || !sample.Full() {
		t.Skip("downloads servers from npm: set LOKI_TEST=full")
	}
	if out, err := exec.CommandContext(t.Context(), "npm", "ping", "--fetch-retries=0").CombinedOutput(); err != nil {
		t.Skipf("the registry of npm cannot be reached: %s", out)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	write(t, filepath.Join(base, "ws", "a.txt"), "x")
	servers := make(map[string]any)
	for name, s := range map[string]struct {
		args string
		env  string
	}{
		"filesystem": {args: "-y @modelcontextprotocol/server-filesystem ."},
		"everything": {args: "-y @modelcontextprotocol/server-everything"},
		"memory":     {args: "-y @modelcontextprotocol/server-memory"},
		"thinking":   {args: "-y @modelcontextprotocol/server-sequential-thinking"},
		"github":     {args: "-y @modelcontextprotocol/server-github", env: "GITHUB_PERSONAL_ACCESS_TOKEN"},
		"playwright": {args: "@playwright/mcp@latest"},
		"context7":   {args: "-y @upstash/context7-mcp"},
		"notion":     {args: "-y @notionhq/notion-mcp-server", env: "NOTION_TOKEN"},
		"firecrawl":  {args: "-y firecrawl-mcp", env: "FIRECRAWL_API_KEY"},
		"brave":      {args: "-y @brave/brave-search-mcp-server --transport stdio", env: "BRAVE_API_KEY"},
		"tavily":     {args: "-y tavily-mcp@latest", env: "TAVILY_API_KEY"},
		"devtools":   {args: "-y chrome-devtools-mcp@latest"},
	} {
		env := map[string]any{"npm_config_cache": filepath.Join(cache, "loki-test", "npm")}
		if s.env != "" {
			env[s.env] = "unused"
		}
		servers[name] = map[string]any{"command": "npx", "args": strings.Fields(s.args), "env": env, "start_timeout_seconds": 240}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "home", "config", "functions", "mcp.json"), string(text))
	write(t, filepath.Join(base, "home", "config", "config.yaml"), "clients: [{type: builtin}]\nenabled_mcp_servers: all\n")
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		t.Run(name, func(t *testing.T) {
			loki := exec.CommandContext(t.Context(), "loki", "--call-tool", "mcp__search_"+name, `{"query": "get read search list create browser docs file thinking add", "top_k": 20}`)
			loki.Dir, loki.Env = filepath.Join(base, "ws"), append(emptyHome(base, "LOKI_TRUSTED_DIRS="), "LOKI_STATE_DIR="+filepath.Join(base, "state"))
			var failure bytes.Buffer
			loki.Stderr = &failure
			if out, err := loki.Output(); err != nil || !strings.Contains(string(out), `"server":"`+name+`"`) {
				t.Errorf("%v\n%s\n%s", err, out, &failure)
			}
		})
	}
}

// TestSkillsFromNpm installs a skill with the program that most authors of skills name, and trusts, lists, checks and loads it. It downloads that
// program, so it runs with LOKI_TEST=full only.
func TestSkillsFromNpm(t *testing.T) {
	npx, err := exec.LookPath("npx")
	if err != nil || !sample.Full() {
		t.Skip("downloads skills from npm: set LOKI_TEST=full")
	}
	base := t.TempDir()
	ws := filepath.Join(base, "ws")
	write(t, filepath.Join(base, "theirs", "skills", "hello", "SKILL.md"), "---\nname: hello\ndescription: Says hello. Use when someone greets.\n---\nSay hello in French.\n")
	write(t, filepath.Join(ws, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(base, "home", "config", "config.yaml"), "model: builtin:echo\nenabled_tools: all\n")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = ws, append(emptyHome(base, "LOKI_TRUSTED_DIRS="), "LOKI_STATE_DIR="+filepath.Join(base, "state"), "DISABLE_TELEMETRY=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	if out, err := exec.CommandContext(t.Context(), "npm", "ping", "--fetch-retries=0").CombinedOutput(); err != nil {
		t.Skipf("the registry of npm cannot be reached: %s", out)
	}
	run(npx, "-y", "skills@1.5.0", "add", "../theirs", "--yes")
	list := run("loki", "--list-skills")
	run("loki", "--trust", ".", "-y")
	list += run("loki", "--list-skills")
	if want := "hello  untrusted  .agents/skills  Says hello. Use when someone greets.\nhello  used  .agents/skills  Says hello. Use when someone greets.\n"; list != want {
		t.Errorf("listed: %s", list)
	}
	if valid, loaded := run("loki", "--validate", ".agents/skills/hello"), run("loki", "--skill", "hello", "hi"); !strings.Contains(valid, "is valid") || !strings.Contains(loaded, "Say hello in French.") {
		t.Errorf("validated: %s; loaded: %s", valid, loaded)
	}
}
