package vault

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"loki/internal/base/fault"
)

// chain is a keychain of tests.
type chain struct {
	password string
	err      error
}

func (c *chain) Get(service, account string) (string, error) {
	if service != KeychainService || account != KeychainAccount {
		return "", keyring.ErrNotFound
	}
	if c.password == "" && c.err == nil {
		return "", keyring.ErrNotFound
	}
	return c.password, c.err
}

func (c *chain) Set(_, _, password string) error {
	if c.err == nil {
		c.password = password
	}
	return c.err
}

func TestWhereThePasswordComesFrom(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("needs cat")
	}
	noBus := errors.New("no session bus")
	for _, tt := range []struct {
		name     string
		files    map[string]string
		password func(p *Password, f *fixture)
		want     string
		wantErr  string
		warning  string
	}{
		{"default_file", map[string]string{"d": " from default \n"}, nil, "from default", "", ""},
		{"file", map[string]string{"d": "from default", "f": "from file"}, nil, "from file", "", ""},
		{"missing_file", map[string]string{"d": "from default"}, func(p *Password, f *fixture) { p.File = f.path("f") }, "from default", "", ""},
		{"file_beats_command", map[string]string{"f": "from file", "c": "from command"}, func(p *Password, f *fixture) { p.Command = cat + " '" + f.path("c") + "'" }, "from file", "", ""},
		{"command", map[string]string{"d": "from default", "c": "from command\r\n"}, func(p *Password, f *fixture) { p.Command = cat + " '" + f.path("c") + "'" }, "from command", "", ""},
		{"command_fails", map[string]string{"d": "from default"}, func(p *Password, f *fixture) { p.Command = cat + " '" + f.path("none") + "'" }, "", "vault_password_command: cat failed with exit status 1", ""},
		{"command_unknown", nil, func(p *Password, _ *fixture) { p.Command = "no-such-program-anywhere" }, "", "not found on PATH", ""},
		{"command_prints_nothing", map[string]string{"c": "\n"}, func(p *Password, f *fixture) { p.Command = cat + " '" + f.path("c") + "'" }, "", "vault_password_command is empty", ""},
		{"command_quotes", nil, func(p *Password, _ *fixture) { p.Command = "cat 'x" }, "", "a quotation mark is not closed", ""},
		{"command_too_late", nil, func(p *Password, _ *fixture) { p.Command, p.Timeout = cat, -1 }, "", "timed out", ""},
		{"keychain", map[string]string{"d": "from default"}, func(p *Password, _ *fixture) { p.UseKeychain, p.Keychain = true, &chain{password: "from keychain"} }, "from keychain", "", ""},
		{"keychain_without_use", map[string]string{"d": "from default"}, func(p *Password, _ *fixture) { p.Keychain = &chain{password: "from keychain"} }, "from default", "", ""},
		{"keychain_empty", map[string]string{"d": "from default"}, func(p *Password, _ *fixture) { p.UseKeychain, p.Keychain = true, &chain{} }, "from default", "", "the keychain has no password"},
		{"keychain_broken", nil, func(p *Password, _ *fixture) { p.UseKeychain, p.Keychain = true, &chain{err: noBus} }, "", "no session bus", ""},
		{"none", nil, nil, "", "no password for the vault", ""},
		{"empty_file", map[string]string{"d": " \n"}, nil, "", "is empty", ""},
		{"endless_file", map[string]string{"d": strings.Repeat("x", maxPassword+1)}, nil, "", "a password has at most 4096 bytes", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			p := &f.opts.Password
			*p = Password{DefaultFile: f.path("d"), Env: os.Environ()}
			for name, text := range tt.files {
				write(t, f.path(name), text)
				if name == "f" {
					p.File = f.path(name)
				}
			}
			if tt.password != nil {
				tt.password(p, f)
			}
			got, err := f.find(t.Context())
			if got != tt.want || (err == nil) != (tt.wantErr == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Config) {
				t.Errorf("error %q", err)
			}
			if told := strings.Join(f.warnings, "\n"); !strings.Contains(told, tt.warning) || tt.warning == "" && told != "" {
				t.Errorf("warnings %q", told)
			}
			if p.description() == "" {
				t.Error("the place has no name")
			}
		})
	}
}

func TestPasswordFileOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files are a Unix matter")
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o644: false} {
		f := newFixture(t)
		if err := os.Chmod(f.path("password"), mode); err != nil {
			t.Fatal(err)
		}
		_, err := f.find(t.Context())
		if (err == nil) != ok {
			t.Errorf("mode %v: error %v", mode, err)
		}
		if err != nil && (fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "chmod 600 "+f.path("password"))) {
			t.Errorf("mode %v: %v, hint %q", mode, err, fault.HintOf(err))
		}
	}
}

// stuck is a keychain that waits for the user to unlock it.
type stuck chan struct{}

func (s stuck) Get(string, string) (string, error) { <-s; return "late", nil }
func (s stuck) Set(string, string, string) error   { <-s; return nil }

func TestKeychainThatNeverAnswers(t *testing.T) {
	s := make(stuck)
	defer close(s)
	f := newFixture(t)
	f.opts.Password.UseKeychain, f.opts.Password.Keychain = true, s
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.find(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestSplitCommand(t *testing.T) {
	for _, tt := range []struct {
		line    string
		want    []string
		wantErr string
	}{
		{"pass show loki", []string{"pass", "show", "loki"}, ""},
		{"  a\t b\n", []string{"a", "b"}, ""},
		{`"my program" 'a "b" \'`, []string{"my program", `a "b" \`}, ""},
		{`a"b c"d ''`, []string{"ab cd", ""}, ""},
		{`C:\bin\x.exe D:\y`, []string{`C:\bin\x.exe`, `D:\y`}, ""},
		{`a\ b "\"" \\ \'`, []string{"a b", `"`, `\`, `'`}, ""},
		{`a \`, []string{"a", `\`}, ""},
		{`a "b`, nil, "not closed"},
		{" ", nil, "no program"},
		{"'' a", nil, "no program"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			got, err := splitCommand(tt.line)
			if !slices.Equal(got, tt.want) || (err == nil) != (tt.wantErr == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error %q", err)
			}
		})
	}
}

// TestDirectoryOfCommand runs the command in the directory that is made for it.
func TestDirectoryOfCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no pwd")
	}
	dir := t.TempDir()
	p := Password{Command: "pwd", Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: func(string) (string, error) { return dir, nil }}
	if got, err := p.run(t.Context()); err != nil || filepath.Base(got) != filepath.Base(dir) {
		t.Errorf("got %q, %v", got, err)
	}
}
