package logging

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/base/text"
)

// FollowOptions configure Follow. The zero value of a field is its default.
type FollowOptions struct {
	Color bool          // dress the parts of a line
	Wait  time.Duration // between looks at the file; 0 means 200 ms

	// Sleep waits until it is time for the next look; nil means a timer.
	Sleep func(context.Context, time.Duration) error
}

// Follow writes each line that is added to the log file to w, until ctx ends, which is
// no error. A file that became shorter is read from its beginning again, as it was
// emptied or replaced. Only whole lines are written.
func Follow(ctx context.Context, file string, w io.Writer, o FollowOptions) error {
	if o.Wait == 0 {
		o.Wait = 200 * time.Millisecond
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	offset, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	lines, rest := bufio.NewReader(f), ""
	for {
		part, err := lines.ReadString('\n')
		offset += int64(len(part))
		rest += part
		if err == nil {
			if _, err := io.WriteString(w, dress(text.Printable(rest[:len(rest)-1]), o.Color)+"\n"); err != nil {
				return err
			}
			rest = ""
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		if err := o.Sleep(ctx, o.Wait); err != nil {
			return nil
		}
		again, replaced, err := reopen(f, file, offset)
		if err != nil {
			return err
		}
		if replaced {
			f, offset, rest = again, 0, ""
			lines.Reset(f)
		}
	}
}

// reopen opens the file again if it is not f any more, or is shorter than the part already
// read. It returns f while the file is missing.
func reopen(f *os.File, file string, offset int64) (again *os.File, replaced bool, err error) {
	now, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return f, false, err
	}
	if open, err := f.Stat(); err == nil && os.SameFile(open, now) && now.Size() >= offset {
		return f, false, nil
	}
	if again, err = os.Open(file); err != nil {
		return f, false, err
	}
	_ = f.Close()
	return again, true, nil
}

// dress colors the parts of a line. A line that this program did not write stays as it
// is.
func dress(line string, color bool) string {
	const (
		reset, bold, white, cyan, magenta = "\x1b[0m", "\x1b[1m", "\x1b[37m", "\x1b[36m", "\x1b[35m"
		red, yellow, green, blue, faint   = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[34m", "\x1b[2m"
	)
	l, ok := Parse(line)
	if !ok || !color {
		return line
	}
	message := map[slog.Level]string{slog.LevelError: red, slog.LevelWarn: yellow, slog.LevelInfo: green, slog.LevelDebug: blue, LevelTrace: faint}[l.Level]
	return fmt.Sprintf("%s%s%s %s<%s>%s %s[%s]%s %s%s%s:%s%d%s - %s%s%s",
		white, l.Time.Format(timeFormat), reset, cyan, l.Thread, reset, bold, levelName(l.Level), reset,
		magenta, l.File, reset, bold, l.Line, reset, message, l.Message, reset)
}
