package environ

import (
	"slices"
	"strings"
)

// secretParts are parts of names, between underscores, that names of secrets have.
var secretParts = []string{
	"PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "PWD", "PW", "BINDPW", "AUTH", "DSN", "JWT", "COOKIE", "BEARER", "SALT",
}

// secretEnds are ends of parts of names, as in SSHPASS and ACCESSTOKEN, that names of secrets have.
var secretEnds = []string{"TOKEN", "PASS"}

// words end like secrets and are none.
var words = []string{"BYPASS", "COMPASS", "ENCOMPASS", "HOTKEY", "MONKEY", "TURKEY", "DONKEY", "WHISKEY", "HOCKEY", "JOCKEY"}

// secretNames are names of secrets that no rule finds.
var secretNames = []string{
	"DATABASE_URL", "REDIS_URL", "MONGODB_URI", "MONGODB_URL", "MONGO_URI", "MONGO_URL", "AMQP_URL", "CLOUDAMQP_URL", "RABBITMQ_URL", "POSTGRES_URL", "MYSQL_URL",
	"LOKI_RAG_STORE", "LOKI_STORE", "ENCRYPTION_KEY_BASE", "KUBECONFIG_DATA", "TWILIO_SID", "HEROKU_API", "SESSION_ID",
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
	parts := strings.Split(upper, "_")
	for i, p := range parts {
		if secretPart(parts, i, p) {
			return true
		}
	}
	return strings.HasPrefix(upper, "LOKI_VAULT") || strings.HasPrefix(upper, "OTEL_") && strings.HasSuffix(upper, "_HEADERS") ||
		strings.HasSuffix(upper, "_WEBHOOK_URL") || slices.Contains(secretNames, upper)
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

// Secret reports whether a variable is likely a secret: by its name, or because its value is an address with a password.
func Secret(name, value string) bool {
	if SecretName(name) {
		return true
	}
	scheme, rest, ok := strings.Cut(value, "://")
	if upper := strings.ToUpper(name); !ok && strings.HasSuffix(upper, "_PROXY") {
		rest = value // proxies are written like this, too
	} else if !ok || strings.ContainsAny(scheme, " \t\n/") {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	user, _, ok := strings.Cut(authority, "@")
	return ok && strings.Contains(user, ":") && !strings.ContainsAny(authority, " \t\n")
}
