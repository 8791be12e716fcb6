package redact

import "strings"

// fieldParts are parts of the names of fields that hold secrets.
var fieldParts = []string{"auth", "key", "token", "secret", "cookie", "password", "signature", "credential"}

// SecretField reports whether a header field or a query parameter of that name likely holds a
// secret.
func SecretField(name string) bool {
	name = strings.ToLower(name)
	for _, part := range fieldParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Credential returns what is secret in the value of such a field: what follows a scheme such
// as Bearer, or else all of it.
func Credential(value string) string {
	if _, credential, ok := strings.Cut(strings.TrimSpace(value), " "); ok {
		return strings.TrimSpace(credential)
	}
	return strings.TrimSpace(value)
}
