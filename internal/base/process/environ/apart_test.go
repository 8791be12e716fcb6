package environ

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestApart(t *testing.T) {
	base := t.TempDir()
	ws := filepath.Join(base, "ws")
	if err := os.MkdirAll(filepath.Join(ws, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(ws, "bin"), filepath.Join(base, "link")); err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ in, want string }{
		{"PATH=/usr/bin:.::./x:x:WS/bin:BASE/link:/bin", "PATH=/usr/bin:/bin"},
		{"PATH=/usr/bin:WSx/bin", "PATH=/usr/bin:WSx/bin"},
		{"PYTHONPATH=", "PYTHONPATH="},
		{"PYTHONPATH=:/opt/lib", "PYTHONPATH=/opt/lib"},
		{"PYTHONPATH=src", ""},
		{"NODE_PATH=WS/node_modules", ""},
		{"LD_PRELOAD=/lib/a.so WS/b.so", "LD_PRELOAD=/lib/a.so"},
		{"LUA_PATH=/usr/share/?.lua;;", ""},
		{"LUA_PATH_5_4=/usr/share/?.lua;./?.lua", "LUA_PATH_5_4=/usr/share/?.lua"},
		{"VIRTUAL_ENV=WS/.venv", ""},
		{"VIRTUAL_ENV=/home/a/.venv", "VIRTUAL_ENV=/home/a/.venv"},
		{"npm_config_prefix=WS/npm", ""},
		{"npm_config_userconfig=./npmrc", ""},
		{"npm_config_registry=https://registry.npmjs.org/", "npm_config_registry=https://registry.npmjs.org/"},
		{"npm_config_prefix=/home/a/.npm-global", "npm_config_prefix=/home/a/.npm-global"},
		{"NODE_OPTIONS=--max-old-space-size=4096", "NODE_OPTIONS=--max-old-space-size=4096"},
		{"NODE_OPTIONS=--require ./x.js", ""},
		{"NODE_OPTIONS=--require=WS/x.js", ""},
		{"NODE_OPTIONS=-r setup", ""},
		{"NODE_OPTIONS=--import /opt/x.mjs", "NODE_OPTIONS=--import /opt/x.mjs"},
		{"JAVA_TOOL_OPTIONS=-Xmx1g -XX:+UseG1GC", "JAVA_TOOL_OPTIONS=-Xmx1g -XX:+UseG1GC"},
		{"JAVA_TOOL_OPTIONS=-javaagent:agent.jar", ""},
		{"GOFLAGS=-mod=mod", "GOFLAGS=-mod=mod"},
		{"GOFLAGS=-toolexec=x", ""},
		{"GOFLAGS=-modfile=WS/go.mod", ""},
		{"PERL5OPT=-Ilib -MX", ""},
		{"RUBYOPT=-rbundler/setup -W0", "RUBYOPT=-rbundler/setup -W0"},
		{"RUBYOPT=-r./x", ""},
		{"BASH_ENV=env.sh", ""},
		{"BASH_ENV=~/env.sh", "BASH_ENV=~/env.sh"},
		{"RUSTC_WRAPPER=sccache", "RUSTC_WRAPPER=sccache"},
		{"RUSTC_WRAPPER=./wrap", ""},
		{"GOWORK=off", "GOWORK=off"},
		{"DATA=WS/data", "DATA=WS/data"},
		{"HOME=WS", "HOME=WS"},
	} {
		fill := strings.NewReplacer("WS", ws, "BASE", base).Replace
		got, changed := Apart([]string{"A=1", fill(tt.in)}, ws, nil)
		if want := slices.DeleteFunc([]string{"A=1", fill(tt.want)}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", tt.in, got)
		}
		if (len(changed) > 0) != (tt.in != tt.want) {
			t.Errorf("%s: changed %q", tt.in, changed)
		}
	}
}

func TestApartKeeps(t *testing.T) {
	const path = "PATH=/home/a/.nvm/bin:/home/a/app/bin:/usr/bin:/home/a/go/bin"
	for _, tt := range []struct{ dir, want string }{
		{"/home/a", "PATH=/home/a/.nvm/bin:/usr/bin:/home/a/go/bin"},
		{"/", "PATH=/home/a/.nvm/bin:/usr/bin:/home/a/go/bin"},
		{"/usr/bin", "PATH=/home/a/.nvm/bin:/home/a/app/bin:/home/a/go/bin"},
		{"/home/a/go", "PATH=/home/a/.nvm/bin:/home/a/app/bin:/usr/bin"},
	} {
		if got, _ := Apart([]string{path}, tt.dir, []string{"/usr", "/home/a/.nvm", "/home/a/go"}); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: got %q", tt.dir, got)
		}
	}
}
