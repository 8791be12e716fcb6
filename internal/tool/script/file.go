package script

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"

	"loki/internal/base/file/atomicfile"
)

func (s *script) cacheFile(sum string) string { return filepath.Join(s.o.Cache, sum+".json") }

// replace writes a file with a mode, unless it has both already.
func replace(file string, data []byte, mode os.FileMode) (changed bool, err error) {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		info, err := os.Stat(file)
		if err == nil && (info.Mode().Perm() == mode || runtime.GOOS == "windows") {
			return false, nil
		}
	}
	return true, atomicfile.Write(file, data, atomicfile.Options{Mode: mode, NoSync: true})
}
