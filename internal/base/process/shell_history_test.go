package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestShellHistory(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	for _, tt := range []struct{ shell, file, want string }{
		{"bash", ".bash_history", "ls a\nls b c\n"},
		{"sh", ".bash_history", "ls a\nls b c\n"},
		{"zsh", ".zsh_history", ": 1700000000:0;ls a\n: 1700000000:0;ls b c\n"},
		{"fish", ".local/share/fish/fish_history", "- cmd: ls a\n  when: 1700000000\n- cmd: ls b c\n  when: 1700000000\n"},
		{"nushell", "conf/nushell/history.txt", "ls a\nls b c\n"},
		{"pwsh", ".local/share/powershell/PSReadLine/ConsoleHost_history.txt", "ls a\nls b c\n"},
		{"ksh", ".ksh_history", "ls a\nls b c\n"},
		{"tcsh", ".history", "ls a\nls b c\n"},
	} {
		t.Run(tt.shell, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			h := Shell{Name: tt.shell}.History("linux", home, filepath.Join(home, "conf"), func(string) string { return "" })
			for _, command := range []string{"ls a", "ls b\nc"} {
				if err := h.Append(command, at); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(tt.file)))
			if err != nil || string(got) != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestFishReadsBackslashesAsTheyWere(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	h := Shell{Name: "fish"}.History("linux", home, "", func(string) string { return "" })
	if err := h.Append(`printf 'a\n'`, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(h.File)
	if want := "- cmd: printf 'a\\\\n'\n  when: 1\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestShellHistoryFileIsWhatTheShellSays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "h")
	for _, name := range []string{"bash", "zsh"} {
		h := Shell{Name: name}.History("linux", "/home", "/conf", func(v string) string { return map[string]string{"HISTFILE": file}[v] })
		if h.File != file {
			t.Errorf("%s: %s", name, h.File)
		}
	}
}

func TestUnknownShellKeepsNothing(t *testing.T) {
	t.Parallel()
	if err := (Shell{Name: "elvish"}).History("linux", "/nowhere", "/nowhere", os.Getenv).Append("ls", time.Time{}); err != nil {
		t.Error(err)
	}
}
