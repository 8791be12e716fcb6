package atomicfile

import "os"

// Owner returns "": files here have neither an owner nor a group that a new file would lack.
func Owner(string) string { return "" }

func keepOwner(*os.File, string) {}
