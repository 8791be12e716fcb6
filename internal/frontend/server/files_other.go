//go:build !unix

package server

// mostConnections returns how many connections a server may have at once. 0 means any number.
func mostConnections() int { return 0 }
