package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestExt(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a.sh": ".sh", "dir.d/a.PY": ".PY", "a.tar.ts": ".ts", "a": "", ".sh": "", "dir/.sh": "",
		"dir.sh/a": "", "a.": ".", "..sh": ".sh", "": "", "/": "", ".hidden.sh": ".sh",
	} {
		if got := Ext(path); got != want {
			t.Errorf("Ext(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestInterpreter(t *testing.T) {
	t.Parallel()
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	local := filepath.Join(work, "node_modules", ".bin", "tsx")
	for _, tt := range []struct {
		name, ext string
		installed []string
		want      string
		err       string
	}{
		{name: "sh", ext: ".sh", installed: []string{"bash"}, want: "/bin/bash"},
		{name: "any_case", ext: ".Sh", installed: []string{"bash"}, want: "/bin/bash"},
		{name: "py", ext: ".PY", installed: []string{"python3"}, want: "/bin/python3"},
		{name: "ts_local", ext: ".ts", installed: []string{"npx", "tsx", local}, want: local},
		{name: "ts_on_path", ext: ".ts", installed: []string{"npx", "tsx"}, want: "/bin/tsx"},
		{name: "no_bash", ext: ".sh", err: "bash not found on PATH"},
		{name: "no_python", ext: ".py", installed: []string{"bash"}, err: "python3 not found on PATH"},
		{name: "no_tsx", ext: ".TS", installed: []string{"npx"}, err: "tsx is not installed, and Node.js 22.6 or newer is not there to do without it; install it with: npm install -g tsx"},
		{name: "unknown", ext: ".js", installed: []string{"bash"}, err: `no interpreter for ".js" scripts (known: .sh, .py, .ts)`},
		{name: "unknown_in_its_case", ext: ".RB", err: `no interpreter for ".RB" scripts (known: .sh, .py, .ts)`},
		{name: "without_dot", ext: "sh", err: `no interpreter for "sh" scripts (known: .sh, .py, .ts)`},
		{name: "none", ext: "", err: "no file extension to choose an interpreter by (known: .sh, .py, .ts)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			argv, err := Interpreter(tt.ext, filepath.Join(work, "x"), func(file string) (string, error) {
				switch {
				case !slices.Contains(tt.installed, file):
					return "", &exec.Error{Name: file, Err: exec.ErrNotFound}
				case filepath.IsAbs(file):
					return file, nil
				}
				return "/bin/" + file, nil
			})
			if got := strings.Join(argv, " "); got != tt.want || err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
				t.Errorf("got %q, %v", got, err)
			}
			if (strings.HasSuffix(tt.err, "PATH") || strings.HasPrefix(tt.err, "tsx")) && !errors.Is(err, exec.ErrNotFound) {
				t.Errorf("error %v does not say not found", err)
			}
			if known := !strings.HasPrefix(tt.err, "no "); known != Supported(tt.ext) {
				t.Errorf("Supported(%q) = %v", tt.ext, !known)
			}
		})
	}
}

// TestNodeRunsTypeScript: Node.js takes the place of tsx from the version on that leaves out types itself.
func TestNodeRunsTypeScript(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are shell scripts")
	}
	for version, want := range map[string]bool{"v20.19.0": false, "v22.5.1": false, "v22.6.0": true, "v24.1.0": true, "nonsense": false} {
		node := filepath.Join(t.TempDir(), "node")
		if err := os.WriteFile(node, []byte("#!/bin/sh\necho "+version+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		argv, err := Interpreter(".ts", "", func(file string) (string, error) {
			if file == "node" {
				return node, nil
			}
			return "", exec.ErrNotFound
		})
		if got := err == nil && argv[0] == node && slices.Contains(argv, "--experimental-strip-types"); got != want {
			t.Errorf("%s: got %q, %v", version, argv, err)
		}
	}
}

// TestInterpreterRuns runs a script of each kind whose interpreter is installed.
func TestInterpreterRuns(t *testing.T) {
	t.Parallel()
	for ext, text := range map[string]string{".sh": `echo "hi $1"`, ".py": "import sys\nprint('hi', sys.argv[1])"} {
		t.Run(strings.TrimPrefix(ext, "."), func(t *testing.T) {
			t.Parallel()
			argv, err := Interpreter(ext, "", nil)
			if errors.Is(err, exec.ErrNotFound) {
				t.Skip(err)
			}
			if err != nil || !filepath.IsAbs(argv[0]) {
				t.Fatalf("got %q, %v", argv, err)
			}
			script := filepath.Join(t.TempDir(), "script"+ext)
			if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			res, err := Run(t.Context(), Command{Path: argv[0], Args: append(argv[1:], script, "you"), Env: os.Environ()})
			if err != nil || strings.TrimSpace(string(res.Stdout)) != "hi you" {
				t.Errorf("got %q, %v", res.Stdout, err)
			}
			t.Logf("%s took %v", argv[0], res.Duration)
		})
	}
}

func TestUnshim(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("pyenv's shims there are batch files")
	}
	root := t.TempDir()
	project := filepath.Join(root, "home", "project", "sub")
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"3.11.7", "3.12.1", "2.7.18/envs/old"} {
		write("pyenv/versions/"+version+"/bin/python3", "", 0o700)
	}
	write("pyenv/versions/2.7.18/bin/python2", "", 0o700)
	write("pyenv/versions/broken/bin/python3", "", 0o600)
	write("pyenv/shims/python3", "", 0o700)
	write("pyenv/version", "# the usual\n\n  3.11.7 rest\n", 0o600)
	write("evil/bin/python3", "", 0o700)
	write("home/project/sub/main.py", "", 0o600)
	write("home/project/.python-version", "2.7.18\n3.12.1\n", 0o600)
	write("home/escape/.python-version", "../../evil\n", 0o600)
	write("home/empty/.python-version", "\n", 0o600)
	shim := filepath.Join(root, "pyenv/shims/python3")
	for _, tt := range []struct {
		name, path, work string
		env              map[string]string
		want             string // below versions; empty: the shim stays
	}{
		{name: "global", work: root, want: "3.11.7"},
		{name: "local_second_has_it", work: project, want: "3.12.1"},
		{name: "variable", work: project, env: map[string]string{"PYENV_VERSION": "3.11.7"}, want: "3.11.7"},
		{name: "variable_list", work: project, env: map[string]string{"PYENV_VERSION": "2.7.18:3.11.7"}, want: "3.11.7"},
		{name: "virtual_environment", work: root, env: map[string]string{"PYENV_VERSION": "2.7.18/envs/old"}, want: "2.7.18/envs/old"},
		{name: "directory_variable", work: root, env: map[string]string{"PYENV_DIR": project}, want: "3.12.1"},
		{name: "directory_variable_without_file", work: project, env: map[string]string{"PYENV_DIR": filepath.Join(root, "evil")}, want: "3.12.1"},
		{name: "system", work: root, env: map[string]string{"PYENV_VERSION": "system"}},
		{name: "system_first", work: root, env: map[string]string{"PYENV_VERSION": "system:3.11.7"}},
		{name: "prefix", work: root, env: map[string]string{"PYENV_VERSION": "3.12"}},
		{name: "not_executable", work: root, env: map[string]string{"PYENV_VERSION": "broken"}},
		{name: "without_program", work: root, env: map[string]string{"PYENV_VERSION": "2.7.18"}},
		{name: "file_leads_out", work: filepath.Join(root, "home/escape")},
		{name: "variable_leads_out", work: root, env: map[string]string{"PYENV_VERSION": filepath.Join(root, "evil")}},
		{name: "empty_file", work: filepath.Join(root, "home/empty")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := shim
			if tt.want != "" {
				want = filepath.Join(root, "pyenv/versions", tt.want, "bin/python3")
			}
			env := func(key string) (string, bool) { v, ok := tt.env[key]; return v, ok }
			got := unshim(shim, env, func() (string, error) { return tt.work, nil })
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	none := func(string) (string, bool) { return "", false }
	for _, path := range []string{"/usr/bin/python3", "python3", "/opt/shims/python3"} {
		if got := unshim(path, none, os.Getwd); got != path {
			t.Errorf("%s became %s", path, got)
		}
	}
	if got := unshim(shim, none, func() (string, error) { return "", errors.New("gone") }); got != shim {
		t.Errorf("without a working directory: got %s", got)
	}
}

func FuzzPyenvVersions(f *testing.F) {
	f.Add("# comment\n3.11.7 rest\r\n\n../x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, version := range parsePyenvVersions(text) {
			if version == "" || version[0] == '#' || strings.ContainsAny(version, " \t\r\n") {
				t.Fatalf("odd version %q of %q", version, text)
			}
		}
	})
}

func BenchmarkInterpreter(b *testing.B) {
	for _, ext := range []string{".sh", ".py", ".ts"} {
		b.Run(strings.TrimPrefix(ext, "."), func(b *testing.B) {
			for b.Loop() {
				if _, err := Interpreter(ext, "", nil); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}
