package logging

import "testing"

// FuzzMayMatch: no text with a credential is skipped.
func FuzzMayMatch(f *testing.F) {
	for _, text := range []string{
		"Bearer abcdef", "x?token=abcdefgh", `{"api_key":"x"}`, "sk-0123456789abcdef", "a.pk_0123456789abcdef", "ghp_0123456789abcdef", "GHO-0123456789abcdef", "xoxb-0123456789abcdef",
		"\u017fk-0123456789abcdef", "s\u212a_0123456789abcdef", "AKIA0123456789AB", "aiza0123456789abcdefghij", "loki_0123456789ab_secret", "550e8400-e29b-41d4-a716-446655440000",
	} {
		f.Add(text)
	}
	shapes := credentials()
	f.Fuzz(func(t *testing.T, text string) {
		if shapes.MatchString(text) && !mayMatch(text) {
			t.Errorf("%q has a credential", text)
		}
	})
}
