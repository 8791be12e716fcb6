package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/llm/event/redact"
)

func secrets(pairs ...string) *redact.Secrets {
	s := new(redact.Secrets)
	for i := 0; i < len(pairs); i += 2 {
		s.Add(pairs[i], pairs[i+1])
	}
	return s
}

const pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END KEY-----\n"

func TestText(t *testing.T) {
	t.Parallel()
	s := secrets("TOKEN", "tok-12345", "LONG", "tok-12345-and-more", "ODD", `pa"ss<w>\rd`, "TINY", "1", "DUMMY", "ollama", "a name", "blank-value", "PEM", pem,
		"SIX", "sixsix", "FIVE", "fives", "azAZ09_.:@-", "all-of-them", "{[", "edges-value", "LINES", "one\nsixteen-letters-\nfifteen-letters\nseventeen-letters",
		"END", `at-the-end\`, "BEGIN", `\backslash`, "NEAR", `x\backslash`, "HEX", "cdigits-1", "QUOTE", "one\n\"quoted-line-of-it", "PATH", "kok-12345")
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"plain", "a tok-12345 b tok-12345", "a ***TOKEN*** b ***TOKEN***"},
		{"longer_first", "tok-12345-and-more", "***LONG***"},
		{"json", `{"k": "pa\"ss<w>\\rd"}`, `{"k": "***ODD***"}`},
		{"json_html", `{"k": "pa\"ss\u003cw\u003e\\rd"}`, `{"k": "***ODD***"}`},
		{"json_in_json", `"{\"k\": \"pa\\\"ss<w>\\\\rd\"}"`, `"{\"k\": \"***ODD***\"}"`},
		{"query", "?k=pa%22ss%3Cw%3E%5Crd&x", "?k=***ODD***&x"},
		{"base64", "Basic dG9rLTEyMzQ1", "Basic ***TOKEN***"},
		{"too_short", "1 and 11", "1 and 11"},
		{"stand_in", "runs on ollama", "runs on ollama"},
		{"name_in_marks", "blank-value", "***a_name***"},
		{"whole_of_several_lines", pem, "***PEM***"},
		{"lines", "log: MIIEvQIBADANBgkqhkiG9w0B\nshort", "log: ***PEM***\nshort"},
		{"shortest", "a sixsix b", "a ***SIX*** b"},
		{"one_too_short", "a fives b", "a fives b"},
		{"letters_of_names", "all-of-them edges-value", "***azAZ09_.:@-*** ***__***"},
		{"short_lines", "one sixteen-letters- fifteen-letters seventeen-letters", "one ***LINES*** fifteen-letters ***LINES***"},
		{"mark_stays", "***TOKEN***", "***TOKEN***"},
		{"part_of_an_escape", `{"k": "a\tok-12345"}`, `{"k": "a***TOKEN***"}`},
		{"long_escape", `"\u003cdigits-1"`, `"***HEX***"`},
		{"no_escape", `C:\kok-12345`, `C:\***PATH***`},
		{"escaped_quote", `"say \"quoted-line-of-it"`, `"say ***QUOTE***"`},
		{"line_end_behind", `"at-the-end\n"`, `"***END***n"`},
		{"begins_with_a_backslash", `a \backslash`, "a ***BEGIN***"},
		{"second_is_a_backslash", `x\backslash`, "***NEAR***"},
		{"behind_a_backslash", `{"k": "a\\tok-12345"}`, `{"k": "a\\***TOKEN***"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, s.Text(tt.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := (*redact.Secrets)(nil).Text("x"); got != "x" {
		t.Errorf("no secrets: %q", got)
	}
}

// TestTextEncoded finds a secret in each encoding, alone, at each place of something longer, and in what holds that.
func TestTextEncoded(t *testing.T) {
	t.Parallel()
	encode := func(v string) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, secret := range []string{"sixsix", "tok-12345", "sk-proj-abc_DEF/ghi+jkl==", `pa"ss<w>\rd&x`, "passwört-ключ-🔑", "with blanks (and) 'more'!"} {
		s := secrets("S", secret)
		for name, text := range map[string]string{
			"json": encode(secret), "json_twice": encode(encode(secret)), "json_three_forms": encode(`{"a":` + encode(secret) + `}`),
			"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "lower": strings.ToLower(url.QueryEscape(strings.ToLower(secret))),
			"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64_url": base64.RawURLEncoding.EncodeToString([]byte(secret)),
			"python": strconv.QuoteToASCII(secret),
		} {
			if name == "lower" && secret != strings.ToLower(secret) || name == "python" && strings.Contains(secret, "🔑") {
				continue // these are no forms of it
			}
			if got := s.Text(text); !strings.Contains(got, "***S***") {
				t.Errorf("%q, %s: %q", secret, name, got)
			}
			if got := redact.Unseal(s.Seal(text), s.Lookup); got != text {
				t.Errorf("%q, %s: %q was unsealed as %q", secret, name, text, got)
			}
		}
		for _, before := range []string{"", "u", "me", "me:", "user:"} {
			for _, after := range []string{"", "x", "xy", "xyz"} {
				for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "url": base64.URLEncoding, "raw_url": base64.RawURLEncoding} {
					text := e.EncodeToString([]byte(before + secret + after))
					if got := s.Text("Basic " + text + "."); !strings.Contains(got, "***S***") || len(got) > len("Basic ***S***.")+len(text)-(len(secret)*8/6-1) {
						t.Errorf("%q between %q and %q in base64 (%s): %q", secret, before, after, name, got)
					}
				}
			}
		}
		for _, other := range []string{"", secret[:len(secret)-1], base64.StdEncoding.EncodeToString([]byte("something else"))} {
			if got := s.Text(other); got != other {
				t.Errorf("%q became %q", other, got)
			}
		}
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	s := secrets("TOKEN", "tok-12345", "ODD", `pa"ss<w>\rd`, "PEM", pem, "HEX", "41abcdef", "END", `at-the-end\`)
	for _, tt := range []struct{ name, text, sealed string }{
		{"plain", "a tok-12345 b", "a ***TOKEN*** b"},
		{"json", `{"k": "pa\"ss<w>\\rd"}`, `{"k": "***ODD/1***"}`},
		{"line", "MIIEvQIBADANBgkqhkiG9w0B", "***PEM/8***"},
		{"part_of_an_escape", `"\tok-12345"`, `"***TOKEN/0.5c.***"`},
		{"behind_a_backslash", `"\\tok-12345"`, `"\\***TOKEN***"`},
		{"part_of_a_character", `"\u0041abcdef"`, `"***HEX/0.5c753030.***"`},
		{"ends_in_an_escape", `"at-the-end\" x"`, `"***END/0..22*** x"`},
		{"stars_around", "**tok-12345*", "*****TOKEN****"},
		{"looks_like_a_mark", "***TOKEN*** and ***IMPORTANT***", "***!TOKEN*** and ***!IMPORTANT***"},
		{"looks_escaped", "***!TOKEN***", "***!!TOKEN***"},
		{"stars", "*** *** ** *", "*** *** ** *"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sealed := s.Seal(tt.text)
			if diff := cmp.Diff(tt.sealed, sealed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.text, redact.Unseal(sealed, s.Lookup)); diff != "" {
				t.Errorf("unsealed (-want +got):\n%s", diff)
			}
		})
	}
	// A number that no form of the secret has.
	for _, mark := range []string{"***TOKEN/99***", "***TOKEN/99999999999999999999***"} {
		if got := redact.Unseal(mark, s.Lookup); got != mark {
			t.Errorf("%s became %q", mark, got)
		}
	}
	// Nobody knows the secret any more, or it is not asked for.
	for _, look := range []func(string) (string, bool){nil, new(redact.Secrets).Lookup} {
		if got := redact.Unseal("***TOKEN*** ***!OTHER***", look); got != "***TOKEN*** ***OTHER***" {
			t.Errorf("got %q", got)
		}
	}
}

func TestSameName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, marked string
		want         bool
	}{{"a name", "a_name", true}, {"TOKEN", "TOKEN", true}, {"TOKEN", "token", false}, {"a name", "a name", false}} {
		if got := redact.SameName(tt.name, tt.marked); got != tt.want {
			t.Errorf("%q and %q: %v", tt.name, tt.marked, got)
		}
	}
}

// A text that a model wrote never becomes a secret, whatever stands beside it.
func TestSealIsNotForged(t *testing.T) {
	t.Parallel()
	writer, reader := secrets("B", "bbbbbb-secret"), secrets("A", "aaaaaa-secret", "B", "bbbbbb-secret")
	for _, text := range []string{"***A***", "***Abbbbbb-secret", "bbbbbb-secretA***", "***Abbbbbb-secretA***", "***!A***", "***A/1***", "****A****"} {
		if got := redact.Unseal(writer.Seal(text), reader.Lookup); strings.Contains(got, "aaaaaa") || strings.Count(got, "bbbbbb-secret") != strings.Count(text, "bbbbbb-secret") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzSeal(f *testing.F) {
	f.Add("a tok-12345 b", "x")
	f.Add("***TOKEN***tok-12345***", "***!")
	f.Add(`{"k":"pa\"ss<w>\\rd"}`, "/1***")
	f.Add("***Atok-12345", "tok-12345B***")
	f.Add("\tok-12345", "0.\x80\x80 *")
	f.Add("\u1041abcdef", `at-the-end"`)
	s := secrets("TOKEN", "tok-12345", "ODD", `pa"ss<w>\rd`, "HEX", "41abcdef", "END", `at-the-end\`)
	f.Fuzz(func(t *testing.T, a, b string) {
		text := a + b
		sealed := s.Seal(text)
		if strings.Contains(sealed, "tok-12345") || strings.Contains(sealed, `pa"ss<w>\rd`) {
			t.Errorf("%q has the secret", sealed)
		}
		if got := redact.Unseal(sealed, s.Lookup); got != text && got != strings.ReplaceAll(text, "***", "* * *") && !strings.Contains(text, "***") {
			t.Errorf("%q was sealed as %q and came back as %q", text, sealed, got)
		}
		shown := s.Text(text)
		if strings.Contains(shown, "tok-12345") {
			t.Errorf("%q shows the secret", shown)
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, changed := range []string{s.Seal(string(quoted)), s.Text(string(quoted))} {
			if !json.Valid([]byte(changed)) {
				t.Errorf("%s is not JSON any more: %s", quoted, changed)
			}
		}
	})
}
