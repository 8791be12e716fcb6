package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/process/environ"
)

// KeptPlaces returns the places in a workspace whose programs are not the work of a model, see [environ.Apart]: of the system, and
// in a home directory in the workspace toolchains and what begins with a dot.
func KeptPlaces(workspace string) []string {
	home, _ := os.UserHomeDir() // without one there are no toolchains
	kept := programPlaces(home)
	if home != "" && environ.Inside(workspace, nil)(home) {
		entries, _ := os.ReadDir(home) // one that cannot be read has none
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				kept = append(kept, filepath.Join(home, e.Name()))
			}
		}
	}
	return kept
}
