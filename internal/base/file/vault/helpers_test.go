package vault

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"loki/internal/base/fault"
)

const password = "correct horse battery"

// cheap makes scrypt fast; what it costs is no matter of these tests.
const cheap = 2

// fixture is a vault in a directory of its own with a password file.
type fixture struct {
	*Vault
	dir      string
	warnings []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir()}
	write(t, f.path("password"), password+"\n")
	f.Vault = f.another()
	return f
}

// another returns another vault of the same files, as another process would have it.
func (f *fixture) another() *Vault {
	v := New(Options{
		File:       f.path("vault.yml"),
		LegacyFile: f.path("old.yml"),
		Password:   Password{DefaultFile: f.path("password")},
		Warn:       func(text string) { f.warnings = append(f.warnings, text) },
	})
	v.workFactor = cheap
	return v
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fixture) add(t *testing.T, name, text string) {
	t.Helper()
	if err := f.Add(t.Context(), name, text); err != nil {
		t.Fatal(err)
	}
}

// has tells of differences between what the vault holds and want, read by another process.
func (f *fixture) has(t *testing.T, want map[string]string) {
	t.Helper()
	v := f.another()
	names, err := v.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		got, err := v.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := want[name]; !ok || got != text {
			t.Errorf("secret %q is %q, want %q (%v)", name, got, text, ok)
		}
	}
	if len(names) != len(want) || !slices.IsSorted(names) {
		t.Errorf("the names are %q", names)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// isFault checks an error: its reason and code, that it has a hint, and that it is silent
// about what it must not tell.
func isFault(t *testing.T, err, reason error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, reason) || fault.CodeOf(err) != code {
		t.Errorf("error %v of code %q, want %v of code %q", err, fault.CodeOf(err), reason, code)
		return
	}
	told := err.Error() + fault.HintOf(err)
	if strings.Contains(told, password) || strings.Contains(told, "sesame") {
		t.Errorf("it tells a secret: %s", told)
	}
	if fault.HintOf(err) == "" {
		t.Errorf("no hint: %v", err)
	}
}

// envelopeOf makes an envelope as older versions did, with any of their keys and
// associated data.
func envelopeOf(password, text, data string, zeroKey bool) string {
	const head = "$VAULT;v1;argon2id;m=64,t=2,p=1"
	salt := []byte("0123456789abcdef")
	nonce := []byte("0123456789abcdefghijklmn")
	key := argon2.IDKey([]byte(password), salt, 2, 64, 1, 32)
	if zeroKey {
		clear(key)
	}
	if data == "" {
		data = head
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		panic(err)
	}
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s;salt=%s;nonce=%s;ct=%s", head, b64(salt), b64(nonce), b64(aead.Seal(nil, nonce, []byte(text), []byte(data))))
}
