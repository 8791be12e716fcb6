package process

import (
	"os/exec"
	"strings"
	"testing"
)

func TestFindShell(t *testing.T) {
	t.Parallel()
	look := func(file string) (string, error) {
		if strings.HasPrefix(file, "/missing/") {
			return "", exec.ErrNotFound
		}
		if file == "bash" {
			return "/bin/bash", nil
		}
		return file, nil
	}
	const profile = `C:\Users\Ann`
	for _, tt := range []struct {
		name, goos string
		env        map[string]string
		want       Shell
	}{
		{"nothing", "linux", nil, Shell{"/bin/sh", "sh", "-c"}},
		{"shell", "linux", map[string]string{"SHELL": "/usr/bin/zsh"}, Shell{"/usr/bin/zsh", "zsh", "-c"}},
		{"nologin", "linux", map[string]string{"SHELL": "/usr/sbin/nologin"}, Shell{"/bin/bash", "bash", "-c"}},
		{"false", "darwin", map[string]string{"SHELL": "/bin/false"}, Shell{"/bin/bash", "bash", "-c"}},
		{"not_installed", "linux", map[string]string{"SHELL": "/missing/zsh"}, Shell{"/bin/bash", "bash", "-c"}},
		{"loki_shell", "darwin", map[string]string{"SHELL": "/bin/zsh", "LOKI_SHELL": "fish"}, Shell{"fish", "fish", "-c"}},
		{"empty", "linux", map[string]string{"SHELL": "", "LOKI_SHELL": ""}, Shell{"/bin/sh", "sh", "-c"}},
		{"nushell", "linux", map[string]string{"SHELL": "/opt/nu"}, Shell{"/opt/nu", "nushell", "-c"}},
		{"pwsh_on_linux", "linux", map[string]string{"LOKI_SHELL": "/usr/bin/pwsh"}, Shell{"/usr/bin/pwsh", "pwsh", "-c"}},
		{"backslash_on_linux", "linux", map[string]string{"SHELL": `/x/a\b`}, Shell{`/x/a\b`, `a\b`, "-c"}},
		{"windows", "windows", map[string]string{"SHELL": "/usr/bin/bash"}, Shell{"cmd.exe", "cmd", "/C"}},
		{"windows_loki_shell", "windows", map[string]string{"LOKI_SHELL": `C:\Git\Bash.EXE`}, Shell{`C:\Git\Bash.EXE`, "bash", "-c"}},
		{
			"windows_powershell", "windows",
			map[string]string{"USERPROFILE": profile, "PSModulePath": `c:\users\ann\Documents\WindowsPowerShell\Modules;C:\Windows\Modules`},
			Shell{"powershell.exe", "powershell", "-Command"},
		},
		{
			"windows_pwsh", "windows",
			map[string]string{"USERPROFILE": profile, "PSModulePath": profile + `\Documents\PowerShell\Modules;C:\Program Files\PowerShell\7\Modules`},
			Shell{"pwsh.exe", "pwsh", "-c"},
		},
		{
			"windows_cmd_with_powershell_installed", "windows",
			map[string]string{"USERPROFILE": profile, "PSModulePath": `C:\Program Files\WindowsPowerShell\Modules`},
			Shell{"cmd.exe", "cmd", "/C"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := FindShell(tt.goos, func(name string) string { return tt.env[name] }, look); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
