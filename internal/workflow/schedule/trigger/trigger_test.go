package trigger_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/workflow/run/webhook"
	"loki/internal/workflow/schedule/trigger"
)

// read returns the triggers of a text, and its problems.
func read(t *testing.T, text string) ([]*trigger.Trigger, string) {
	t.Helper()
	doc, err := yamldoc.Parse("config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all := trigger.Read(doc.Root().Map().Get("triggers"))
	var problems []string
	for _, p := range doc.Errors() {
		problems = append(problems, p.Text())
	}
	return all, strings.Join(problems, "\n")
}

// one returns the only trigger of a text.
func one(t *testing.T, text string) *trigger.Trigger {
	t.Helper()
	all, problems := read(t, text)
	if problems != "" || len(all) != 1 {
		t.Fatalf("%d triggers, and problems: %s", len(all), problems)
	}
	return all[0]
}

const pullRequests = `triggers:
  pr:
    agent: review
    webhook: {verify: github, secret: s3cret}
    when: headers["x-github-event"] == "pull_request" && body.action == "opened"
    prompt: "Review {{body.pull_request.html_url}}"
    variables: {repo: body.repository.full_name, n: "body.number + 1"}
`

func mac(algorithm func() hash.Hash, key, text string) []byte {
	m := hmac.New(algorithm, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

var now = time.Unix(1_800_000_000, 500)

// signers sign a body at a time, for each way to verify.
var signers = map[string]struct {
	config string
	sign   func(body string, at time.Time) http.Header
	timed  bool
}{
	"github": {`{verify: github, secret: [old, key]}`, func(body string, _ time.Time) http.Header {
		return http.Header{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac(sha256.New, "key", body))}}
	}, false},
	"gitlab token": {`{verify: gitlab, secret: key}`, func(string, time.Time) http.Header { return http.Header{"X-Gitlab-Token": {"key"}} }, false},
	"gitlab signature": {`{verify: gitlab, secret: whsec_a2V5}`, func(body string, at time.Time) http.Header {
		return standard("whsec_a2V5", body, at)
	}, true},
	"stripe": {`{verify: stripe, secret: whsec_x}`, func(body string, at time.Time) http.Header {
		when := strconv.FormatInt(at.Unix(), 10)
		return http.Header{"Stripe-Signature": {fmt.Sprintf("t=%s,v1=00,v0=11,v1=%x", when, mac(sha256.New, "whsec_x", when+"."+body))}}
	}, true},
	"standard": {`{verify: standard, secret: whsec_a2V5}`, func(body string, at time.Time) http.Header { return standard("whsec_a2V5", body, at) }, true},
	"hmac": {`{verify: hmac, header: x-sig, prefix: "v=", encoding: base64, algorithm: sha512, secret: key}`, func(body string, _ time.Time) http.Header {
		return http.Header{"X-Sig": {"v=" + base64.StdEncoding.EncodeToString(mac(sha512.New, "key", body))}}
	}, false},
	"token":        {`{verify: token, secret: key}`, func(string, time.Time) http.Header { return http.Header{"Authorization": {"bearer key"}} }, false},
	"token header": {`{verify: token, header: X-Key, secret: key}`, func(string, time.Time) http.Header { return http.Header{"X-Key": {"key"}} }, false},
}

func standard(secret, body string, at time.Time) http.Header {
	return http.Header{
		"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
		"Webhook-Signature": {"v1,AAAA v2,xyz " + webhook.Sign(secret, "msg_1", at, []byte(body))},
	}
}

func TestSignatures(t *testing.T) {
	const body = `{"id": "evt_1", "action": "opened"}`
	for name, s := range signers {
		t.Run(name, func(t *testing.T) {
			w := one(t, "triggers: {x: {agent: a, webhook: "+s.config+"}}").Webhook
			check := func(what string, r trigger.Request, at time.Time, want bool) {
				t.Helper()
				if err := w.Check(r, w.Secrets, at); (err == nil) != want {
					t.Errorf("%s: %v", what, err)
				}
			}
			signed := trigger.Request{Header: s.sign(body, now), Body: []byte(body)}
			check("as it was signed", signed, now, true)
			check("without headers", trigger.Request{Header: http.Header{}, Body: []byte(body)}, now, false)
			for i := range body {
				changed := []byte(body)
				changed[i] ^= 1
				check("one byte changed", trigger.Request{Header: signed.Header, Body: changed}, now, strings.HasPrefix(name, "token") || name == "gitlab token")
			}
			for key, texts := range signed.Header {
				for i := range texts[0] {
					other := signed.Header.Clone()
					changed := []byte(texts[0])
					changed[i]++
					other[key] = []string{string(changed)}
					if key == "Authorization" && i < 6 || strings.HasPrefix(texts[0], "t=") && i < strings.LastIndex(texts[0], ",") && i > 12 || key == "Webhook-Signature" && i < 15 {
						continue // a part that does not count
					}
					check("one byte of "+key+" changed", trigger.Request{Header: other, Body: []byte(body)}, now, false)
				}
			}
			check("at the end of its time", signed, now.Add(300*time.Second), true)
			check("301 s old", signed, now.Add(301*time.Second), !s.timed)
			check("301 s ahead", signed, now.Add(-301*time.Second), !s.timed)
			if w.Check(signed, []string{"other"}, now) == nil {
				t.Error("another secret is accepted")
			}
			if w.Check(signed, []string{""}, now) == nil {
				t.Error("an empty secret is accepted")
			}
		})
	}
}

// delivery returns what a body is to a trigger.
func delivery(t *testing.T, tr *trigger.Trigger, header http.Header, body string) trigger.Delivery {
	t.Helper()
	d, err := trigger.Request{Header: header, Body: []byte(body), Query: map[string][]string{"q": {"1"}}}.Delivery(tr.Webhook)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStart(t *testing.T) {
	tr := one(t, pullRequests)
	opened := http.Header{"X-Github-Event": {"pull_request"}, "Authorization": {"secret"}}
	const body = `{"action": "opened", "number": 7, "pull_request": {"html_url": "https://e.com/{{body.action}}\u0000"}, "repository": {"full_name": "a/b"}}`
	d := delivery(t, tr, opened, body)
	if v, _ := d.Get("headers"); strings.Contains(v.Text(), "secret") {
		t.Errorf("headers with secrets: %s", v)
	}
	s, ok, err := tr.Start(d, "BOUNDARY", now)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if want := "Review <data-from-outside-BOUNDARY>https://e.com/{{body.action}}\uFFFD</data-from-outside-BOUNDARY>"; s.Prompt != want {
		t.Errorf("prompt %q", s.Prompt)
	}
	if s.Variables["repo"] != "a/b" || s.Variables["n"] != "8" {
		t.Errorf("variables %v", s.Variables)
	}
	if _, ok, err := tr.Start(delivery(t, tr, opened, `{"action": "closed"}`), "B", now); ok || err != nil {
		t.Errorf("closed: %t, %v", ok, err)
	}
	for body, want := range map[string]string{
		`{"action": "opened", "number": 1, "pull_request": {"html_url": ""}}`:          "variables: repo: body.repository.full_name comes to null",
		`{"action": "opened", "number": 1, "repository": {"full_name": "a"}, "x": []}`: `prompt: "body.pull_request.html_url": the delivery does not have it`,
	} {
		if _, _, err := tr.Start(delivery(t, tr, opened, body), "B", now); err == nil || err.Error() != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestBodies(t *testing.T) {
	tr := one(t, "triggers: {x: {agent: a, webhook: {verify: none}}}")
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}
	if v, _ := delivery(t, tr, form, "payload=%7B%22a%22%3A1%7D&x=2").Get("body"); v.Text() != `{"a":1}` {
		t.Errorf("form: %s", v)
	}
	for _, bad := range []string{"", "{", "\x00", `{"a": "` + "\x00" + `"}`, "x=1", strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)} {
		for _, header := range []http.Header{{}, form} {
			if _, err := (trigger.Request{Header: header, Body: []byte(bad)}).Delivery(tr.Webhook); err == nil {
				t.Errorf("%.20q is accepted", bad)
			} else if header["Content-Type"] != nil && !strings.Contains(err.Error(), "the content type says that the body is a form") {
				t.Errorf("%.20q: %v", bad, err)
			}
		}
	}
}

func TestDeliveryIDs(t *testing.T) {
	for config, header := range map[string]string{
		"{verify: github, secret: x}": "X-Github-Delivery", "{verify: gitlab, secret: x}": "X-Gitlab-Event-Uuid", "{verify: standard, secret: x}": "Webhook-Id",
		"{verify: token, secret: x}": "Idempotency-Key", "{verify: hmac, header: h, id_header: x-id, secret: x}": "X-Id",
	} {
		w := one(t, "triggers: {x: {agent: a, webhook: "+config+"}}").Webhook
		r := trigger.Request{Header: http.Header{header: {"id-1"}}, Body: []byte("{}")}
		if got := w.ID(r, nil); got != "id-1" {
			t.Errorf("%s: %q", config, got)
		}
		for _, odd := range []string{"", "a b", "ä", strings.Repeat("x", 300)} {
			r.Header = http.Header{header: {odd}}
			if got := w.ID(r, nil); !strings.HasPrefix(got, "sha256:") {
				t.Errorf("%s: %q", config, got)
			}
		}
	}
	stripe := one(t, "triggers: {x: {agent: a, webhook: {verify: stripe, secret: x}}}")
	if got := stripe.Webhook.ID(trigger.Request{}, delivery(t, stripe, nil, `{"id": "evt_1"}`)); got != "evt_1" {
		t.Errorf("stripe: %q", got)
	}
}

func TestMistakes(t *testing.T) {
	for config, want := range map[string]string{
		"{}":                                    "required",
		"{agent: a}":                            "config.yaml:1:15: triggers.x: a trigger has either webhook or watch",
		"{agent: a, webhook: {verify: github}}": "secret",
		"{agent: a, webhook: {verify: github, secret: ''}}":             "is empty",
		"{agent: a, webhook: {verify: git, secret: s}}":                 `config.yaml:1:44: triggers.x.webhook.verify: unknown value "git"`,
		"{agent: a, webhook: {verify: none, secret: s}}":                "checks no secret",
		"{agent: a, webhook: {verify: none}, yes: true}":                "consents to what anyone",
		"{agent: a, webhook: {verify: github, secret: s, prefix: p}}":   "verify: github has no prefix",
		"{agent: a, webhook: {verify: none, rate: 60}}":                 "not a rate",
		"{agent: a, webhook: {verify: none, max_body_bytes: 26214401}}": "26214400",
		"{agent: a, webhook: {verify: none}, when: 'bdy.a'}":            `config.yaml:1:58: triggers.x.when: there is no "bdy"`,
		"{agent: a, webhook: {verify: none}, when: 'body.a ='}":         "not an expression",
		"{agent: a, webhook: {verify: none}, when: '1 + 1'}":            "must be",
		"{agent: a, webhook: {verify: none}, prompt: '{{x.y}}'}":        "a prompt has no {{x}}",
		"{agent: a, webhook: {verify: none}, variables: {v: 'files'}}":  `there is no "files"`,
		"{agent: a, webhook: {verify: none}, promt: x}":                 `unknown key "promt"`,
		"{agent: a, watch: {paths: ['[']}}":                             "not a pattern",
		"{agent: a, watch: {paths: [a], on: [delete]}}":                 `unknown change "delete"`,
		"{agent: a, watch: {paths: [a], debounce: 0}}":                  "100ms",
		"{agent: a, webhook: {verify: none}, budget: {usd: -1}}":        "0 or more",
	} {
		if _, got := read(t, "triggers: {x: "+config+"}"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", config, got)
		}
	}
	if _, got := read(t, "triggers: {'a/b': {agent: a, webhook: {verify: none}}}"); !strings.Contains(got, "a part of an address") {
		t.Error(got)
	}
}

func TestMeter(t *testing.T) {
	var m trigger.Meter
	r, ok := trigger.ParseRate("3/1m")
	if !ok {
		t.Fatal("not read")
	}
	at := now
	for i := range 3 {
		if _, ok := m.Take(r, at); !ok {
			t.Errorf("%d of 3 is refused", i+1)
		}
	}
	wait, ok := m.Take(r, at)
	if ok || wait != 20*time.Second {
		t.Errorf("the fourth: %t, %v", ok, wait)
	}
	if _, ok := m.Take(r, at.Add(wait)); !ok {
		t.Error("after its wait it is refused")
	}
	if _, ok := m.Take(r, at.Add(wait-time.Second)); ok {
		t.Error("when the clock was set back one more is accepted")
	}
}

// FuzzRequest sends what signatures, bodies and ids are read from.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id": "x"}`), "t=1,v1=00", "application/json", 0)
	f.Add([]byte(`payload={}`), "sha256=00", "application/x-www-form-urlencoded", 1)
	f.Add([]byte("\x00"), "v1,AA v1,BB", "a; b=\"", 2)
	f.Fuzz(func(t *testing.T, body []byte, header, kind string, which int) {
		h := http.Header{"Content-Type": {kind}}
		for _, name := range []string{"X-Hub-Signature-256", "Stripe-Signature", "Webhook-Signature", "Webhook-Timestamp", "Webhook-Id", "Authorization", "X-Sig"} {
			h.Set(name, header)
		}
		r := trigger.Request{Header: h, Body: body}
		for _, verify := range []trigger.Verify{trigger.GitHub, trigger.GitLab, trigger.Stripe, trigger.Standard, trigger.HMAC, trigger.Token} {
			w := &trigger.Webhook{Verify: verify, Header: "X-Sig", Encoding: "hex", Algorithm: "sha256"}
			if w.Check(r, []string{"a secret that no input has"}, now) == nil {
				t.Errorf("%s accepts %q", verify, header)
			}
			d, err := r.Delivery(w)
			if err != nil {
				continue
			}
			if id := w.ID(r, d); id == "" || len(id) > 200 {
				t.Errorf("id %q", id)
			}
			tr := &trigger.Trigger{Name: "x", Webhook: w}
			if s, _, err := tr.Start(d, chat.NewBoundary(), now); err == nil && strings.Contains(s.Prompt, "\x00") {
				t.Errorf("prompt %q", s.Prompt)
			}
		}
	})
}

// FuzzRead reads configurations.
func FuzzRead(f *testing.F) {
	f.Add(pullRequests)
	f.Add("triggers: {x: {agent: a, watch: {paths: [a], on: [create]}, budget: {usd: 1}}}")
	f.Fuzz(func(_ *testing.T, text string) {
		if doc, err := yamldoc.Parse("x", []byte(text)); err == nil {
			trigger.Read(doc.Root().Map().Get("triggers"))
		}
	})
}
