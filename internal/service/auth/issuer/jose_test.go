package issuer

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process/npmtest"
	"loki/internal/service/auth"
)

// TestJose verifies tokens that another program has made.
func TestJose(t *testing.T) {
	modules := npmtest.Install(t, "testdata/jose")
	cmd := exec.CommandContext(t.Context(), "node", "testdata/jose/issue.mjs")
	cmd.Env = append(os.Environ(), "MODULES="+modules)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var made struct {
		Good, Bad map[string]string
	}
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	keys := NewKeys(KeysOptions{URL: keysURL})
	list, _, err := parse(out)
	if err != nil {
		t.Fatal(err)
	}
	keys.set(list, nil, nil)
	i := New(Options{Issuer: issuerName, Audience: audience, SubjectClaim: "sub", ScopesClaim: "scope", Leeway: time.Minute, Keys: keys})
	if len(made.Good) != len(algorithms()) || len(made.Bad) < 20 {
		t.Fatalf("%d good and %d bad tokens", len(made.Good), len(made.Bad))
	}
	for name, token := range made.Good {
		who, err := i.Verify(t.Context(), netip.Addr{}, token)
		if err != nil || who.Subject != "alice" || !who.Allows(auth.ReadRuns) || who.Allows(auth.ReadSessions) || !i.Has(who) {
			t.Errorf("%s: %+v, error %v", name, who, err)
		}
	}
	for name, token := range made.Bad {
		reason, _, _ := strings.Cut(name, " ")
		if _, err := i.Verify(t.Context(), netip.Addr{}, token); auth.Reason(err) != reason {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
