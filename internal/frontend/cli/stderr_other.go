//go:build !unix

package cli

import "os"

func standardError() *os.File { return os.Stderr }
