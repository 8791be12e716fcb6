//go:build !windows

package render

import "os"

// enableEscapes has nothing to do: these terminals obey escape sequences.
func enableEscapes(*os.File) bool { return true }
