package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestEnvLookup(t *testing.T) {
	linux := []string{"A=1", "EMPTY=", "WITH=a=b", "A=2", "noequals", ""}
	windows := []string{"=C:=C:\\work", "Path=C:\\bin"}
	for _, tt := range []struct {
		test, goos string
		environ    []string
		name       string
		want       string
		wantOK     bool
	}{
		{"last_counts", "linux", linux, "A", "2", true},
		{"empty_is_set", "linux", linux, "EMPTY", "", true},
		{"value_with_equals", "linux", linux, "WITH", "a=b", true},
		{"absent", "linux", linux, "B", "", false},
		{"entry_without_equals", "linux", linux, "noequals", "", false},
		{"case_counts", "linux", linux, "a", "", false},
		{"case_does_not_count", "windows", windows, "PATH", "C:\\bin", true},
		{"drive", "windows", windows, "=C:", "C:\\work", true},
	} {
		t.Run(tt.test, func(t *testing.T) {
			got, ok := NewEnv(tt.goos, tt.environ).Lookup(tt.name)
			if got != tt.want || ok != tt.wantOK {
				t.Errorf("Lookup(%q) = %q, %v; want %q, %v", tt.name, got, ok, tt.want, tt.wantOK)
			}
		})
	}
	if got, ok := (Env{}).Lookup("A"); ok {
		t.Errorf("the zero Env has A = %q", got)
	}
}

func TestEnvWith(t *testing.T) {
	process := NewEnv("linux", []string{"SET=process", "EMPTY="})
	filled := process.With([]Var{{"SET", "file"}, {"EMPTY", "file"}, {"NEW", "first"}, {"NEW", "second"}})
	want := []string{"SET=process", "EMPTY=", "NEW=second"}
	if diff := cmp.Diff(want, filled.Environ()); diff != "" {
		t.Errorf("Environ (-want +got):\n%s", diff)
	}
	if _, ok := process.Lookup("NEW"); ok {
		t.Error("With changed its receiver")
	}
	if got := NewEnv("windows", []string{"Path=x"}).With([]Var{{"PATH", "y"}}).Get("path"); got != "x" {
		t.Errorf("on Windows the file's PATH beat the process's Path: %q", got)
	}
}

func TestLoadEnvFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".env"), "KEY=from file\nLOKI_CONFIG_DIR=/elsewhere\nLOKI_ENV_FILE=/elsewhere/.env\n")
	other := filepath.Join(dir, "other.env")
	write(t, other, "KEY=from other")

	t.Run("config_dir", func(t *testing.T) {
		// The file moves the configuration, yet stays where it is.
		env := mustLoadEnvFile(t, "LOKI_CONFIG_DIR="+dir)
		if got := env.Get("KEY"); got != "from file" {
			t.Errorf("KEY = %q", got)
		}
		if got := env.Get("LOKI_CONFIG_DIR"); got != dir {
			t.Errorf("the file beat the process: %q", got)
		}
	})
	t.Run("platform_dir", func(t *testing.T) {
		home := t.TempDir()
		write(t, filepath.Join(home, ".config/loki/.env"), "LOKI_CONFIG_DIR=/elsewhere\nLOKI_ENV_FILE=/elsewhere/.env\n")
		paths, err := NewPaths(mustLoadEnvFile(t, "HOME="+home))
		if err != nil {
			t.Fatal(err)
		}
		if paths.ConfigFile != "/elsewhere/config.yaml" || paths.EnvFile != home+"/.config/loki/.env" {
			t.Errorf("configuration %s, env file %s", paths.ConfigFile, paths.EnvFile)
		}
	})
	t.Run("named_file", func(t *testing.T) {
		env := mustLoadEnvFile(t, "LOKI_CONFIG_DIR="+dir, "LOKI_ENV_FILE="+other)
		if got := env.Get("KEY"); got != "from other" {
			t.Errorf("KEY = %q", got)
		}
	})
	t.Run("missing", func(t *testing.T) {
		mustLoadEnvFile(t, "LOKI_CONFIG_DIR="+filepath.Join(dir, "nowhere"))
	})
	t.Run("no_place_to_look", func(t *testing.T) {
		mustLoadEnvFile(t)
	})
	t.Run("unreadable", func(t *testing.T) {
		env, err := NewEnv("linux", []string{"A=1", "LOKI_ENV_FILE=" + dir}).LoadEnvFile()
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v does not name the directory that stands for the file", err)
		}
		if env.Get("A") != "1" {
			t.Error("the environment is lost")
		}
	})
}

// TestEnvFileProblems checks that what other programs read differently is said, with its line
// and without the value, which may be a key.
func TestEnvFileProblems(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"fine", "A=1\n# export B=2\nC=it's\nD=\"\nE='a'b\n", ""},
		{"export", "A=1\nexport KEY=sk-1\n", "FILE:2: export has no meaning here, so the line sets nothing; write KEY="},
		{"quotes", "\nKEY=\"sk-1\"\n", "FILE:2: the quotes are part of the value of KEY; leave them out"},
		{"single_quotes", "KEY = 'sk-1' \n", "FILE:1: the quotes are part of the value of KEY; leave them out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), ".env")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			env, err := NewEnv("linux", []string{"LOKI_ENV_FILE=" + file}).LoadEnvFile()
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), file, "FILE")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.name == "fine" && env.Get("A") != "1" {
				t.Error("the file was not read")
			}
		})
	}
}

func mustLoadEnvFile(t *testing.T, environ ...string) Env {
	t.Helper()
	env, err := NewEnv("linux", environ).LoadEnvFile()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestParseEnvFile(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      []Var
	}{
		{"empty", "", nil},
		{"plain", "A=1\nB=2", []Var{{"A", "1"}, {"B", "2"}}},
		{"white_space", " \t A =  x y \r\nB=\u00a0z", []Var{{"A", "x y"}, {"B", "z"}}},
		{"comments_and_blanks", "\n# A=1\n   # B=2\n\nC=3\n", []Var{{"C", "3"}}},
		{"hash_in_value", "A=x # y", []Var{{"A", "x # y"}}},
		{"first_equals_splits", "A=b=c==", []Var{{"A", "b=c=="}}},
		{"quotes_are_text", `A="x"`, []Var{{"A", `"x"`}}},
		{"no_expansion", "A=$HOME/${B}\\n", []Var{{"A", `$HOME/${B}\n`}}},
		{"export_is_part_of_the_name", "export A=1", []Var{{"export A", "1"}}},
		{"without_equals", "A\nB=1", []Var{{"B", "1"}}},
		{"without_name", "=x\n  =y\nB=1", []Var{{"B", "1"}}},
		{"empty_value", "A=", []Var{{"A", ""}}},
		{"repeated", "A=1\nA=2", []Var{{"A", "1"}, {"A", "2"}}},
		{"byte_order_mark", "\uFEFFA=1", []Var{{"A", "1"}}},
		{"nul", "A=x\x00y\nB=1", []Var{{"B", "1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ParseEnvFile([]byte(tt.src))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseEnvFile(f *testing.F) {
	f.Add([]byte("A=1\n# comment\n B = two words \r\n\nnothing\nC==\n"))
	f.Add([]byte("\uFEFFexport A=\"x\"\n=\n\x00=\x00\nA=\xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		vars := ParseEnvFile(src)
		var again []byte
		for _, v := range vars {
			if v.Name == "" || strings.ContainsAny(v.Name, "=\n\x00") || strings.ContainsAny(v.Value, "\n\x00") {
				t.Fatalf("no environment can hold %q = %q", v.Name, v.Value)
			}
			if strings.TrimFunc(v.Name, unicode.IsSpace) != v.Name || strings.TrimFunc(v.Value, unicode.IsSpace) != v.Value {
				t.Fatalf("white space around %q = %q", v.Name, v.Value)
			}
			again = append(again, "\n"+v.Name+"="+v.Value...)
		}
		if got := ParseEnvFile(again); !slices.Equal(got, vars) {
			t.Fatalf("written and read again, %q became %q", vars, got)
		}
		env := NewEnv("linux", nil).With(vars)
		for _, v := range vars {
			if _, ok := env.Lookup(v.Name); !ok {
				t.Fatalf("%q is lost", v.Name)
			}
		}
	})
}

// TestMisspelledVariables: a slip at the end of a name is one, too; another word is not.
func TestMisspelledVariables(t *testing.T) {
	for name, want := range map[string]string{
		"LOKI_MODLE": "did you mean LOKI_MODEL?", "LOKI_TEMPERATUR": "did you mean LOKI_TEMPERATURE?", "LOKI_CONFIG_DIRS": "did you mean LOKI_CONFIG_DIR?",
		"LOKI_RAG_CHUNKER": "has no effect anymore", "LOKI_MODEL_TOO": "", "LOKI_KEY": "", "LOKI_CONFIG": "", "LOKI_OF_ANOTHER_PROGRAM": "",
	} {
		got := strings.Join(misspellings(NewEnv("linux", []string{name + "=x"})), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
