package vault

import (
	"strings"
	"testing"

	"loki/internal/base/fault"
)

func legacyFile() string {
	return "A: " + envelopeOf(password, "of A", "", false) + "\n" +
		"version: " + envelopeOf(password, "of version", oldestHead, false) + "\n"
}

func legacyTexts() map[string]string {
	return map[string]string{"A": "of A", "version": "of version"}
}

func TestLegacyIsRead(t *testing.T) {
	for _, file := range []string{"vault.yml", "old.yml"} {
		t.Run(file, func(t *testing.T) {
			f := newFixture(t)
			write(t, f.path(file), legacyFile())
			f.has(t, legacyTexts())
			if len(f.warnings) > 0 {
				t.Errorf("warnings %q", f.warnings)
			}
		})
	}
}

// TestLegacyOfOldProgram reads an envelope with the parameters older programs wrote.
func TestLegacyOfOldProgram(t *testing.T) {
	e, err := parseEnvelope("$VAULT;v1;argon2id;m=19456,t=2,p=1;salt=AAECAwQFBgcICQoLDA0ODw==;nonce=AAECAwQFBgcICQoLDA0ODxAREhMUFRYX;ct=AAAAAAAAAAAAAAAAAAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	if e.memory != 19456 || e.passes != 2 || e.lanes != 1 || len(e.salt) != 16 || e.head != "$VAULT;v1;argon2id;m=19456,t=2,p=1" {
		t.Errorf("%+v", e)
	}
}

func TestLegacyIsReplacedByTheFirstChange(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *fixture) error
		want   map[string]string
	}{
		{"add", func(t *testing.T, f *fixture) error { return f.Add(t.Context(), "b", "new") }, map[string]string{"b": "new", "A": "of A", "version": "of version"}},
		{"update", func(t *testing.T, f *fixture) error { return f.Update(t.Context(), "A", "new") }, map[string]string{"A": "new", "version": "of version"}},
	} {
		for _, file := range []string{"vault.yml", "old.yml"} {
			t.Run(tt.name+"_"+file, func(t *testing.T) {
				f := newFixture(t)
				write(t, f.path(file), legacyFile())
				if err := tt.change(t, f); err != nil {
					t.Fatal(err)
				}
				f.has(t, tt.want)
				if text := read(t, f.path("vault.yml")); strings.Contains(text, "$VAULT") {
					t.Errorf("the older form is still there:\n%s", text)
				}
				if file == "old.yml" && read(t, f.path("old.yml")) != legacyFile() {
					t.Error("the old file was changed")
				}
				kept, said := exists(f.path("vault.yml.v1")), len(f.warnings)
				if file == "old.yml" {
					if kept {
						t.Error("there is a copy of a file that was left alone")
					}
					return
				}
				if !kept || read(t, f.path("vault.yml.v1")) != legacyFile() || said != 1 || !strings.Contains(f.warnings[0], "vault.yml.v1") {
					t.Errorf("kept %v, warnings %q", kept, f.warnings)
				}
				if err := f.Update(t.Context(), "b", "newer"); err != nil || len(f.warnings) != 1 {
					t.Errorf("the second change: %v, warnings %q", err, f.warnings)
				}
			})
		}
	}
}

func TestLegacyDeleteNeedsNoPassword(t *testing.T) {
	f := newFixture(t)
	write(t, f.path("old.yml"), legacyFile())
	v := f.another()
	v.opts.Password = Password{}
	if err := v.Delete(t.Context(), "version"); err != nil {
		t.Fatal(err)
	}
	f.has(t, map[string]string{"A": "of A"})
}

func TestLegacyZeroKey(t *testing.T) {
	f := newFixture(t)
	write(t, f.path("vault.yml"), "A: "+envelopeOf(password, "of A", oldestHead, true)+"\n")
	if got, err := f.Get(t.Context(), "A"); err != nil || got != "of A" {
		t.Fatalf("%q, %v", got, err)
	}
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "loki --secret update A") {
		t.Errorf("warnings %q", f.warnings)
	}
	f.add(t, "b", "new")
	f.warnings = nil
	f.has(t, map[string]string{"A": "of A", "b": "new"})
	if len(f.warnings) > 0 {
		t.Errorf("after it was encrypted anew: %q", f.warnings)
	}
}

func TestLegacyDamage(t *testing.T) {
	good := envelopeOf(password, "of A", "", false)
	for _, tt := range []struct {
		name, stored string
		reason       error
	}{
		{"of_another_password", envelopeOf("other", "of A", "", false), ErrPassword},
		{"flipped", strings.Replace(good, "m=64", "m=65", 1), ErrPassword},
		{"no_envelope", "sesame", ErrDamaged},
		{"cut", good[:len(good)-9], ErrDamaged},
		{"fields_missing", good[:40], ErrDamaged},
		{"other_version", strings.Replace(good, "v1", "v9", 1), ErrDamaged},
		{"too_much_memory", strings.Replace(good, "m=64", "m=999999999", 1), ErrDamaged},
		{"no_passes", strings.Replace(good, "t=2", "t=0", 1), ErrDamaged},
		{"no_lanes", strings.Replace(good, "p=1", "p=0", 1), ErrDamaged},
		{"more_parameters", strings.Replace(good, "p=1", "p=1,x=2", 1), ErrDamaged},
		{"no_salt", strings.Replace(good, "salt=MDEyMzQ1Njc4OWFiY2RlZg==", "salt=", 1), ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			file := legacyFile() + "B: " + quoteJSON(tt.stored) + "\n"
			write(t, f.path("vault.yml"), file)
			_, err := f.Get(t.Context(), "B")
			isFault(t, err, tt.reason, fault.Config)
			isFault(t, f.Add(t.Context(), "c", "x"), tt.reason, fault.Config)
			if read(t, f.path("vault.yml")) != file {
				t.Error("the file was changed")
			}
			if err := f.Update(t.Context(), "B", "mended"); err != nil {
				t.Fatal(err)
			}
			want := legacyTexts()
			want["B"] = "mended"
			f.has(t, want)
		})
	}
}
