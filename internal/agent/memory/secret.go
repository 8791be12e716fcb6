package memory

import (
	"regexp"
	"strings"
	"sync"

	"loki/internal/base/text"
	"loki/internal/llm/event/redact"
)

// secretForms finds keys by the forms that their makers gave them: private keys, JSON Web Tokens, and keys of AWS, GitHub, GitLab, Slack, Google,
// OpenAI, Anthropic and Stripe.
var secretForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`, `PuTTY-User-Key-File-`, `AGE-SECRET-KEY-1[0-9A-Z]{10,}`,
		`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`,
		`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`, `(?i)aws.{0,20}(?:secret|session).{0,20}[=:"' ]+[A-Za-z0-9/+=]{40,}`,
		`\bgh[pousr]_[A-Za-z0-9]{30,}`, `\bgithub_pat_[A-Za-z0-9_]{22,}`,
		`\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_.-]{16,}`, `\bGR1348941[A-Za-z0-9_-]{16,}`,
		`\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}`, `\bxapp-[0-9]-[A-Za-z0-9-]{10,}`, `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{10,}`,
		`\bAIza[A-Za-z0-9_-]{30,}`, `\bya29\.[A-Za-z0-9_-]{20,}`, `\bGOCSPX-[A-Za-z0-9_-]{20,}`, `\b1//0[A-Za-z0-9_-]{30,}`,
		`\bsk-(?:proj-|svcacct-|admin-|None-|ant-)?[A-Za-z0-9_-]{20,}`, `\bsess-[A-Za-z0-9]{30,}`,
		`\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}`, `\bwhsec_[A-Za-z0-9+/=]{16,}`,
	}, "|"))
})

// wrapped finds where a text was broken in the middle of a key.
var wrapped = text.Regexp(`\\?\r?\n[ \t]*`)

// secret reports whether a text has, or seems to have, a secret. Hide replaces the ones that the program knows; nil knows none.
func secret(s string, hide func(string) string) bool {
	s = text.WithoutInvisible(s)
	joined := wrapped().ReplaceAllString(s, "")
	for _, s := range []string{s, joined} {
		if hide != nil && hide(s) != s || secretForms().MatchString(s) || redact.MaskAddresses(s) != s {
			return true
		}
	}
	return false
}
