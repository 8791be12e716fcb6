package rest

import (
	"encoding/base64"
	"unicode/utf8"
)

// NewCursor returns a cursor for a place in a list, such as the id of the last entry of a page. Clients see
// no more in it than that there is a next page.
func NewCursor(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

// Cursor returns the place of a cursor; that of an empty one is empty. The error is an [*Error].
func Cursor(cursor string) (place string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !utf8.Valid(b) {
		return "", InvalidCursor()
	}
	return string(b), nil
}

// InvalidCursor returns the error of a cursor that no page of the list has.
func InvalidCursor() *Error {
	return Invalid("cursor", "cursor: it is not the next_cursor of a page")
}
