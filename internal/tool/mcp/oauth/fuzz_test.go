package oauth

import (
	"strings"
	"testing"
)

// FuzzParsePasted checks that what is taken for a code and a state is in what was pasted.
func FuzzParsePasted(f *testing.F) {
	for _, seed := range []string{"code#state", " code#state\n", "https://example.com/cb?code=a%20b&state=c#x", "code", "#", "://#", "a#b#c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parsePasted(text)
		code, state := q.Get("code"), q.Get("state")
		if err != nil {
			if code != "" || state != "" {
				t.Fatalf("%q gives %q, %q and %v", text, code, state, err)
			}
			return
		}
		if code == "" && !q.Has("code") && !q.Has("error") || code != "" && !strings.Contains(text, "code=") && strings.TrimSpace(text) != code+"#"+state {
			t.Fatalf("%q gives %q, %q", text, code, state)
		}
	})
}
