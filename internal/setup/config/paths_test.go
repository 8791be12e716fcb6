package config

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loki/internal/base/fault"
)

func mustPaths(t *testing.T, goos string, environ ...string) Paths {
	t.Helper()
	p, err := NewPaths(NewEnv(goos, environ))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPathsOfPlatforms(t *testing.T) {
	for _, tt := range []struct {
		name, goos           string
		environ              []string
		config, cache, state string
	}{
		{
			"linux", "linux",
			[]string{"HOME=/home/ann"},
			"/home/ann/.config/loki", "/home/ann/.cache/loki", "/home/ann/.local/state/loki",
		},
		{
			"linux_xdg", "linux",
			[]string{"HOME=/home/ann", "XDG_CONFIG_HOME=/c/", "XDG_CACHE_HOME=/k", "XDG_STATE_HOME=/s"},
			"/c/loki", "/k/loki", "/s/loki",
		},
		{
			"linux_relative_xdg_does_not_count", "linux",
			[]string{"HOME=/home/ann", "XDG_CONFIG_HOME=c", "XDG_CACHE_HOME=k", "XDG_STATE_HOME="},
			"/home/ann/.config/loki", "/home/ann/.cache/loki", "/home/ann/.local/state/loki",
		},
		{
			"linux_without_home", "linux",
			[]string{"LOKI_CONFIG_DIR=/etc/loki"},
			"/etc/loki", "/tmp/loki", "/etc/loki/state",
		},
		{
			"linux_without_home_tmpdir", "linux",
			[]string{"LOKI_CONFIG_DIR=/etc/loki", "TMPDIR=/var/tmp"},
			"/etc/loki", "/var/tmp/loki", "/etc/loki/state",
		},
		{
			"freebsd_is_like_linux", "freebsd",
			[]string{"HOME=/home/ann"},
			"/home/ann/.config/loki", "/home/ann/.cache/loki", "/home/ann/.local/state/loki",
		},
		{
			"root_as_home", "linux",
			[]string{"HOME=/"},
			"/.config/loki", "/.cache/loki", "/.local/state/loki",
		},
		{
			"macos", "darwin",
			[]string{"HOME=/Users/ann"},
			"/Users/ann/Library/Application Support/loki", "/Users/ann/Library/Caches/loki", "/Users/ann/Library/Application Support/loki/state",
		},
		{
			"macos_xdg", "darwin",
			[]string{"HOME=/Users/ann", "XDG_CONFIG_HOME=/c", "XDG_CACHE_HOME=/k", "XDG_STATE_HOME=/s"},
			"/c/loki", "/Users/ann/Library/Caches/loki", "/s/loki",
		},
		{
			"macos_without_home", "darwin",
			[]string{"LOKI_CONFIG_DIR=/c"},
			"/c", "/tmp/loki", "/c/state",
		},
		{
			"windows", "windows",
			[]string{`USERPROFILE=C:\Users\ann`, `AppData=C:\Users\ann\AppData\Roaming`, `LocalAppData=C:\Users\ann\AppData\Local`},
			`C:\Users\ann\AppData\Roaming\loki`, `C:\Users\ann\AppData\Local\loki`, `C:\Users\ann\AppData\Local\loki\state`,
		},
		{
			"windows_home_only", "windows",
			[]string{`USERPROFILE=C:\Users\ann\`},
			`C:\Users\ann\AppData\Roaming\loki`, `C:\Users\ann\AppData\Local\loki`, `C:\Users\ann\AppData\Local\loki\state`,
		},
		{
			"windows_share", "windows",
			[]string{`USERPROFILE=\\server\ann`, `XDG_CONFIG_HOME=relative\c`},
			`\\server\ann\AppData\Roaming\loki`, `\\server\ann\AppData\Local\loki`, `\\server\ann\AppData\Local\loki\state`,
		},
		{
			"windows_without_home", "windows",
			[]string{`LOKI_CONFIG_DIR=D:\loki`, `TEMP=D:/temp`},
			`D:\loki`, `D:/temp\loki`, `D:\loki\state`,
		},
		{
			"overrides_as_written", "linux",
			[]string{"HOME=/home/ann", "LOKI_CONFIG_DIR=~/rel", "LOKI_STATE_DIR=state"},
			"~/rel", "/home/ann/.cache/loki", "state",
		},
		{
			"empty_overrides_do_not_count", "linux",
			[]string{"HOME=/home/ann", "LOKI_CONFIG_DIR=", "LOKI_STATE_DIR="},
			"/home/ann/.config/loki", "/home/ann/.cache/loki", "/home/ann/.local/state/loki",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPaths(t, tt.goos, tt.environ...)
			want := []string{tt.config, tt.cache, tt.state}
			if diff := cmp.Diff(want, []string{p.ConfigDir, p.CacheDir, p.StateDir}); diff != "" {
				t.Errorf("configuration, cache, state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	got := mustPaths(t, "linux", "HOME=/h")
	want := Paths{
		ConfigDir:          "/h/.config/loki",
		ConfigFile:         "/h/.config/loki/config.yaml",
		RolesDir:           "/h/.config/loki/roles",
		MacrosDir:          "/h/.config/loki/macros",
		SessionsDir:        "/h/.config/loki/sessions",
		RAGsDir:            "/h/.config/loki/rags",
		FunctionsDir:       "/h/.config/loki/functions",
		AgentsDir:          "/h/.config/loki/agents",
		EnvFile:            "/h/.config/loki/.env",
		ModelsOverrideFile: "/h/.config/loki/models-override.yaml",
		VaultFile:          "/h/.config/loki/vault.yml",
		VaultPasswordFile:  "/h/.loki_password",
		CacheDir:           "/h/.cache/loki",
		LogFile:            "/h/.cache/loki/loki.log",
		MessagesFile:       "/h/.cache/loki/messages.md",
		OAuthDir:           "/h/.cache/loki/oauth",
		StateDir:           "/h/.local/state/loki",
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Paths{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ name, got, want string }{
		{"macro", got.MacroFile("commit"), "/h/.config/loki/macros/commit.yaml"},
		{"tools", got.ToolsDir(), "/h/.config/loki/functions/tools"},
		{"tools_bin", got.ToolsBinDir(), "/h/.config/loki/functions/bin"},
		{"tools_utils", got.ToolsUtilsDir(), "/h/.config/loki/functions/utils"},
		{"mcp", got.MCPFile(), "/h/.config/loki/functions/mcp.json"},
		{"dark_theme", got.ThemeFile(false), "/h/.config/loki/dark.tmTheme"},
		{"light_theme", got.ThemeFile(true), "/h/.config/loki/light.tmTheme"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		})
	}
}

func TestPathOverrides(t *testing.T) {
	for _, tt := range []struct {
		variable string
		get      func(Paths) string
	}{
		{"LOKI_CONFIG_FILE", func(p Paths) string { return p.ConfigFile }},
		{"LOKI_ENV_FILE", func(p Paths) string { return p.EnvFile }},
		{"LOKI_ROLES_DIR", func(p Paths) string { return p.RolesDir }},
		{"LOKI_MACROS_DIR", func(p Paths) string { return p.MacrosDir }},
		{"LOKI_SESSIONS_DIR", func(p Paths) string { return p.SessionsDir }},
		{"LOKI_RAGS_DIR", func(p Paths) string { return p.RAGsDir }},
		{"LOKI_FUNCTIONS_DIR", func(p Paths) string { return p.FunctionsDir }},
		{"LOKI_LOG_FILE", func(p Paths) string { return p.LogFile }},
		{"LOKI_LOG_PATH", func(p Paths) string { return p.LogFile }},
		{"LOKI_MESSAGES_FILE", func(p Paths) string { return p.MessagesFile }},
		{"LOKI_STATE_DIR", func(p Paths) string { return p.StateDir }},
	} {
		t.Run(tt.variable, func(t *testing.T) {
			const elsewhere = "~/else where/"
			plain := tt.get(mustPaths(t, "linux", "HOME=/h"))
			if got := tt.get(mustPaths(t, "linux", "HOME=/h", tt.variable+"="+elsewhere)); got != elsewhere {
				t.Errorf("got %s, want %s", got, elsewhere)
			}
			if got := tt.get(mustPaths(t, "linux", "HOME=/h", tt.variable+"=")); got != plain {
				t.Errorf("empty: got %s, want %s", got, plain)
			}
		})
	}
	t.Run("log_file_beats_log_path", func(t *testing.T) {
		p := mustPaths(t, "linux", "HOME=/h", "LOKI_LOG_PATH=/path", "LOKI_LOG_FILE=/file")
		if p.LogFile != "/file" {
			t.Errorf("got %s", p.LogFile)
		}
	})
}

func TestPathsWithoutHome(t *testing.T) {
	for goos, variable := range map[string]string{"linux": "HOME", "darwin": "HOME", "windows": "USERPROFILE"} {
		t.Run(goos, func(t *testing.T) {
			_, err := NewPaths(NewEnv(goos, nil))
			if got := fault.CodeOf(err); got != fault.Config {
				t.Fatalf("code %q", got)
			}
			if want := "no home directory: " + variable + " is not set"; err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
		})
	}
}

func TestPathsTouchNothing(t *testing.T) {
	home := t.TempDir()
	env := mustLoadEnvFile(t, "HOME="+home)
	paths, err := NewPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	paths.Agent("coder")
	if _, _, err := Load(paths, env); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 {
		t.Errorf("the home directory holds %v (%v)", entries, err)
	}
}

func TestAgentPaths(t *testing.T) {
	ignore := cmpopts.IgnoreUnexported(AgentPaths{})
	t.Run("default", func(t *testing.T) {
		got := mustPaths(t, "linux", "HOME=/h").Agent("code-reviewer")
		want := AgentPaths{
			Dir:          "/h/.config/loki/agents/code-reviewer",
			ConfigFile:   "/h/.config/loki/agents/code-reviewer/config.yaml",
			GraphFile:    "/h/.config/loki/agents/code-reviewer/graph.yaml",
			ToolsBinDir:  "/h/.config/loki/agents/code-reviewer/bin",
			SessionsDir:  "/h/.config/loki/agents/code-reviewer/sessions",
			MessagesFile: "/h/.cache/loki/agents/code-reviewer/messages.md",
		}
		if diff := cmp.Diff(want, got, ignore); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := got.NodeRAGFile("ask"); got != "/h/.config/loki/agents/code-reviewer/ask.db" {
			t.Errorf("node: %s", got)
		}
		if got := got.RAGFile(); got != "/h/.config/loki/agents/code-reviewer/rag.db" {
			t.Errorf("knowledge base: %s", got)
		}
	})
	t.Run("overrides", func(t *testing.T) {
		got := mustPaths(t, "linux", "HOME=/h", "CODE_REVIEWER_DATA_DIR=/d", "CODE_REVIEWER_CONFIG_FILE=c.yaml").Agent("code-reviewer")
		want := AgentPaths{
			Dir:          "/d",
			ConfigFile:   "c.yaml",
			GraphFile:    "/d/graph.yaml",
			ToolsBinDir:  "/d/bin",
			SessionsDir:  "/d/sessions",
			MessagesFile: "/h/.cache/loki/agents/code-reviewer/messages.md",
		}
		if diff := cmp.Diff(want, got, ignore); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("windows", func(t *testing.T) {
		got := mustPaths(t, "windows", `USERPROFILE=C:\u`, `sql_data_dir=D:\sql`).Agent("sql")
		if want := `D:\sql\graph.yaml`; got.GraphFile != want {
			t.Errorf("graph: got %s, want %s", got.GraphFile, want)
		}
		if want := `C:\u\AppData\Local\loki\agents\sql\messages.md`; got.MessagesFile != want {
			t.Errorf("messages: got %s, want %s", got.MessagesFile, want)
		}
	})
}
