// Package sample says how much of a large set a test tries.
//
// Tests that compare thousands of inputs one after the other show nothing more under the race detector,
// where they take ten times as long. There they try a part, unless LOKI_TEST=full asks for all of it.
package sample

import "os"

// Step returns every how many-th input to try: n under the race detector, otherwise 1.
func Step(n int) int {
	if !race || os.Getenv("LOKI_TEST") == "full" {
		return 1
	}
	return n
}
