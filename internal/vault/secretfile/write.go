package secretfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write makes data the content of the file called path, in a directory that is made if
// need be. After a failure, or a crash at any point, the old content is still there. The
// file is readable by its owner only. If path is a symbolic link, the file it leads to is
// written.
func Write(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // readable by its owner only
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync() // or a crash of the system could leave an empty file behind the name
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
