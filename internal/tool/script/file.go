package script

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
)

func (s *script) cacheFile(sum string) string { return filepath.Join(s.o.Cache, sum+".json") }

// replace gives a file new contents and a mode, all or nothing and only if that changes
// it.
func replace(file string, data []byte, mode os.FileMode) (changed bool, err error) {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		info, err := os.Stat(file)
		if err == nil && (info.Mode().Perm() == mode || runtime.GOOS == "windows") {
			return false, nil
		}
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return false, err
	}
	if err = f.Chmod(mode); err != nil && runtime.GOOS != "windows" {
		return false, err
	}
	if err = f.Close(); err != nil {
		return false, err
	}
	return true, os.Rename(f.Name(), file)
}
