//go:build !linux

package environ

import (
	"context"
	"errors"
)

// Parent gives what children do not get to those of them that are this same program. Systems
// that do not say which program is at the other end of a connection have none.
type Parent struct{}

// Listen returns an error.
func Listen([]string) (*Parent, error) { return nil, errors.ErrUnsupported }

// Variable returns the entry for the environment of children.
func (*Parent) Variable() string { return "" }

// Close does nothing.
func (*Parent) Close() error { return nil }

// Inherit returns nil.
func Inherit(context.Context, []string) []string { return nil }
