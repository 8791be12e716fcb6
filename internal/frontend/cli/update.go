package cli

import (
	"context"
	"fmt"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/app"
	selfupdate "loki/internal/base/file/update"
)

// update replaces the program by a release of it. A configuration that cannot be used does not
// keep it from that.
func (c *command) update(ctx context.Context) error {
	o, err := app.UpdateOptions(c.quietApp(), c.environ)
	if err != nil {
		return err
	}
	o.Force, o.Warn = c.opts.force, c.warn
	if c.InTerminal {
		o.Asker = c.terminal()
	}
	if c.InTerminal && c.ErrTerminal && !c.opts.quiet {
		o.Progress = c.showDownload()
	}
	version := c.opts.update
	if version == anyVersion {
		version = ""
	}
	done, err := selfupdate.Run(ctx, o, version)
	if err != nil {
		return err
	}
	return c.say("%s", done.Text())
}

// showDownload returns what shows the progress of a download on one line, which ends with it.
func (c *command) showDownload() func(done, all int64) {
	shown := ""
	return func(done, all int64) {
		const mb = 1e6
		line := fmt.Sprintf("Downloaded %.1f MB", float64(done)/mb)
		if all > 0 {
			line = fmt.Sprintf("Downloaded %.1f of %.1f MB", float64(done)/mb, float64(all)/mb)
		}
		if done == all {
			line += "\n"
		}
		if line != shown {
			fmt.Fprint(c.Err, "\r"+ansi.EraseLineRight+line)
			shown = line
		}
	}
}
