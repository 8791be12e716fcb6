package environ

import (
	"slices"
	"strings"

	"loki/internal/base/text"
)

// secretParts are parts of names, as of nameParts, that names of secrets have.
var secretParts = []string{
	"PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "CRED", "CREDS", "PWD", "PW", "BINDPW", "AUTH", "DSN", "JWT", "COOKIE", "BEARER", "SALT",
}

// secretEnds are ends of parts of names, as in SSHPASS and ACCESSTOKEN, that names of secrets have.
var secretEnds = []string{"TOKEN", "PASS"}

// words end like secrets and are none.
var words = []string{"BYPASS", "COMPASS", "ENCOMPASS", "HOTKEY", "MONKEY", "TURKEY", "DONKEY", "WHISKEY", "HOCKEY", "JOCKEY"}

// secretNames are names of secrets that no rule finds.
var secretNames = []string{
	"DATABASE_URL", "REDIS_URL", "MONGODB_URI", "MONGODB_URL", "MONGO_URI", "MONGO_URL", "AMQP_URL", "CLOUDAMQP_URL", "RABBITMQ_URL", "POSTGRES_URL", "MYSQL_URL",
	"LOKI_RAG_STORE", "LOKI_STORE", "KUBECONFIG_DATA", "TWILIO_SID", "HEROKU_API", "SESSION_ID",
}

// notSecret are names that look like those of secrets but are none.
var notSecret = []string{"PWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "LESSKEY"}

// SecretName reports whether the value of a variable of that name is likely a secret.
func SecretName(name string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains(notSecret, upper) {
		return false
	}
	for _, part := range []string{"APIKEY", "PASSWORD", "SECRET", "CONNECTION_STRING", "CONNECTIONSTRING", "AUTHTOKEN"} {
		if strings.Contains(upper, part) {
			return true
		}
	}
	parts := nameParts(upper)
	for i, p := range parts {
		if secretPart(parts, i, p) {
			return true
		}
	}
	return strings.HasPrefix(upper, "LOKI_VAULT") || strings.HasPrefix(upper, "OTEL_") && strings.HasSuffix(upper, "_HEADERS") ||
		slices.Contains(secretNames, upper)
}

// which are parts at the end of names that say which of several it is, or how it is written.
var which = []string{
	"OLD", "NEW", "PREVIOUS", "CURRENT", "NEXT", "PROD", "PRODUCTION", "STAGING", "STAGE", "DEV", "DEVELOPMENT", "TEST", "LIVE", "SANDBOX", "PRIMARY", "SECONDARY", "MAIN", "BACKUP", "DEFAULT",
	"BASE", "B", "PEM", "HEX", "JSON",
}

// nameParts returns the parts of a name between underscores, without the numbers behind them and without what says at the end which
// of several it is.
func nameParts(upper string) (parts []string) {
	for _, p := range strings.FieldsFunc(upper, func(r rune) bool { return strings.ContainsRune("_-.", r) }) {
		if p = strings.TrimRight(p, "0123456789"); p != "" {
			parts = append(parts, p)
		}
	}
	for len(parts) > 1 && slices.Contains(which, parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// secretPart reports whether a name is that of a secret because of its part i.
func secretPart(parts []string, i int, p string) bool {
	last := i == len(parts)-1
	switch {
	case slices.Contains(secretParts, p):
		return true
	case slices.Contains(words, p):
		return false
	case p == "KEY":
		return i > 0 && (last || parts[i+1] == "ID" || parts[i+1] == "PATH")
	case p == "KEYS":
		return i > 0
	case p == "WEBHOOK" || p == "WEBHOOKS":
		return last || i == len(parts)-2 && slices.Contains([]string{"URL", "URLS", "URI"}, parts[i+1])
	case p == "PAT" || p == "SK":
		return i > 0 && last
	case strings.HasSuffix(p, "TOKENS"):
		return !isCount(parts)
	case strings.HasSuffix(p, "KEY"):
		return last
	}
	return slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(p, end) })
}

// isCount reports whether a name is that of a number, such as MAX_TOKENS.
func isCount(parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool {
		return slices.Contains([]string{"MAX", "MIN", "NUM", "LIMIT", "COUNT", "INPUT", "OUTPUT", "CONTEXT"}, p)
	})
}

// passwords finds addresses and connection strings that have a password.
var passwords = text.Regexp(`://[^/\s@]*:[^/\s@]*@|^[^/\s@:]+:[^/\s@]+@\w+\(|(?i:(^|[;?&\s])(password|passwd|pwd|accountkey|sharedaccesskey|access_token|api_?key|token)\s*=\s*[^;&\s])`)

// Secret reports whether a variable is likely a secret: by its name, or because its value is an address or a connection string with a
// password.
func Secret(name, value string) bool {
	if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && !strings.Contains(value, "://") {
		value = "://" + value // proxies are written like this, too
	}
	return SecretName(name) || passwords().MatchString(value)
}
