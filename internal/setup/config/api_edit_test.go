package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/service/auth"
)

// newKey returns a key of alice.
func newKey(t testing.TB, id string) auth.Key {
	t.Helper()
	h, err := auth.ParseHash(hash)
	if err != nil {
		t.Fatal(err)
	}
	return auth.Key{Subject: "alice", ID: id, Hash: h, Scopes: []auth.Scope{auth.Read, auth.WriteRuns}}
}

// item is what is added for it, at the beginning of lines.
const item = `- subject: alice
  key_id: "0a"
  key_hash: "` + hash + `"
  scopes: ["read", "write:runs"]
`

func at(indent int, text string) string {
	return strings.Repeat(" ", indent) + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+strings.Repeat(" ", indent)) + "\n"
}

func TestAddAndRemoveKey(t *testing.T) {
	const old = `{subject: bob, key_id: b, key_hash: "` + hash + `", scopes: []}`
	for _, tt := range []struct {
		name, before, after string
		removed             string // "" if it is before
	}{
		{"empty", "", "api:\n  auth:\n    mode: static_keys\n    keys:\n" + at(6, item), "api:\n  auth:\n    mode: static_keys\n    keys: []\n"},
		{
			"comments", "# mine\nmodel: a:b # the best\n\n# the end", "# mine\nmodel: a:b # the best\n\n# the end\napi:\n  auth:\n    mode: static_keys\n    keys:\n" + at(6, item),
			"# mine\nmodel: a:b # the best\n\n# the end\napi:\n  auth:\n    mode: static_keys\n    keys: []\n",
		},
		{
			"api", "api: # serve\n    # here\n    listen_addr: 127.0.0.1:0\nmodel: a:b\n", "api: # serve\n    auth:\n      mode: static_keys\n      keys:\n" + at(8, item) + "    # here\n    listen_addr: 127.0.0.1:0\nmodel: a:b\n",
			"api: # serve\n    auth:\n      mode: static_keys\n      keys: []\n    # here\n    listen_addr: 127.0.0.1:0\nmodel: a:b\n",
		},
		{"api_null", "api:\n# x\nmodel: a:b\n", "api:\n  auth:\n    mode: static_keys\n    keys:\n" + at(6, item) + "# x\nmodel: a:b\n", "api:\n  auth:\n    mode: static_keys\n    keys: []\n# x\nmodel: a:b\n"},
		{"auth", "api:\n auth:\n  mode: StaticKeys\n", "api:\n auth:\n  keys:\n" + at(4, item) + "  mode: StaticKeys\n", "api:\n auth:\n  keys: []\n  mode: StaticKeys\n"},
		{"tokens", "api:\n auth:\n  jwt: {issuer: i, audience: a, jwks_url: 'https://id.example.com'}\n", "api:\n auth:\n  keys:\n" + at(4, item) + "  jwt: {issuer: i, audience: a, jwks_url: 'https://id.example.com'}\n", "api:\n auth:\n  keys: []\n  jwt: {issuer: i, audience: a, jwks_url: 'https://id.example.com'}\n"},
		{"keys_null", "api:\n  auth:\n    keys: # of all\n", "api:\n  auth:\n    keys: # of all\n" + at(6, item), "api:\n  auth:\n    keys: [] # of all\n"},
		{"keys_empty", "api:\n  auth:\n    keys: [] # none\n  force_https: true\n", "api:\n  auth:\n    keys: # none\n" + at(6, item) + "  force_https: true\n", ""},
		{
			"keys", "api:\n  auth:\n    keys:\n      - " + old + " # laptop\n\n      # more to come\n  force_https: true\n",
			"api:\n  auth:\n    keys:\n      - " + old + " # laptop\n" + at(6, item) + "\n      # more to come\n  force_https: true\n", "",
		},
		{
			"keys_at_the_margin", "api:\n  auth:\n    keys:\n    - subject: bob\n# odd\n      key_hash: >-\n        " + hash + "\n\n      scopes:\n        - read\n  cors:\n    allow_credentials: false",
			"api:\n  auth:\n    keys:\n    - subject: bob\n# odd\n      key_hash: >-\n        " + hash + "\n\n      scopes:\n        - read\n" + at(4, item) + "  cors:\n    allow_credentials: false", "",
		},
		{"windows", "model: a:b\r\napi:\r\n  auth:\r\n    keys: []\r\n", "model: a:b\r\napi:\r\n  auth:\r\n    keys:\r\n" + strings.ReplaceAll(at(6, item), "\n", "\r\n"), ""},
		{"no_final_newline", "api:\n  auth:\n    keys:\n      - " + old, "api:\n  auth:\n    keys:\n      - " + old + "\n" + at(6, item), "api:\n  auth:\n    keys:\n      - " + old + "\n"},
		{"text_at_the_end", "left_prompt: |+\n  >\n\n", "left_prompt: |+\n  >\n\napi:\n  auth:\n    mode: static_keys\n    keys:\n" + at(6, item), "left_prompt: |+\n  >\n\napi:\n  auth:\n    mode: static_keys\n    keys: []\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if tt.before != "" {
				write(t, file, tt.before)
			}
			step := func(what string, err error, want string) {
				t.Helper()
				got, readErr := os.ReadFile(file)
				if err := errors.Join(err, readErr); err != nil {
					t.Fatalf("%s: %v\nhint: %s", what, err, fault.HintOf(err))
				}
				if string(got) != want {
					t.Errorf("%s: the file is\n%s\nwant\n%s", what, got, want)
				}
			}
			mode, err := AddKey(t.Context(), file, newKey(t, "0a"), "the secret")
			step("added", err, tt.after)
			if tokens := strings.Contains(tt.before, "jwt:"); (mode == AuthJWT) != tokens || (mode == AuthStaticKeys) == tokens {
				t.Errorf("the mode is %s", mode)
			}
			if tt.removed == "" {
				tt.removed = tt.before
			}
			step("removed", RemoveKey(t.Context(), file, "0a"), tt.removed)
			if err := RemoveKey(t.Context(), file, "0a"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("removed again: %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
				t.Errorf("left are %q, %v", left, err)
			}
		})
	}
}

// TestAddKeyByHand has files that cannot be edited line by line.
func TestAddKeyByHand(t *testing.T) {
	for _, before := range []string{
		"{model: a:b}\n", "api: {}\n", "api: {auth: {mode: static_keys}}\n", "api: ~\n", "api:\n  auth:\n    keys: [{subject: a, key_hash: \"" + hash + "\", scopes: []}]\n",
		"api:\n  auth:\n    keys: [\n    ]\n", "api: &a\n  auth: *b\n", "model: a:b\n...\n",
	} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		write(t, file, before)
		_, err := AddKey(t.Context(), file, newKey(t, "0a"), "the secret")
		after, _ := os.ReadFile(file)
		if fault.CodeOf(err) != fault.Config || string(after) != before {
			t.Errorf("%q: error %v, and now it is %q", before, err, after)
		}
		if !errors.Is(err, errForm) {
			continue
		}
		// Who does what the hint says has a key that opens the server.
		_, lines, _ := strings.Cut(fault.HintOf(err), "\n")
		lines, secret, _ := strings.Cut(lines, "\nthe key of alice, which is not shown again: ")
		f, err := newSheet(file, []byte("api:\n  auth:\n"+at(4, lines)))
		if err != nil || len(f.auth.Keys) != 1 || f.auth.Keys[0].ID != "0a" || f.auth.Mode != AuthStaticKeys || secret != "the secret" {
			t.Errorf("%q: hint %q: %v", before, fault.HintOf(err), err)
		}
	}
}

func FuzzAddKey(f *testing.F) {
	for _, text := range []string{
		"", "model: a", "api:\n  auth:\n    keys:\n    - subject: a\n      key_hash: \"" + hash + "\"\n      scopes: []\n", "api:\n auth:\n  keys: []", "# x\napi: # y\n  cors: {}\n", "a: |\n x\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		write(t, file, text)
		key := newKey(t, "0a")
		if _, err := AddKey(t.Context(), file, key, ""); err != nil {
			return
		}
		added, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The lines that were there are there, in their order.
		rest := slices.Collect(strings.Lines(string(added)))
		for line := range strings.Lines(text) {
			i := slices.IndexFunc(rest, func(l string) bool { return strings.TrimRight(l, "\r\n") == strings.TrimRight(line, "\r\n") })
			if i < 0 && !strings.Contains(line, "keys") {
				t.Fatalf("the line %q is lost in\n%s", line, added)
			}
			rest = rest[i+1:]
		}
		if err := RemoveKey(t.Context(), file, key.ID); err != nil && !errors.Is(err, errForm) {
			t.Errorf("%v in\n%s", err, added)
		}
	})
}
