package script

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGitBash(t *testing.T) {
	dirs := map[string]string{"ProgramFiles": filepath.Join("c", "Program Files")}
	for _, tt := range []struct {
		name  string
		there []string
		want  string
	}{
		{name: "usual_place", there: []string{"c/Program Files/Git/bin/bash.exe", "git=d/Git/cmd/git.exe", "d/Git/bin/bash.exe"}, want: "c/Program Files/Git/bin/bash.exe"},
		{name: "beside_git", there: []string{"git=d/Git/cmd/git.exe", "d/Git/bin/bash.exe"}, want: "d/Git/bin/bash.exe"},
		{name: "beside_mingw", there: []string{"git=d/Git/mingw64/bin/git.exe", "d/Git/bin/bash.exe"}, want: "d/Git/bin/bash.exe"},
		{name: "only_windows_own", there: []string{"bash=c/Windows/System32/bash.exe"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			look := func(file string) (string, error) {
				for _, place := range tt.there {
					name, path, found := strings.Cut(place, "=")
					if !found {
						path = name
					}
					if filepath.ToSlash(file) == name {
						return path, nil
					}
				}
				return "", errors.New("not found")
			}
			got, err := gitBash(func(name string) string { return dirs[name] }, look)
			if tt.want == "" {
				if err == nil {
					t.Errorf("got %v", got)
				}
				return
			}
			if want := []string{tt.want, "--noprofile", "--norc"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m": "red", "\x1b]8;;http://x\x07link\x1b]8;;\x1b\\": "link", "\x1b(Bx\x1b=": "x", "a[31m": "a[31m",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q", in, got)
		}
	}
}
