package environ_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/process/environ"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	list := []string{"A=1", "B", "A=2=3", "C="}
	lower := "-"
	if runtime.GOOS == "windows" {
		lower = "2=3"
	}
	for name, want := range map[string]string{"A": "2=3", "a": lower, "B": "-", "C": "", "D": "-"} {
		got, ok := environ.Lookup(list, name)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	secret := `OPENAI_API_KEY OpenAI_Api_Key GITHUB_TOKEN GH_TOKEN NPM_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN DB_PASSWORD MYSQL_PWD
		MY_PASSPHRASE SSHPASS GITHUB_PAT AZURE_DEVOPS_EXT_PAT ACCESSTOKEN TOKENS API_TOKENS OPENAIKEY STRIPE_SK BEARER AZURE_STORAGE_CONNECTION_STRING
		npm_config__authToken NPM_CONFIG__AUTH OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_TRACES_HEADERS MONGO_URI AMQP_URL DATABASE_URL LOKI_VAULT_FILE
		SLACK_WEBHOOK_URL SENTRY_DSN GOOGLE_APPLICATION_CREDENTIALS DOCKER_AUTH_CONFIG my_client_secret PGPASSWORD
		DB_PASSWD PASSWORD2 CLIENT_SECRET2 SECRETS DB_CREDENTIAL GCP_CREDENTIALS X_JWT SESSION_COOKIE OPENAI_APIKEY_2 AZURE_CONNECTIONSTRING NPM_AUTHTOKEN2
		SIGNING_KEY_ID TLS_KEY_PATH API_KEYS REDIS_URL MONGODB_URI MONGODB_URL MONGO_URL CLOUDAMQP_URL RABBITMQ_URL POSTGRES_URL MYSQL_URL
		OPENAI_API_KEY_1 OPENAI_KEY2 STRIPE_KEY_LIVE API_KEY_2_OLD TOKEN_1 GITHUB_TOKEN_3 AWS_CREDS DB_CRED SLACK_WEBHOOK SLACK_WEBHOOK_2 TEAMS_WEBHOOK_URL_1 DISCORD_WEBHOOK_URI SENTRY_DSN_2
		ENCRYPTION_KEY_BASE SIGNING_KEY_BASE64 SSH_KEY_PEM my-service.api-key`
	plain := `PATH HOME PWD OLDPWD SSH_AUTH_SOCK GIT_ASKPASS XAUTHORITY LANG TERM EDITOR AWS_REGION AWS_PROFILE KEYBOARD MONKEY TOKENIZERS_PARALLELISM MAX_TOKENS
		MODEL_MAX_TOKENS LOKI_CONFIG_DIR LOKI_MODEL LESSKEY COMPASS KEY OTEL_EXPORTER_OTLP_ENDPOINT PATTERN PATHEXT TASK DISK GPG_TTY AUTHOR SECONDS
		BYPASS ENCOMPASS HOTKEY TURKEY DONKEY WHISKEY HOCKEY JOCKEY SSH_ASKPASS INIT_CWD KEYS PAT SK GIT_PAT_DIR KEY_ID KEY_VAULT AZURE_KEY_VAULT_NAME KEYBOARD_LAYOUT
		MIN_TOKENS NUM_TOKENS TOKENS_LIMIT COUNT_TOKENS INPUT_TOKENS OUTPUT_TOKENS CONTEXT_TOKENS OTEL_HEADERS_FORMAT HTTP_HEADERS
		KEYBOARD_2 KEY_REPEAT KEY_1 KEY_DELAY_2 MONKEY_2 WEBHOOK_PORT WEBHOOK_URL_PREFIX WEBHOOKS_ENABLED CREDO SACRED SHA256 OAUTH2_CLIENT LEVEL_2 BASE64 TEST PRIMARY TOKENIZER MAX_TOKENS_2 PATH_2`
	for _, name := range strings.Fields(secret) {
		if !environ.Secret(name, "x") {
			t.Errorf("%s is not taken for a secret", name)
		}
	}
	for _, name := range strings.Fields(plain) {
		if environ.Secret(name, "x") {
			t.Errorf("%s is taken for a secret", name)
		}
	}
	for entry, want := range map[string]bool{
		"HTTPS_PROXY=http://me:pw@proxy:8080": true, "http_proxy=me:pw@proxy": true, "HTTPS_PROXY=http://proxy:8080": false, "all_proxy=socks5://me@proxy": false,
		"CACHE_URL=redis://:pw@host/0": true, "API_URL=https://host/a:b@c": false, "SERVICE_URI=amqps://u:p@h": true, "GREETING=http://a:b@c": true, "GREETING=http://a b:c@d": false, "NO_PROXY=a,b": false,
		"DB=postgres://u:p@h/db": true, "DB=jdbc:postgresql://u:p@h/db": true, "DB=me:pw@tcp(h:3306)/db": true, "DB=host=h password=p": true, "DB=Server=h;Password=p;": true,
		"HOOK=https://h/x?token=t": true, "NODES=amqp://a,amqp://u:p@b": true, "DB=postgres://u@h/db": false, "DB=host=h user=u": false, "REMOTE=git@host:a/b": false, "TIME=12:30@noon": false,
	} {
		name, value, _ := strings.Cut(entry, "=")
		if got := environ.Secret(name, value); got != want {
			t.Errorf("%s: got %v, want %v", entry, got, want)
		}
	}
}

func TestPolicyChild(t *testing.T) {
	t.Parallel()
	p := &environ.Policy{Keys: []string{"SRV_LOGIN"}, Keep: []string{"NPM_*", "[broken"}}
	list := []string{"PATH=/bin", "SRV_LOGIN=1", "SAME=1", "OPENAI_API_KEY=1", "GITHUB_TOKEN=t", "NPM_TOKEN=n", "npm_token=l", "DEBUG=1", environ.ParentVariable + "=@x"}
	lower, lowerWithheld := "", " npm_token"
	if runtime.GOOS == "windows" {
		lower, lowerWithheld = " npm_token=l", ""
	}
	for _, tt := range []struct {
		name            string
		policy          *environ.Policy
		declared        []string
		given, withheld string
	}{
		{"by_name_and_not_by_value", p, nil, "PATH=/bin SAME=1 NPM_TOKEN=n" + lower + " DEBUG=1", "GITHUB_TOKEN OPENAI_API_KEY SRV_LOGIN" + lowerWithheld},
		{"declared", p, []string{"GITHUB_TOKEN", "SRV_LOGIN", "NONE"}, "PATH=/bin SRV_LOGIN=1 SAME=1 GITHUB_TOKEN=t NPM_TOKEN=n" + lower + " DEBUG=1", "OPENAI_API_KEY" + lowerWithheld},
		{"no_patterns_in_declarations", p, []string{"*"}, "PATH=/bin SAME=1 NPM_TOKEN=n" + lower + " DEBUG=1", "GITHUB_TOKEN OPENAI_API_KEY SRV_LOGIN" + lowerWithheld},
		{"no_policy", nil, nil, strings.Join(list, " "), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := tt.policy.Child(list, tt.declared...)
			if diff := cmp.Diff(tt.given, strings.Join(c.Environ, " ")); diff != "" {
				t.Errorf("given (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.withheld, strings.Join(c.Withheld, " ")); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChildNote(t *testing.T) {
	t.Parallel()
	if got := (environ.Child{}).Note("x"); got != "" {
		t.Errorf("without anything withheld: %q", got)
	}
	all := strings.Fields("A_KEY B_KEY C_KEY D_KEY E_KEY F_KEY G_KEY H_KEY")
	if diff := cmp.Diff("withheld from its environment: "+strings.Join(all, ", ")+"; x", environ.Child{Withheld: all}.Note("x")); diff != "" {
		t.Errorf("as many as are named (-want +got):\n%s", diff)
	}
	c := environ.Child{Withheld: strings.Fields("A_KEY B_KEY C_KEY D_KEY E_KEY F_KEY G_KEY H_KEY I_KEY")}
	want := "withheld from its environment: C_KEY, I_KEY, A_KEY, B_KEY, D_KEY, E_KEY, F_KEY, G_KEY and 1 more; do this"
	if diff := cmp.Diff(want, c.Note("do this", "no I_KEY", "set C_KEY")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
