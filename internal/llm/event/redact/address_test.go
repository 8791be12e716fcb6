package redact_test

import (
	"strings"
	"testing"

	"loki/internal/llm/event/redact"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, address, masked, secrets string }{
		{"none", "postgres://host/db?sslmode=require", "postgres://host/db?sslmode=require", ""},
		{"user_only", "postgres://me@host/db", "postgres://me@host/db", ""},
		{"password", "postgres://me:p%40ss@host/db", "postgres://me:***@host/db", "password=p@ss"},
		{"password_with_an_at", "postgres://me:p@ss/word@host/db", "postgres://me:***@host/db", "password=p@ss/word"},
		{
			"query", "postgresql://me:pw@h:1/d?sslpassword=a%20b&sslkey=/k.pem&options=-c%20x.y%3Dz&PASSWORD=q&require_auth=md5",
			"postgresql://me:***@h:1/d?sslpassword=***&sslkey=/k.pem&options=***&PASSWORD=***&require_auth=md5",
			"password=pw sslpassword=a b options=-c x.y=z password=q",
		},
		{"escaped_name", "postgres://h/d?ssl%70assword=x", "postgres://h/d?ssl%70assword=***", "sslpassword=x"},
		{"references", "postgres://me:{{PW}}@h/d?sslpassword=plain", "postgres://me:{{PW}}@h/d?sslpassword=***", "sslpassword=plain"},
		{"around_a_reference", "postgres://me:{{PW}}tail@h/d", "postgres://me:***@h/d", "password={{PW}}tail"},
		{
			"pairs", `host=h user = me password = 'it\'s me' sslpassword=a\ b sslkey=/k options='-c a=b' dbname=d`,
			`host=h user = me password = '***' sslpassword=*** sslkey=/k options='***' dbname=d`,
			"password=it's me sslpassword=a b options=-c a=b",
		},
		{"pair_with_an_address", "host=h password=a://b@c", "host=h password=***", "password=a://b@c"},
		{"marks_stay", "postgres://me:***RAG***@h/d?sslpassword=x", "postgres://me:***RAG***@h/d?sslpassword=***", "password=***RAG*** sslpassword=x"},
		{"unfinished_quote", "password='abc", "password='***", "password=abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var secrets []string
			for _, p := range redact.Address(tt.address) {
				secrets = append(secrets, p.Name+"="+p.Value)
			}
			if got := strings.Join(secrets, " "); got != tt.secrets {
				t.Errorf("secrets %q, want %q", got, tt.secrets)
			}
			if got := redact.MaskAddress(tt.address); got != tt.masked {
				t.Errorf("masked %q, want %q", got, tt.masked)
			}
		})
	}
}

func TestMaskAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"none", "what is 1://2? a@b: c", "what is 1://2? a@b: c"},
		{"token", ".install remote https://ghp_x@github.com/a/b#v2 --yes", ".install remote https://***@github.com/a/b#v2 --yes"},
		{"both", "!git clone 'HTTPS://me:pw@host/x' && ls", "!git clone 'HTTPS://***:***@host/x' && ls"},
		{"several", "http://a@h http://b:@h", "http://***@h http://***:@h"},
		{"query", "https://h:80/@me/x?a=1&token=secret#end", "https://h:80/@me/x?a=1&token=***"},
		{"ssh_user", "ssh://git@host/x", "ssh://git@host/x"},
		{"database", "use postgres://me:pw@host/db", "use postgres://me:***@host/db"},
		{"elsewhere", "https://{{USER}}:***TOKEN***@host", "https://{{USER}}:***TOKEN***@host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := redact.MaskAddresses(tt.text); got != tt.want {
				t.Errorf("masked %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"postgres://me:pw@h:1/d?sslpassword=a%2&options=x", `host=h password='a\'`, "password==://@?=&", "{{A}}={{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		masked := redact.MaskAddress(address)
		for _, p := range redact.Address(masked) {
			if !strings.HasPrefix(p.Value, "***") {
				t.Fatalf("%q became %q, with %s=%q", address, masked, p.Name, p.Value)
			}
		}
	})
}
