package update

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpack writes the program of an archive to file, and nothing else. name, that of the archive, says its
// kind. The program is the regular file at the root of the archive that is called as file
// is, and has at most limit bytes.
func unpack(archive, name, file string, limit int64) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	open := openTar
	if strings.HasSuffix(name, ".zip") {
		open = openZip
	}
	program, err := open(f, filepath.Base(file))
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(program, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("the program has more than %d MiB, which is too much", limit>>20)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

func notThere(name string) error { return fmt.Errorf("the archive has no file %q at its root", name) }

// openTar returns the file called name of a tar file that gzip has packed.
func openTar(f *os.File, name string) (io.Reader, error) {
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return nil, notThere(name)
		case err != nil:
			return nil, err
		case h.Typeflag == tar.TypeReg && path.Clean(h.Name) == name:
			return r, nil
		}
	}
}

// openZip returns the file called name of a zip file.
func openZip(f *os.File, name string) (io.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, err
	}
	for _, member := range r.File {
		if member.Mode().IsRegular() && path.Clean(member.Name) == name {
			return member.Open()
		}
	}
	return nil, notThere(name)
}
