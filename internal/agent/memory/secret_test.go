package memory_test

import (
	"strings"
	"testing"

	"loki/internal/agent/memory"
)

// secrets are texts with a secret each. They are put together here, so that no program takes this file for one that has keys.
func secrets() []string {
	x := func(n int) string { return strings.Repeat("aB3dE5gH", (n+7)/8)[:n] }
	up := func(n int) string { return strings.ToUpper(x(n)) }
	all := []string{
		"-----BEGIN " + "PRIVATE KEY-----\nMIIE", "-----BEGIN RSA " + "PRIVATE KEY-----", "-----BEGIN EC " + "PRIVATE KEY-----", "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
		"-----BEGIN DSA " + "PRIVATE KEY-----", "-----BEGIN ENCRYPTED " + "PRIVATE KEY-----", "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", "PuTTY-User-Key-" + "File-2: ssh-rsa", "AGE-SECRET-" + "KEY-1" + up(58),
		"ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0In0.abc", "token ey" + "JhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0." + x(43),
		"postgres://me:" + "hunter22@db/x", "mysql://root:" + "toor@localhost", "redis://:" + "secretpw@cache:6379", "mongodb+srv://u:" + "p4ssw0rd@c.net/db", "amqp://guest:" + "guest1@q/",
		"https://me:" + "pw123456@host/x", "git clone https://" + x(20) + "@github.com/a/b", "ftp://u:" + "pw1234@host", "https://host/x?access_token=" + x(16), "https://host/x?api_key=" + x(16),
		"AKIA" + up(16), "ASIA" + up(16), "aws_secret_access_key = " + x(40), "AWS_SESSION_TOKEN=" + x(60), `"aws_secret_access_key": "` + x(40) + `"`,
	}
	for _, prefix := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"} {
		all = append(all, prefix+x(36))
	}
	all = append(all, "github_"+"pat_"+x(22)+"_"+x(59))
	for _, prefix := range []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-"} {
		all = append(all, prefix+x(20))
	}
	for _, prefix := range []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe.xoxp-"} {
		all = append(all, prefix+"1234567890-"+x(24))
	}
	all = append(
		all, "xapp-1-A012-"+x(30), "https://hooks.slack.com/"+"services/T000/B000/"+x(24),
		"AI"+"za"+x(35), "ya"+"29."+x(60), "GOC"+"SPX-"+x(28), "1/"+"/0"+x(40),
		"sk-"+x(48), "sk-"+"proj-"+x(60), "sk-"+"svcacct-"+x(60), "sk-"+"admin-"+x(60),
		"sk-"+"ant-api03-"+x(90), "sk-"+"ant-oat01-"+x(90),
		"sk_"+"live_"+x(24), "sk_"+"test_"+x(24), "rk_"+"live_"+x(24), "rk_"+"test_"+x(24), "wh"+"sec_"+x(32),
		"ghp_"+x(18)+"\u200b"+x(18), "ghp_"+x(10)+"\n  "+x(26),
		"the known-secret-value of the vault",
	)
	return all
}

func TestSecretsAreRefused(t *testing.T) {
	t.Parallel()
	all := secrets()
	if len(all) < 60 {
		t.Fatalf("only %d secrets", len(all))
	}
	s := memory.NewStore(t.TempDir())
	s.Hide = func(text string) string {
		return strings.ReplaceAll(text, "known-secret-value", "***VAULT***")
	}
	for _, secret := range all {
		for name, f := range map[string]memory.Fact{
			"text": {Text: "The key is " + secret + " as of today."}, "title": {Title: secret, Text: "x"}, "tag": {Tags: []string{secret}, Text: "x"},
			"proposal": {Text: secret, Proposed: true}, "reason": {Text: secret, Proposed: true, Forgets: true, Changes: "00a1b2"},
		} {
			f.Scope = memory.User
			if name == "tag" && len(secret) > 40 {
				continue
			}
			if _, err := s.Save(t.Context(), memory.Place{}, f); err == nil || !strings.Contains(err.Error(), "looks like a secret") && name != "tag" {
				t.Errorf("%s %.30q is stored: %v", name, secret, err)
			} else if strings.Contains(err.Error(), secret) {
				t.Errorf("the error has the secret: %v", err)
			}
		}
	}
	if n := len(s.List(t.Context(), memory.Place{}, false)) + len(s.List(t.Context(), memory.Place{}, true)); n > 0 {
		t.Errorf("%d are stored", n)
	}
	kept := save(t, s, memory.Place{}, memory.Fact{Text: "harmless"})
	if _, err := s.Change(t.Context(), memory.Place{}, kept.ID, "", func(f *memory.Fact) { f.Text = all[0] }); err == nil {
		t.Error("a change to a secret is stored")
	}
}

func TestWhatIsNoSecretIsStored(t *testing.T) {
	t.Parallel()
	for i, fact := range []string{
		"The API key is in the vault as OPENAI_API_KEY.", "Clone ssh://git@host/x and https://github.com/a/b.", "Keys begin with sk- or ghp_.",
		"Commit 3f786850e387550fdab836ed7e6dc881de23001b broke it.", "The id is 123e4567-e89b-12d3-a456-426614174000.", "Use task-management-for-the-whole-team-board as the name.",
		"Public keys are in ~/.ssh: -----BEGIN PUBLIC KEY-----", "Use password managers; never mail a token.", "skip sk-learn models, use risk-assessment-of-the-year",
	} {
		s := memory.NewStore(t.TempDir())
		if _, err := s.Save(t.Context(), memory.Place{}, memory.Fact{Scope: memory.User, Text: fact}); err != nil {
			t.Errorf("%d: %q is refused: %v", i, fact, err)
		}
	}
}
