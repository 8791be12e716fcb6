package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
)

// TestPlace checks the directories and arguments of servers in a workspace WS with the files made here.
func TestPlace(t *testing.T) {
	base := t.TempDir()
	ws, own := filepath.Join(base, "ws"), filepath.Join(base, "own")
	for _, name := range []string{
		"docs/a.md", "notes.txt", "server.py", "server.js", "mcp-remote/package.json", "mcp-server-git/pyproject.toml", "mcp_server_git.py", "sub/package.json", "sub/dist/index.js",
		"config.json", "mcp/git/x", "sub/dist/lib/x.js", "start", "data.db",
	} {
		if err := os.MkdirAll(filepath.Join(ws, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill := strings.NewReplacer("WS", ws, "BASE", base).Replace
	for _, tt := range []struct {
		name, command string
		args          string // separated by blanks
		dir           string
		env           map[string]string
		wantArgs      string
		wantDir       string // OWN for the server's own
		code          string // directories, separated by blanks
	}{
		{name: "dot", command: "npx", args: "-y @modelcontextprotocol/server-filesystem . docs /tmp", wantArgs: "-y @modelcontextprotocol/server-filesystem WS WS/docs /tmp"},
		{name: "option", command: "uvx", args: "mcp-server-git --repository . --log=./x.log", wantArgs: "mcp-server-git --repository WS --log=WS/x.log"},
		{name: "package_named_like_a_directory", command: "npx", args: "-y mcp-remote https://example.com/mcp", wantArgs: "-y mcp-remote https://example.com/mcp"},
		{name: "python_package", command: "uvx", args: "--from git+https://example.com/x mcp-server-git docs", wantArgs: "--from git+https://example.com/x mcp-server-git WS/docs"},
		{name: "unknown_option_takes_a_word", command: "npx", args: "--registry https://r.example mcp-remote docs", wantArgs: "--registry https://r.example mcp-remote WS/docs"},
		{name: "module", command: "python3.12", args: "-m mcp_server_git -r docs", wantArgs: "-m mcp_server_git -r WS/docs"},
		{name: "script_elsewhere", command: "python3", args: "/srv/s.py docs notes.txt new.txt", wantArgs: "/srv/s.py WS/docs WS/notes.txt new.txt"},
		{name: "program", command: "/srv/server", args: "docs --db data.db --db=data.db up/../docs ../x", wantArgs: "WS/docs --db WS/data.db --db=WS/data.db WS/docs BASE/x"},
		{name: "container", command: "docker", args: "run -i --rm -v ./docs:/docs -v .:/all --name docs mcp/git", wantArgs: "run -i --rm -v WS/docs:/docs -v WS:/all --name docs mcp/git"},
		{name: "wrapped", command: "env", args: "X=docs npx -y mcp-remote docs", wantArgs: "X=docs npx -y mcp-remote WS/docs"},
		{name: "wrapped_twice", command: "timeout", args: "60 env npx -y mcp-remote", wantArgs: "60 env npx -y mcp-remote"},
		{name: "launched", command: "npx", args: "-y supergateway npx -y mcp-remote", wantArgs: "-y supergateway npx -y mcp-remote"},
		{name: "npm", command: "npm", args: "exec -y -- mcp-remote docs", wantArgs: "exec -y -- mcp-remote WS/docs"},
		{name: "elsewhere_first", command: "uv", args: "--directory /srv/weather run server.py docs", wantArgs: "--directory /srv/weather run server.py docs"},
		{name: "deno", command: "deno", args: "run --allow-read=./docs jsr:@x/y docs", wantArgs: "run --allow-read=WS/docs jsr:@x/y WS/docs"},
		{name: "address", command: "/srv/server", args: "https://docs", wantArgs: "https://docs"},
		{name: "path_in_env", command: "/srv/server", args: "x", env: map[string]string{"PATH": "WS/bin:/bin"}, wantArgs: "x"},
		{name: "cwd_elsewhere", command: "python3", args: "server.py docs", dir: "/srv", wantArgs: "server.py docs", wantDir: "/srv"},

		{name: "cwd", command: "npx", args: "-y x docs", dir: ".", wantArgs: "-y x docs", wantDir: "WS", code: "WS"},
		{name: "cwd_below", command: "npx", args: "-y x", dir: "sub/dist", wantArgs: "-y x", wantDir: "WS/sub/dist", code: "WS/sub"},
		{name: "script", command: "python3", args: "server.py docs", wantArgs: "server.py docs", wantDir: "WS", code: "WS"},
		{name: "script_after_options", command: "node", args: "--no-warnings -r /srv/x.js server.js", wantArgs: "--no-warnings -r /srv/x.js server.js", wantDir: "WS", code: "WS"},
		{name: "script_by_path", command: "node", args: "WS/sub/dist/index.js docs", wantArgs: "WS/sub/dist/index.js WS/docs", code: "WS/sub"},
		{name: "script_deep", command: "node", args: "WS/sub/dist/lib/x.js", wantArgs: "WS/sub/dist/lib/x.js", code: "WS/sub"},
		{name: "package_by_path", command: "npx", args: "-y ./mcp-remote", wantArgs: "-y ./mcp-remote", wantDir: "WS", code: "WS"},
		{name: "package_by_address", command: "uvx", args: "--from git+file://WS/mcp-server-git x", wantArgs: "--from git+file://WS/mcp-server-git x", code: "WS/mcp-server-git"},
		{name: "runner_from_a_package", command: "npx", args: "-y tsx server.js", wantArgs: "-y tsx server.js", wantDir: "WS", code: "WS"},
		{name: "script_of_uv", command: "uv", args: "run server.py", wantArgs: "run server.py", wantDir: "WS", code: "WS"},
		{name: "code_as_data", command: "/srv/server", args: "--plugin server.js", wantArgs: "--plugin server.js", wantDir: "WS", code: "WS"},
		{name: "relative_program", command: "./start", args: "docs", wantArgs: "docs", wantDir: "WS", code: "WS"},
		{name: "text", command: "sh", args: "-c|cd WS && npx x", wantArgs: "-c|cd WS && npx x", code: "WS"},
		{name: "env", command: "/srv/server", args: "x", env: map[string]string{"PYTHONPATH": "WS/sub"}, wantArgs: "x", code: "WS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			words := func(text string) []string {
				if strings.Contains(text, "|") {
					return strings.Split(fill(text), "|")
				}
				return strings.Fields(fill(text))
			}
			s := Server{ID: "x", Type: Stdio, Command: fill(tt.command), Args: words(tt.args), Dir: tt.dir, Env: make(map[string]string), slug: "x"}
			for k, v := range tt.env {
				s.Env[k] = fill(v)
			}
			o := &Options{Dir: ws, Child: environ.Child{Environ: []string{"PATH=/usr/bin:" + ws, "PWD=" + ws, "OLDPWD=" + ws}}, Own: func(string) (string, error) { return own, nil }}
			got, err := resolved{Server: s}.place(o)
			if err != nil {
				t.Fatal(err)
			}
			wantDir := own
			if tt.wantDir != "" {
				wantDir = fill(tt.wantDir)
			}
			if !slices.Equal(got.args, words(tt.wantArgs)) || got.dir != wantDir || got.own != (tt.wantDir == "") {
				t.Errorf("%q in %s", got.args, got.dir)
			}
			var dirs []string
			for _, c := range got.code {
				dirs = append(dirs, c.Dir)
			}
			if dirs = slices.Compact(dirs); !slices.Equal(dirs, strings.Fields(fill(tt.code))) {
				t.Errorf("code in %q", dirs)
			}
			if environ.Get(got.env, "PWD") != wantDir || environ.Get(got.env, "OLDPWD") != "" || strings.Contains(environ.Get(got.env, "PATH"), ws) {
				t.Errorf("environment %q", got.env)
			}
		})
	}
}

// TestCommandLine checks that a whole command line in the place of a program is an error, and no code of the workspace.
func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"npx", "my server"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := &Options{Dir: dir, Child: environ.Child{Environ: []string{"PATH=" + dir}}, Own: func(string) (string, error) { return t.TempDir(), nil }}
	for command, want := range map[string]string{
		"npx -y @x/server": `"command": "npx", "args": ["-y", "@x/server"]`,
		"./npx -y":         `"command": "./npx", "args": ["-y"]`,
		"my server":        "",
		"./my server":      "",
		"none -y @x/s":     "",
	} {
		s := Server{ID: "x", Type: Stdio, Command: command, slug: "x"}
		_, err := resolved{Server: s}.place(o)
		if (err == nil) != (want == "") || fault.HintOf(err) != want {
			t.Errorf("%s: %v, hint %q", command, err, fault.HintOf(err))
		}
		if f := (File{Servers: []Server{s}}); want != "" && f.TakingCode(o) != nil {
			t.Errorf("%s takes code", command)
		}
	}
	f := File{Servers: []Server{{ID: "x", Type: Stdio, Command: "${workspaceFolder}/my server", slug: "x"}}}
	if !slices.Equal(f.TakingCode(o), []string{"x"}) {
		t.Error("a program in the workspace takes no code")
	}
}
