package rest

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"loki/internal/frontend/api"
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

// PageOf returns a page of a list by the keys of its elements, which are unique. entry describes one for the answer.
func PageOf[T, E any](list []T, p Page, key func(T) string, entry func(T) (E, error)) (*api.List[E], error) {
	after, err := Cursor(p.Cursor)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if after != "" {
		list = slices.DeleteFunc(list, func(t T) bool { return key(t) <= after })
	}
	next := ""
	if len(list) > p.Limit {
		list = list[:p.Limit]
		next = NewCursor(key(list[p.Limit-1]))
	}
	entries := make([]E, len(list))
	for i, t := range list {
		if entries[i], err = entry(t); err != nil {
			return nil, err
		}
	}
	return api.NewList(entries, next), nil
}
