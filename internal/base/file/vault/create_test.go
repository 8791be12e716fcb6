package vault

import (
	"errors"
	"os"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
)

func TestCreatePassword(t *testing.T) {
	withSecrets := func(t *testing.T, f *fixture) {
		write(t, f.path("password"), password)
		if err := f.another().Add(t.Context(), "a", "x"); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(f.path("password")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name    string
		prepare func(*testing.T, *fixture)
		answers []string
		file    string // of the password, in the directory
		want    string // the password; empty for a random one
		wantErr error
	}{
		{name: "new", file: "password"},
		{
			name: "empty_file", file: "password",
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("password"), "\n") },
		},
		{
			name: "there_is_one", file: "password", want: password,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("password"), password) },
		},
		{
			name: "configured_file", file: "configured",
			prepare: func(_ *testing.T, f *fixture) { f.opts.Password.File = f.path("configured") },
		},
		{name: "of_a_vault_with_secrets", answers: []string{"not the one", password}, file: "password", want: password, prepare: withSecrets},
		{
			name: "of_an_old_vault", answers: []string{"", "not the one", password}, file: "password", want: password,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("old.yml"), legacyFile()) },
		},
		{
			name: "of_an_old_vault_never_right", answers: []string{"1", "2", "3"}, wantErr: ErrPassword,
			prepare: func(t *testing.T, f *fixture) { write(t, f.path("old.yml"), legacyFile()) },
		},
		{
			name: "unreadable_vault", wantErr: ErrUnreadable,
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
			asker := asktest.NewScripted(tt.answers...)
			place, err := f.CreatePassword(t.Context(), asker, false)
			if len(asker.Asked()) != len(tt.answers) {
				t.Errorf("%d questions", len(asker.Asked()))
			}
			for _, q := range asker.Asked() {
				if q.Kind != ask.Secret {
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
			if err != nil || place != (Place{File: f.path(tt.file)}) || place.String() != place.File {
				t.Fatalf("place %q, %v", place, err)
			}
			if got, err := readPassword(place.File); err != nil || tt.want != "" && got != tt.want || len(got) < MinPassword {
				t.Errorf("the file holds %q, %v", got, err) // which fails where others can read it
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

func TestCreatePasswordInTheKeychain(t *testing.T) {
	f := newFixture(t)
	c := new(chain)
	f.opts.Password = Password{DefaultFile: f.path("none"), UseKeychain: true, Keychain: c}
	place, err := f.CreatePassword(t.Context(), ask.Unavailable{}, false)
	if err != nil || place != (Place{Keychain: true}) || len(c.password) < MinPassword {
		t.Fatalf("place %q, keychain %q, %v", place, c.password, err)
	}
	f.add(t, "a", "x")
	right := c.password

	c.password, c.err = "", errors.New("no session bus")
	v := f.another()
	v.opts.Password = f.opts.Password
	_, err = v.CreatePassword(t.Context(), asktest.NewScripted(right), false)
	if err == nil || !strings.Contains(err.Error(), "no session bus") || fault.HintOf(err) == "" {
		t.Errorf("error %v", err)
	}
}

// TestCreatePasswordOffersTheKeychain: a keychain that is not configured is used if it can be, and what another vault has there is kept.
func TestCreatePasswordOffersTheKeychain(t *testing.T) {
	for name, tt := range map[string]struct {
		chain    chain
		keychain bool // the password is in it
		kept     string
	}{
		"empty":     {keychain: true},
		"of_others": {chain: chain{password: "of another vault"}, keychain: true, kept: "of another vault"},
		"none":      {chain: chain{err: errors.New("no session bus")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := tt.chain
			f.opts.Password = Password{DefaultFile: f.path("fresh"), Keychain: &c}
			place, err := f.CreatePassword(t.Context(), ask.Unavailable{}, true)
			if want := (Place{Keychain: tt.keychain, File: f.path("fresh")}); err != nil || place.Keychain != tt.keychain || !tt.keychain && place != want {
				t.Fatalf("%+v, %v", place, err)
			}
			if tt.kept != "" && c.password != tt.kept {
				t.Errorf("the keychain has %q", c.password)
			}
			f.add(t, "a", "x")
		})
	}
}

func TestCreatePasswordOfACommand(t *testing.T) {
	f := newFixture(t)
	f.opts.Password = Password{Command: "no-such-program-anywhere", DefaultFile: f.path("password")}
	if _, err := f.CreatePassword(t.Context(), ask.Unavailable{}, false); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error %v", err)
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
