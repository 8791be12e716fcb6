package vault

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
)

func TestCreatePassword(t *testing.T) {
	const fresh = "a new password"
	for _, tt := range []struct {
		name    string
		prepare func(*testing.T, *fixture)
		choose  bool
		answers []string
		file    string // of the password, in the directory
		want    string // the password
		wantErr error
	}{
		{name: "new", answers: []string{"Yes", fresh, fresh}, file: "password", want: fresh},
		{name: "another_path", choose: true, answers: []string{"Yes", "DIR/mine", fresh, fresh}, file: "mine", want: fresh},
		{name: "suggested_path", choose: true, answers: []string{"Yes", "DIR/password", fresh, fresh}, file: "password", want: fresh},
		{name: "blanks_do_not_count", answers: []string{"Yes", " " + fresh + " ", " " + fresh + " "}, file: "password", want: fresh},
		{name: "mistyped", answers: []string{"Yes", fresh, "a new passwort", fresh, fresh}, file: "password", want: fresh},
		{name: "declined", answers: []string{"No"}, wantErr: ErrNoPassword},
		{
			name: "empty_file", choose: true, answers: []string{"Yes", fresh, fresh}, file: "password", want: fresh,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("password"), "\n") },
		},
		{
			name: "there_is_one", answers: nil, file: "password", want: password,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("password"), password) },
		},
		{
			name: "configured_file", answers: []string{"Yes", fresh, fresh}, file: "configured", want: fresh,
			prepare: func(_ *testing.T, f *fixture) { f.opts.Password.File = f.path("configured") },
		},
		{
			name: "of_a_vault_with_secrets", answers: []string{"Yes", "not the one", password}, file: "password", want: password,
			prepare: func(t *testing.T, f *fixture) {
				write(t, f.path("password"), password)
				if err := f.another().Add(t.Context(), "a", "x"); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(f.path("password")); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			name: "of_an_old_vault", answers: []string{"Yes", "", "not the one", password}, file: "password", want: password,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("old.yml"), legacyFile()) },
		},
		{
			name: "of_an_old_vault_never_right", answers: []string{"Yes", "1", "2", "3"}, wantErr: ErrPassword,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("old.yml"), legacyFile()) },
		},
		{
			name: "unreadable_vault", answers: []string{"Yes"}, wantErr: ErrUnreadable,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("vault.yml"), "- x") },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			if err := os.Remove(f.path("password")); err != nil {
				t.Fatal(err)
			}
			if tt.prepare != nil {
				tt.prepare(t, f)
			}
			for i, a := range tt.answers {
				tt.answers[i] = strings.Replace(a, "DIR", f.dir, 1)
			}
			asker := asktest.NewScripted(tt.answers...)
			path, err := f.CreatePassword(t.Context(), asker, tt.choose)
			if len(asker.Asked()) != len(tt.answers) {
				t.Errorf("%d questions", len(asker.Asked()))
			}
			for _, q := range asker.Asked() {
				if q.ID == "vault-password" && q.Kind != ask.Secret {
					t.Errorf("%+v is shown", q)
				}
			}
			if tt.wantErr != nil {
				if !errors.Is(err, tt.wantErr) || fault.CodeOf(err) != fault.Config {
					t.Errorf("error %v", err)
				}
				if _, err := os.Stat(f.path("password")); err == nil {
					t.Error("a file was written")
				}
				return
			}
			if err != nil || path != f.path(tt.file) {
				t.Fatalf("path %q, %v", path, err)
			}
			if got, err := readPassword(path); err != nil || got != tt.want {
				t.Errorf("the file holds %q, %v", got, err)
			}
			if err := f.Add(t.Context(), "new", "x"); err != nil {
				t.Errorf("the vault cannot be used: %v", err)
			}
			if got, err := f.Get(t.Context(), "new"); err != nil || got != "x" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestCreatePasswordRefuses(t *testing.T) {
	for name, answers := range map[string][]string{
		"short":        {"Yes", "DIR/new", "nine char"},
		"short_padded": {"Yes", "DIR/new", "  short      "},
		"never_same":   {"Yes", "DIR/new", "0123456789", "1", "0123456789", "2", "0123456789", "3"},
		"path_exists":  {"Yes", "DIR/there"},
		"no_directory": {"Yes", "DIR/no/such"},
		"nobody_there": {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := os.Rename(f.path("password"), f.path("there")); err != nil {
				t.Fatal(err)
			}
			for i, a := range answers {
				answers[i] = strings.Replace(a, "DIR", f.dir, 1)
			}
			if _, err := f.CreatePassword(t.Context(), asktest.NewScripted(answers...), true); err == nil {
				t.Error("no error")
			}
			for _, file := range []string{"new", "password"} {
				if _, err := os.Stat(f.path(file)); err == nil {
					t.Errorf("%s was written", file)
				}
			}
			if read(t, f.path("there")) != password+"\n" {
				t.Error("a file was changed")
			}
		})
	}
}

func TestCreatePasswordInTheKeychain(t *testing.T) {
	f := newFixture(t)
	c := new(chain)
	f.opts.Password = Password{DefaultFile: f.path("none"), UseKeychain: true, Keychain: c}
	path, err := f.CreatePassword(t.Context(), asktest.NewScripted("Yes", password, password), true)
	if err != nil || path != "" || c.password != password {
		t.Fatalf("path %q, keychain %q, %v", path, c.password, err)
	}
	f.add(t, "a", "x")

	c.password, c.err = "", errors.New("no session bus")
	v := f.another()
	v.opts.Password = f.opts.Password
	_, err = v.CreatePassword(t.Context(), asktest.NewScripted("Yes", password), false)
	if err == nil || !strings.Contains(err.Error(), "no session bus") || fault.HintOf(err) == "" {
		t.Errorf("error %v", err)
	}
}

func TestCreatePasswordOfACommand(t *testing.T) {
	f := newFixture(t)
	f.opts.Password = Password{Command: "no-such-program-anywhere", DefaultFile: f.path("password")}
	if _, err := f.CreatePassword(t.Context(), asktest.NewScripted("Yes", password, password), false); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error %v", err)
	}
}

func TestExpandHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if runtime.GOOS == "windows" {
		t.Setenv("USERPROFILE", home)
	}
	for in, want := range map[string]string{
		"~/x":    filepath.Join(home, "x"),
		" ~/x ":  filepath.Join(home, "x"),
		"~":      home,
		"~other": "~other",
		"x/~":    "x/~",
	} {
		if got := expandHome(in); got != filepath.FromSlash(want) {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

func TestAskSecret(t *testing.T) {
	asker := asktest.NewScripted("a", "b", " s ", " s ")
	got, err := AskSecret(t.Context(), asker, "NAME")
	if err != nil || got != " s " {
		t.Errorf("%q, %v", got, err)
	}
	for _, q := range asker.Asked() {
		if q.Kind != ask.Secret {
			t.Errorf("%+v is shown", q)
		}
	}
	if !strings.Contains(asker.Asked()[0].Text, "NAME") {
		t.Errorf("asked %q", asker.Asked()[0].Text)
	}
	if _, err := AskSecret(t.Context(), asktest.NewScripted(""), "NAME"); err == nil {
		t.Error("an empty secret is accepted")
	}
	if _, err := AskSecret(t.Context(), ask.Unavailable{}, "NAME"); !errors.Is(err, ask.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
