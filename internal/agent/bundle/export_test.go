package bundle

import "io/fs"

// Install installs all agents of the bundle below dir as [Ensure] does one. It returns
// the files it wrote, relative to dir with slashes, also when it fails midway.
func Install(bundle fs.FS, dir string) (written []string, err error) {
	for _, name := range Names(bundle) {
		files, err := install(bundle, name, dir)
		written = append(written, files...)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
