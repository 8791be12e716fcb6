package logging

import (
	"os"
	"sync"

	"loki/internal/base/file/atomicfile"
)

// Lines appends to a file, such as what programs print, which is opened when there is something to write. Each write is of whole lines.
type Lines struct {
	Path string
	Hide func(text string) string // returns a text without secrets
	Off  bool                     // nothing is written

	mu   sync.Mutex
	file *os.File
}

// Write implements io.Writer. What cannot be written is dropped: it is for the log.
func (f *Lines) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Off {
		return len(p), nil
	}
	if f.file == nil {
		file, err := atomicfile.OpenAppend(f.Path)
		if err != nil {
			return 0, err
		}
		f.file = file
	}
	if _, err := f.file.WriteString(f.Hide(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
