//go:build !unix

package render

import "os"

// foreground reports true: there are no background processes here.
func foreground(*os.File) bool { return true }
