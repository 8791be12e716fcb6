package openai

import (
	"fmt"

	"loki/internal/frontend/server/rest"
)

// invalid returns the error of a request whose member called param is wrong.
func invalid(param, format string, args ...any) *rest.Error {
	return rest.Invalid(param, format, args...)
}

// unsupportedError returns the error of a request that asks for something that cannot be had.
func unsupportedError(param, what string) *rest.Error {
	return invalid(param, "%s: %s is not supported", param, what)
}

// member returns the place of a member of the object at a place.
func member(at, name string) string { return at + "." + name }

// element returns the place of an element of the list at a place.
func element(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }
