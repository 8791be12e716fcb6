package vault

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
)

// FuzzParse checks that what can be read is written back as the same.
func FuzzParse(f *testing.F) {
	k := newKey()
	sealed, err := k.seal(password, cheap)
	if err != nil {
		f.Fatal(err)
	}
	d := document{key: sealed, secrets: map[string]string{"a": k.encrypt("a", "x"), `b"\: #`: k.encrypt("b", "")}}
	for _, seed := range []string{
		string(d.text()), legacyFile(), "", "version: 2\nkey: |\n  x\nsecrets: {a: b}\n", "version: 3\n", "version: '2'\n", "~: a\n\"\\u0007\": b\n", "- a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		d, err := parse("vault.yml", []byte(src))
		if err != nil {
			if !errors.Is(err, ErrUnreadable) || fault.CodeOf(err) != fault.Config {
				t.Fatalf("error %v", err)
			}
			return
		}
		text := d.text()
		again, err := parse("vault.yml", text)
		if err != nil {
			// Only what no program writes: names that YAML cannot hold, or a key that is no text.
			if slices.ContainsFunc(append(slices.Collect(maps.Keys(d.secrets)), d.key), func(s string) bool { return checkName(strings.ReplaceAll(s, "\n", "")) != nil }) {
				return
			}
			t.Fatalf("%v\n%s", err, text)
		}
		if !maps.Equal(d.secrets, again.secrets) || d.legacy != again.legacy && len(d.secrets) > 0 {
			t.Fatalf("%+v became %+v", d, again)
		}
	})
}

// FuzzEnvelope checks that an envelope that can be read asks for no more than it may, and
// that nothing but the true one opens.
func FuzzEnvelope(f *testing.F) {
	good := envelopeOf(password, "text", "", false)
	for _, seed := range []string{good, good[:60], strings.Replace(good, "p=1", "p=01", 1), "", "$VAULT;v1;argon2id;m=1,t=1,p=1;salt=;nonce=;ct="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stored string) {
		e, err := parseEnvelope(stored)
		if err != nil {
			return
		}
		if e.memory > mostMemory || e.passes < 1 || e.passes > mostPasses || e.lanes < 1 || e.lanes > mostLanes {
			t.Fatalf("%+v", e)
		}
		if e.memory > 64 || e.passes > 2 {
			return // it would take long
		}
		if text, protected, err := e.open("another password"); err == nil && protected {
			t.Fatalf("%q opens with any password: %q", stored, text)
		}
	})
}

// FuzzDecrypt checks that nothing but what was encrypted decrypts.
func FuzzDecrypt(f *testing.F) {
	k := new(key)
	f.Add(k.encrypt("b", "x"))
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, stored string) {
		if text, err := k.decrypt("a", stored); err == nil {
			t.Fatalf("%q decrypts: %q", stored, text)
		}
	})
}

// FuzzSplitCommand checks that the words of a command can be quoted and split again.
func FuzzSplitCommand(f *testing.F) {
	for _, seed := range []string{"a b", `'a' "b\" c"`, `C:\x y\ z`, `"`, `\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := splitCommand(line)
		if err != nil {
			return
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
		}
		again, err := splitCommand(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(words, again) {
			t.Fatalf("%q became %q, %v", words, again, err)
		}
	})
}
