//go:build unix

package render_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"loki/internal/render"
)

// TestMain asks the terminal when it is run as a child of TestDarkBackground, and shows
// a document when it is one of TestTmux.
func TestMain(m *testing.M) {
	if script := os.Getenv("RENDER_TEST_SCRIPT"); script != "" {
		if err := playScript(script); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
		os.Exit(0)
	}
	if wait, err := time.ParseDuration(os.Getenv("RENDER_TEST_BACKGROUND")); err == nil {
		dark, known := render.DarkBackground(os.Stdin, os.Stdout, wait)
		switch {
		case !known:
			os.Stdout.WriteString("unknown\n")
		case dark:
			os.Stdout.WriteString("dark\n")
		default:
			os.Stdout.WriteString("light\n")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestDarkBackground asks a terminal that answers both questions, only the second one,
// and none.
func TestDarkBackground(t *testing.T) {
	for _, tt := range []struct{ name, answer, wait, want string }{
		{"dark", "\x1b]11;rgb:1e1e/1f1f/2626\x1b\\\x1b[?62;c", "10s", "dark"},
		{"light", "\x1b]11;rgb:fafa/fafa/fafa\x07\x1b[?62;c", "10s", "light"},
		{"colour_not_known", "\x1b[?62;c", "10s", "unknown"},
		{"silent", "", "20ms", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "RENDER_TEST_BACKGROUND="+tt.wait)
			f, err := pty.Start(cmd)
			if err != nil {
				t.Skip("no pseudo terminal:", err)
			}
			defer f.Close()
			var got bytes.Buffer
			buf := make([]byte, 256)
			sent := false
			for {
				n, err := f.Read(buf)
				got.Write(buf[:n])
				if !sent && strings.Contains(got.String(), "\x1b[c") {
					sent = true
					if _, err := f.WriteString(tt.answer); err != nil {
						t.Fatal(err)
					}
				}
				if err != nil {
					break
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			out := got.String()[strings.LastIndex(got.String(), "\x1b[c")+3:]
			if strings.TrimSpace(out) != tt.want {
				t.Errorf("got %q, want %s", out, tt.want)
			}
		})
	}
}

func TestDarkBackgroundOfNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, known := render.DarkBackground(r, w, time.Minute); known {
		t.Error("a pipe has a background")
	}
	w.Close()
	if text := new(bytes.Buffer); true {
		if _, err := text.ReadFrom(r); err != nil || text.Len() > 0 {
			t.Errorf("the pipe was sent %q: %v", text, err)
		}
	}
}
