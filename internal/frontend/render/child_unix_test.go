//go:build unix

package render_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"loki/internal/frontend/render"
)

// TestMain asks the terminal when it is run as a child of TestBackground, and shows
// a document when it is one of TestTmux.
func TestMain(m *testing.M) {
	if script := os.Getenv("RENDER_TEST_SCRIPT"); script != "" {
		if err := playScript(script); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
		os.Exit(0)
	}
	if pace := os.Getenv("RENDER_TEST_AGENTS"); pace != "" {
		playAgents(pace)
		os.Exit(0)
	}
	if os.Getenv("RENDER_TEST_BACKGROUND") != "" {
		askBackground()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// askBackground prints what the terminal answers, and what was typed meanwhile and could not
// be passed on.
func askBackground() {
	word := "not asked"
	if b := render.AskBackground(); b != nil {
		dark, known := b.Settle()
		word = map[[2]bool]string{{true, true}: "dark", {false, true}: "light"}[[2]bool{dark, known}]
		if !known {
			word = "unknown"
		}
		if lost := b.LostInput(); lost != "" {
			word += " lost " + lost
		}
	}
	os.Stdout.WriteString(word + "\n")
}

// TestBackground asks terminals that answer both questions, only the second one, in pieces
// and none, and checks that nothing of the answer is shown or left behind.
func TestBackground(t *testing.T) {
	for _, tt := range []struct {
		name, ahead string
		answer      []string
		want        string
	}{
		{name: "dark", answer: []string{"\x1b]11;rgb:1e1e/1f1f/2626\x1b\\\x1b[?62;c"}, want: "dark"},
		{name: "light", answer: []string{"\x1b]11;rgb:fafa/fafa/fafa\x07\x1b[?62;22c"}, want: "light"},
		{name: "in_pieces", answer: []string{"\x1b]11;rgb:fafa/", "fafa/fafa\x1b", "\\\x1b[?6", "2;c"}, want: "light"},
		{name: "color_not_known", answer: []string{"\x1b[?62;c"}, want: "unknown"},
		{name: "silent", want: "unknown"},
		{name: "typed_ahead", ahead: "ls\n", want: "not asked"},
		{name: "half_a_line_ahead", ahead: "ls", want: "not asked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // the silent one takes BackgroundPatience
			far, near, err := pty.Open()
			if err != nil {
				t.Skip("no pseudo terminal:", err)
			}
			defer far.Close()
			if _, err := far.WriteString(tt.ahead); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "RENDER_TEST_BACKGROUND=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = near, near, near
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			near.Close()
			var got bytes.Buffer
			buf := make([]byte, 256)
			for sent := false; ; {
				n, err := far.Read(buf)
				got.Write(buf[:n])
				if !sent && strings.Contains(got.String(), "\x1b[c") {
					sent = true
					for _, piece := range tt.answer {
						if _, err := far.WriteString(piece); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err != nil {
					break
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			want := tt.want + "\r\n"
			if tt.ahead == "" {
				want = "\x1b]11;?\x1b\\\x1b[c" + want
			} else {
				want = strings.ReplaceAll(tt.ahead, "\n", "\r\n") + want
			}
			if got.String() != want {
				t.Errorf("the terminal shows %q, want %q", got.String(), want)
			}
		})
	}
}

// TestBackgroundGivesBack types between the question and the answer. What is typed is
// either there for the next program or reported.
func TestBackgroundGivesBack(t *testing.T) {
	far, near, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo terminal:", err)
	}
	defer far.Close()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `"$0"; IFS= read -r line; echo "read $line"`, os.Args[0])
	cmd.Env = append(os.Environ(), "RENDER_TEST_BACKGROUND=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = near, near, near
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	near.Close()
	var got bytes.Buffer
	buf := make([]byte, 256)
	answered, ended := false, false
	for {
		n, err := far.Read(buf)
		got.Write(buf[:n])
		if !answered && strings.Contains(got.String(), "\x1b[c") {
			answered = true
			if _, err := far.WriteString("ec\x1b]11;rgb:0/0/0\x07ho\x1b[?62;c"); err != nil {
				t.Fatal(err)
			}
		}
		if !ended && strings.Contains(got.String(), "dark") {
			ended = true
			if _, err := far.WriteString(" x\n"); err != nil {
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
	if !strings.Contains(got.String(), "read echo x") && !strings.Contains(got.String(), "lost echo") {
		t.Errorf("what was typed is neither read nor reported: %q", got.String())
	}
}
