//go:build !unix

package fsys

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a new file inherits the owner from its directory.
func keepOwner(*os.File, fs.FileInfo) {}
