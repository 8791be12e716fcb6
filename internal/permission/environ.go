package permission

import (
	"slices"
	"strings"
)

// secretParts are parts of the names of variables, between underscores, that tell of secrets.
var secretParts = []string{
	"TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "PASS", "PWD", "AUTH", "DSN", "JWT", "COOKIE",
}

// notSecret are names that look like those of secrets but are none.
var notSecret = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "XAUTHORITY", "INIT_CWD"}

// secretName reports whether the value of a variable of that name is likely a secret.
func secretName(name string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains(notSecret, upper) {
		return false
	}
	parts := strings.Split(upper, "_")
	for i, p := range parts {
		if slices.Contains(secretParts, p) {
			return true
		}
		if p == "KEY" && (i == len(parts)-1 || parts[i+1] == "ID" || parts[i+1] == "PATH") && i > 0 || p == "KEYS" && i > 0 {
			return true
		}
	}
	return strings.HasPrefix(upper, "LOKI_VAULT") || strings.Contains(upper, "APIKEY") || strings.Contains(upper, "PASSWORD") || strings.Contains(upper, "SECRET") ||
		upper == "DATABASE_URL" || upper == "REDIS_URL" || upper == "MONGODB_URI" || upper == "AWS_ACCESS_KEY_ID" || strings.HasSuffix(upper, "_WEBHOOK_URL")
}

// ScrubEnv returns an environment, as from os.Environ, without the variables whose names
// tell of secrets, such as those that end in _API_KEY, _TOKEN or _SECRET. A variable stays if
// its name matches one of keep, in which * stands for any text. The order stays; environ
// is not changed.
func ScrubEnv(environ, keep []string) []string {
	kept := make([]string, 0, len(environ))
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !secretName(name) || slices.ContainsFunc(keep, func(p string) bool { return glob(p, name) }) {
			kept = append(kept, entry)
		}
	}
	return kept
}
