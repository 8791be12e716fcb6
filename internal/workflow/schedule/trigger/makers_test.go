package trigger_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/workflow/schedule/trigger"
)

// makersScript prints the headers with which the libraries of the makers sign a body at a time.
const makersScript = `
const body = process.argv[2], at = Number(process.argv[3]);
const { sign } = await import("@octokit/webhooks-methods");
const { default: Stripe } = await import("stripe");
const { Webhook } = await import("standardwebhooks");
console.log(JSON.stringify({
  github: { "X-Hub-Signature-256": await sign("key", body) },
  stripe: { "Stripe-Signature": new Stripe("sk_test").webhooks.generateTestHeaderString({ payload: body, secret: "whsec_x", timestamp: at }) },
  standard: { "Webhook-Id": "msg_1", "Webhook-Timestamp": String(at), "Webhook-Signature": new Webhook("whsec_a2V5").sign("msg_1", new Date(at * 1000), body) },
}));
`

// TestMakersSign has the makers' own libraries sign, if npm can be reached.
func TestMakersSign(t *testing.T) {
	if testing.Short() {
		t.Skip("asks npm for packages")
	}
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "@octokit/webhooks-methods@6", "stripe@19", "standardwebhooks@1")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm: %v: %.200s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "sign.mjs"), []byte(makersScript), 0o600); err != nil {
		t.Fatal(err)
	}
	const body = `{"id": "evt_1", "text": "ä {{x}}"}`
	node := exec.CommandContext(t.Context(), "node", "sign.mjs", body, "1800000000")
	node.Dir = dir
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	var headers map[string]map[string]string
	if err := json.Unmarshal(out, &headers); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0)
	for name, header := range headers {
		w := one(t, "triggers: {x: {agent: a, webhook: "+signers[name].config+"}}").Webhook
		r := trigger.Request{Header: make(http.Header), Body: []byte(body)}
		for key, text := range header {
			r.Header.Set(key, text)
		}
		if err := w.Check(r, w.Secrets, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Check(r, w.Secrets, at.Add(301*time.Second)); (err == nil) != (name == "github") {
			t.Errorf("%s, 301 s old: %v", name, err)
		}
		r.Body = []byte(body + " ")
		if w.Check(r, w.Secrets, at) == nil {
			t.Errorf("%s: another body is accepted", name)
		}
	}
	if len(headers) != 3 {
		t.Errorf("%d libraries", len(headers))
	}
}
