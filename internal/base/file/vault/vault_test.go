package vault

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"loki/internal/base/fault"
)

func TestSecretsAreKept(t *testing.T) {
	f := newFixture(t)
	f.has(t, map[string]string{})
	want := map[string]string{
		"OPENAI_API_KEY": "open sesame",
		"empty":          "",
		"two words: é":   "line\n{{NAME}}\x00\xff",
		"null":           "n",
		"version":        "2",
		`"quoted" #\`:    "q",
	}
	for name, text := range want {
		f.add(t, name, text)
	}
	f.has(t, want)

	if err := f.Update(t.Context(), "OPENAI_API_KEY", "other"); err != nil {
		t.Fatal(err)
	}
	if err := f.Update(t.Context(), "new", "by update"); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
	want["OPENAI_API_KEY"], want["new"] = "other", "by update"
	delete(want, "empty")
	f.has(t, want)

	text := read(t, f.path("vault.yml"))
	for _, secret := range []string{"sesame", "other", "by update", password} {
		if strings.Contains(text, secret) {
			t.Errorf("the file tells %q", secret)
		}
	}
	if info, err := os.Stat(f.path("vault.yml")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(f.path("vault.yml.lock")); !errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows" {
		t.Errorf("the lock is left: %v", err)
	}
}

func TestOneChangeTouchesOneEntry(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "1")
	before := read(t, f.path("vault.yml"))
	f.add(t, "b", "2")
	if after := read(t, f.path("vault.yml")); !strings.HasPrefix(after, before) || strings.Count(after, "\n") != strings.Count(before, "\n")+1 {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestNothingIsDoneBeforeItIsNeeded(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "sesame")
	if err := os.Remove(f.path("password")); err != nil {
		t.Fatal(err)
	}
	v := f.another()
	if names, err := v.List(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
	_, err := v.Get(t.Context(), "b")
	isFault(t, err, ErrNotFound, fault.NotFound)
	_, err = v.Get(t.Context(), "a")
	isFault(t, err, ErrNoPassword, fault.Config)
	err = v.Add(t.Context(), "b", "sesame")
	isFault(t, err, ErrNoPassword, fault.Config)
	if err := v.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	write(t, f.path("password"), password)
	f.has(t, map[string]string{})
}

func TestOpeningIsOneDerivation(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "1")
	f.add(t, "b", "2")
	v := f.another()
	if _, err := v.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	opened := v.opened
	if err := os.Remove(f.path("password")); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Get(t.Context(), "b"); err != nil || got != "2" {
		t.Errorf("%q, %v", got, err)
	}
	if err := v.Add(t.Context(), "c", "3"); err != nil {
		t.Error(err)
	}
	if v.opened != opened {
		t.Error("it was opened again")
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(context.Context, *fixture) error
		reason error
		code   fault.Code
		hint   string
	}{
		{"get_missing", func(ctx context.Context, f *fixture) error { _, err := f.Get(ctx, "b c"); return err }, ErrNotFound, fault.NotFound, "loki --secret add 'b c'"},
		{"delete_missing", func(ctx context.Context, f *fixture) error { return f.Delete(ctx, "A") }, ErrNotFound, fault.NotFound, "list the secrets: loki --list secrets"},
		{"add_existing", func(ctx context.Context, f *fixture) error { return f.Add(ctx, "a", "x") }, ErrExists, fault.Usage, "loki --secret update a"},
		{"no_name", func(ctx context.Context, f *fixture) error { return f.Add(ctx, "", "x") }, ErrName, fault.Usage, ""},
		{"blank", func(ctx context.Context, f *fixture) error { return f.Update(ctx, " a", "x") }, ErrName, fault.Usage, ""},
		{"line", func(ctx context.Context, f *fixture) error { return f.Add(ctx, "a\nb", "x") }, ErrName, fault.Usage, ""},
		{"braces", func(ctx context.Context, f *fixture) error { return f.Add(ctx, "{{A}}", "x") }, ErrName, fault.Usage, ""},
		{"brace", func(ctx context.Context, f *fixture) error { return f.Add(ctx, "A}", "x") }, ErrName, fault.Usage, ""},
		{"long", func(ctx context.Context, f *fixture) error { return f.Add(ctx, strings.Repeat("x", 257), "x") }, ErrName, fault.Usage, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.add(t, "a", "sesame")
			before := read(t, f.path("vault.yml"))
			err := tt.do(t.Context(), f)
			isFault(t, err, tt.reason, tt.code)
			if hint := fault.HintOf(err); tt.hint != "" && hint != tt.hint {
				t.Errorf("hint %q", hint)
			}
			if read(t, f.path("vault.yml")) != before {
				t.Error("the file was changed")
			}
		})
	}
}

// entry returns the stored form of a secret.
func entry(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  "` + name + `": "(.*)"$`).FindStringSubmatch(file)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, file)
	}
	return m[1]
}

func TestDamage(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "open sesame")
	f.add(t, "b", "close sesame")
	whole := read(t, f.path("vault.yml"))
	a, b := entry(t, whole, "a"), entry(t, whole, "b")
	other := newFixture(t)
	other.add(t, "a", "sesame of another vault")
	foreign := entry(t, read(t, other.path("vault.yml")), "a")
	flipped := "A"
	if a[40] == 'A' {
		flipped = "B"
	}
	replace := func(old, new string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, new, 1) }
	}
	body := regexp.MustCompile(`(?m)^  [A-Za-z0-9+/]{20,}$`)
	for _, tt := range []struct {
		name   string
		change func(string) string
		reason error
	}{
		{"swapped", func(s string) string { return strings.NewReplacer(a, b, b, a).Replace(s) }, ErrSwapped},
		{"copied", replace(a, b), ErrSwapped},
		{"flipped", replace(a, a[:40]+flipped+a[41:]), ErrDamaged},
		{"of_another_vault", replace(a, foreign), ErrDamaged},
		{"cut", replace(a, a[:40]), ErrDamaged},
		{"cut_within_base64", replace(a, a[:41]), ErrDamaged},
		{"emptied", replace(a, ""), ErrDamaged},
		{"older_form_smuggled_in", replace(a, envelopeOf("", "forged", oldestHead, true)), ErrDamaged},
		{"key_removed", func(s string) string { return s[:strings.Index(s, "key:")] + s[strings.Index(s, "secrets:"):] }, ErrUnreadable},
		{"key_cut", func(s string) string {
			return strings.Replace(s, "  -----END AGE ENCRYPTED FILE-----\n", "", 1)
		}, ErrDamaged},
		{"key_line_lost", func(s string) string { return strings.Replace(s, body.FindString(s)+"\n", "", 1) }, ErrDamaged},
		{"key_is_something_else", func(s string) string {
			return s[:strings.Index(s, "key:")] + "key: hello\n" + s[strings.Index(s, "secrets:"):]
		}, ErrDamaged},
		{"cut_to_half_a_line", func(s string) string { return s[:strings.Index(s, "secrets:")+4] }, ErrUnreadable},
		{"no_yaml", func(string) string { return "a: b: [" }, ErrUnreadable},
		{"no_mapping", func(string) string { return "- sesame" }, ErrUnreadable},
		{"no_strings", func(string) string { return "a: {b: c}" }, ErrUnreadable},
		{"secret_is_a_list", replace(`"a": "`+a+`"`, `"a": [sesame]`), ErrUnreadable},
		{"unknown_key", func(s string) string { return s + "more: x\n" }, ErrUnreadable},
		{"newer", replace("version: 2", "version: 3"), ErrUnreadable},
		{"twice", func(s string) string { return s + "  \"b\": \"" + b + "\"\n" }, ErrUnreadable},
		{"binary", func(string) string { return "\x00\xff\x01" }, ErrUnreadable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			damaged := tt.change(whole)
			if damaged == whole {
				t.Fatal("nothing was changed")
			}
			write(t, f.path("vault.yml"), damaged)
			v := f.another()
			_, err := v.Get(t.Context(), "a")
			isFault(t, err, tt.reason, fault.Config)
			for _, other := range []error{ErrSwapped, ErrDamaged, ErrUnreadable, ErrPassword} {
				if !errors.Is(tt.reason, other) && errors.Is(err, other) {
					t.Errorf("it is also %v", other)
				}
			}
			if tt.reason == ErrUnreadable {
				err := v.Update(t.Context(), "a", "x")
				isFault(t, err, ErrUnreadable, fault.Config)
				err = v.Delete(t.Context(), "a")
				isFault(t, err, ErrUnreadable, fault.Config)
				_, err = v.List(t.Context())
				isFault(t, err, ErrUnreadable, fault.Config)
				if read(t, f.path("vault.yml")) != damaged {
					t.Error("the file was changed")
				}
				return
			}
			if strings.HasPrefix(tt.name, "key") {
				err := v.Update(t.Context(), "a", "x")
				isFault(t, err, tt.reason, fault.Config)
				return
			}
			// The rest is as it was, and the damage can be mended.
			if got, err := v.Get(t.Context(), "b"); tt.name != "swapped" && (err != nil || got != "close sesame") {
				t.Errorf("the other secret: %q, %v", got, err)
			}
			if err := v.Update(t.Context(), "a", "new"); err != nil {
				t.Error(err)
			}
			if got, err := v.Get(t.Context(), "a"); err != nil || got != "new" {
				t.Errorf("mended: %q, %v", got, err)
			}
		})
	}
}

func TestWrongPassword(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "sesame")
	before := read(t, f.path("vault.yml"))
	write(t, f.path("password"), "sesame sesame")
	v := f.another()
	_, err := v.Get(t.Context(), "a")
	isFault(t, err, ErrPassword, fault.Config)
	if !strings.Contains(fault.HintOf(err), f.path("password")) {
		t.Errorf("hint %q", fault.HintOf(err))
	}
	isFault(t, v.Add(t.Context(), "b", "x"), ErrPassword, fault.Config)
	isFault(t, v.Update(t.Context(), "a", "x"), ErrPassword, fault.Config)
	if read(t, f.path("vault.yml")) != before {
		t.Error("the file was changed")
	}
}

// TestKeyIsAnAgeFile opens a key without this package.
func TestKeyIsAnAgeFile(t *testing.T) {
	v := New(Options{})
	sealed, err := newKey().seal(password, v.workFactor)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openKey(sealed, password); err != nil {
		t.Errorf("at the work factor in use: %v", err)
	}
	if _, err := openKey(sealed, "x"+password); !errors.Is(err, ErrPassword) {
		t.Errorf("error %v", err)
	}
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), identity(t))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(r); err != nil || len(plain) != 32 {
		t.Errorf("%d bytes, %v", len(plain), err)
	}
}

func identity(t *testing.T) age.Identity {
	t.Helper()
	i, err := age.NewScryptIdentity(password)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestFileCannotAskForAnyAmountOfWork(t *testing.T) {
	sealed, err := newKey().seal(password, cheap)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(armor.NewReader(strings.NewReader(sealed)))
	if err != nil {
		t.Fatal(err)
	}
	greedy := regexp.MustCompile(`(-> scrypt \S+) 2\n`).ReplaceAll(plain, []byte("$1 30\n"))
	if len(greedy) == len(plain) {
		t.Fatal("nothing was changed")
	}
	var b strings.Builder
	w := armor.NewWriter(&b)
	if _, err := w.Write(greedy); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openKey(b.String(), password); err == nil || errors.Is(err, ErrPassword) {
		t.Errorf("error %v", err)
	}
}

func TestProcessesDoNotLoseEachOthersSecrets(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	want := make(map[string]string)
	for _, name := range strings.Split("abcdefgh", "") {
		want[name] = "of " + name
		v := f.another()
		wg.Go(func() {
			if err := v.Add(t.Context(), name, "of "+name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.has(t, want)
}

func TestConcurrentGets(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "1")
	v := f.another()
	get := v.Lookup(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := get("a"); err != nil || got != "1" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	wg.Wait()
}

func TestCanceled(t *testing.T) {
	f := newFixture(t)
	f.add(t, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Get(ctx, "a")
	_, listErr := f.List(ctx)
	for _, err := range []error{err, listErr, f.Add(ctx, "b", "x"), f.Delete(ctx, "a")} {
		if fault.CodeOf(err) != fault.Canceled {
			t.Errorf("error %v", err)
		}
	}
	f.has(t, map[string]string{"a": "1"})
}

func TestUnreadableByTheSystem(t *testing.T) {
	f := newFixture(t)
	if err := os.Mkdir(f.path("vault.yml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context(), "a"); fault.CodeOf(err) != fault.Failure || !strings.Contains(err.Error(), "vault.yml") {
		t.Errorf("error %v", err)
	}
}
