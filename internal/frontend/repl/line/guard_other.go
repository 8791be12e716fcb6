//go:build !linux && !darwin

package line

import "os"

// StartGuard does nothing: consoles belong to their programs here, or no other process could guard them.
func StartGuard(*os.File) (stop func(), err error) { return func() {}, nil }

// ServeGuard returns false: there are no guards.
func ServeGuard([]string) bool { return false }
