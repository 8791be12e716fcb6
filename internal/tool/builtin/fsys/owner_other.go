//go:build !unix

package fsys

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a new file inherits what its directory says.
func keepOwner(*os.File, fs.FileInfo) {}
