//go:build !linux && !darwin && !windows

package line

import "errors"

// watchMode fails: what is typed while the program works stays with the system.
func watchMode(uintptr) error { return errors.ErrUnsupported }
