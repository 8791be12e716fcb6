package display

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"loki/internal/base/file/atomicfile/cache"
	"loki/internal/frontend/render"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
	"loki/internal/setup/config"
)

// Markdown returns how answers are laid out. It is nil if they are printed as they come:
// standard output is not a terminal that obeys escape sequences.
func (d *Display) Markdown() *render.MarkdownOptions {
	out, ok := d.o.Out.(*os.File)
	if !ok || !d.o.OutTerminal || d.o.App == nil || !render.IsTerminal(out, d.Getenv) {
		return nil
	}
	cfg := d.o.App.Config
	o := &render.MarkdownOptions{
		Size: render.Size(out), Terminal: render.DetectCapabilities(d.Getenv), WrapCode: cfg.WrapCode,
		Raw: d.o.App.DryRun,
	}
	if n, ok := cfg.Wrap.Columns(); ok {
		o.Wrap = n
	} else if cfg.Wrap == config.WrapAuto {
		o.Wrap = markdown.Auto
	}
	if !d.OutColor() {
		return o
	}
	light := d.background(out, cfg.Highlight && !d.o.App.DryRun()) // later the terminal is read from
	opened := sync.OnceValue(func() *theme.Theme {
		light := light()
		colors, err := theme.Open(d.o.App.Paths.ThemeFile(light), light)
		if err != nil {
			d.o.Warn(err.Error())
		}
		return colors
	})
	o.Theme = func() *theme.Theme {
		if d.plain.Load() {
			return nil
		}
		return opened()
	}
	return o
}

// backgroundTTL is how long the background of a terminal is taken for unchanged.
const backgroundTTL = time.Hour

// background returns what reports whether answers are shown on a light background: as the
// configuration says, or else the environment, what is remembered of the terminal, or the
// terminal itself, unless it must not be asked. If it is asked, Settle waits for the answer.
func (d *Display) background(out *os.File, ask bool) func() bool {
	always := func(light bool) func() bool { return func() bool { return light } }
	if name := d.o.App.Config.Theme; name != nil {
		return always(*name == "light")
	}
	if dark, known := render.DarkEnvironment(d.Getenv); known {
		return always(!dark)
	}
	session := render.TerminalSession(out, d.Getenv)
	if session == "" {
		return always(false)
	}
	memory := cache.Files{Dir: filepath.Join(d.o.App.Paths.CacheDir, "terminals")}
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(session)))
	if background, ok := memory.Get(key); ok {
		return always(string(background) == "light")
	}
	if !ask {
		return always(false)
	}
	asked := render.AskBackground()
	if asked == nil {
		return always(false)
	}
	d.light = sync.OnceValue(func() bool {
		dark, known := asked.Settle()
		background := "dark"
		if known && !dark {
			background = "light"
		}
		memory.Put(key, []byte(background), backgroundTTL)
		if typed := asked.LostInput(); typed != "" {
			d.o.Typed(typed)
		}
		return background == "light"
	})
	return d.light
}
