//go:build !windows

package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTerminalSelect(t *testing.T) {
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			c := newConsole(t)
			q := Question{Kind: Select, Text: "Which?", Options: []string{"red", "green"}, Default: "green", HasDefault: true}
			done := c.ask(t.Context(), c.asker(env), q)
			if env == xterm {
				c.sees("submit")
				c.types(enter)
			} else {
				c.sees("Number [green]: ")
				c.types("blue\n")
				c.sees(`"blue" is not one of red, green`)
				c.types("\n")
			}
			(<-done).check(t, "green")
			if strings.Contains(c.drawn(), "Something else") {
				t.Error("an answer of one's own is offered")
			}
		})
	}
}

func TestTerminalMulti(t *testing.T) {
	q := Question{Kind: Multi, Text: "Which?", Options: []string{"red", "green", "blue"}}
	t.Run("marks", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("[ ] blue")
		c.types(" " + down + down + " " + enter)
		(<-done).check(t, `["red","blue"]`)
		c.sees("❯ red, blue")
	})
	t.Run("none", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("[ ] blue")
		c.types(enter)
		(<-done).check(t, `[]`)
	})
	t.Run("needed", func(t *testing.T) { // the help is there until Enter is pressed in vain
		needed := q
		needed.Validate = func(answer string) error {
			if answer == "[]" {
				return errors.New("one is needed")
			}
			return nil
		}
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), needed)
		c.sees("x toggle")
		if strings.Contains(c.drawn(), "one is needed") {
			t.Errorf("an error before an answer:\n%s", c.drawn())
		}
		c.types(enter)
		c.sees("one is needed")
		c.types(" " + enter)
		(<-done).check(t, `["red"]`)
	})
	t.Run("lines", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
		c.sees("Numbers, with commas: ")
		c.types("3, red,3\n")
		(<-done).check(t, `["blue","red"]`)
	})
}

func TestTerminalLine(t *testing.T) {
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(env), Question{Kind: Line, Text: "Name?", Validate: atLeast(3)})
			c.sees("Name?")
			c.types("me" + enter)
			c.sees("does not hold")
			if env == xterm {
				c.types("lissa" + enter)
			} else {
				c.types("melissa" + enter)
			}
			(<-done).check(t, "melissa")
			if strings.Contains(c.drawn(), "new line") {
				t.Errorf("a line can have several:\n%s", c.drawn())
			}
		})
	}
	c := newConsole(t)
	done := c.ask(t.Context(), c.asker(xterm), Question{Kind: Line, Text: "File?", Default: "/a/b", HasDefault: true, Validate: atLeast(30)})
	c.sees("/a/b (default)")
	c.types(enter)
	(<-done).check(t, "/a/b")
}

// TestTerminalConsent presses Enter, which gives no consent, and then chooses.
func TestTerminalConsent(t *testing.T) {
	long := "always for this session: " + strings.Repeat("very long ", 30)
	q := Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no", long}, Consent: true}
	t.Run("chosen", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("❯ (choose an answer)")
		c.types(enter)
		c.sees("choose with the arrow keys")
		if strings.Contains(c.drawn(), long) {
			t.Errorf("a label takes several rows:\n%s", c.drawn())
		}
		c.types(down + enter)
		(<-done).check(t, "yes")
	})
	t.Run("select", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), Question{Kind: Select, Text: "Trust it?", Options: []string{"no", "trust it"}, Consent: true})
		c.sees("❯ (choose an answer)")
		c.types(enter)
		c.sees("choose with the arrow keys")
		c.types(down + down + enter)
		(<-done).check(t, "trust it")
	})
	t.Run("long", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("❯ (choose an answer)")
		c.types(down + down + down + enter)
		(<-done).check(t, long)
	})
	t.Run("refused", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("no, and say why…")
		c.types(down + down + down)
		c.sees("very long") // all of the label under the cursor, which is cut
		c.types(down + enter)
		c.sees("back")
		c.types("yes, but use the cache" + enter)
		(<-done).check(t, "no: yes, but use the cache")
		c.sees("❯ no: yes, but use the cache")
	})
	t.Run("refused_in_lines", func(t *testing.T) {
		for said, want := range map[string]string{"yes, but": "no: yes, but", "no, use b": "no, use b", "y": "y", "NO": "no", "nothing": "no: nothing"} {
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
			c.sees("own words: ")
			c.types(said + "\n")
			(<-done).check(t, want)
			if strings.Contains(want, " ") {
				c.sees("Answered: " + want)
			}
		}
	})
	t.Run("paged", func(t *testing.T) {
		c := newConsole(t)
		long := q
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("line <%d>", i+1))
		}
		long.Text = strings.Join(lines, "\n\n")
		done := c.ask(t.Context(), c.asker(xterm), long)
		c.sees("63 lines above • page up shows the start")
		c.forget()
		c.types("\x1b[5~") // page up
		c.sees("lines 1 to 16 of 79")
		if got := c.drawn(); !strings.Contains(got, "line <1>") || strings.Contains(got, "line <9>") {
			t.Errorf("the first page is\n%s", got)
		}
		c.types(strings.Repeat("\x1b[6~", 20)) // page down
		c.sees("lines 64 to 79 of 79")
		c.sees("line <40>")
		c.types(down + enter)
		(<-done).check(t, "yes")
	})
	t.Run("lines", func(t *testing.T) {
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
		c.sees("Run it?")
		c.types("\n")
		c.types("no\n")
		(<-done).check(t, "no")
	})
}

func TestTerminalSecret(t *testing.T) {
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(env), Question{Kind: Secret, Text: "Password?", Validate: atLeast(3)})
			if env == xterm {
				c.sees("submit")
			} else {
				c.sees("Answer: ")
			}
			c.types("xy\x7f\x7fhunter2" + enter)
			(<-done).check(t, "hunter2")
			if strings.Contains(c.drawn(), "hunter") || strings.Contains(c.raw(), "hunter") {
				t.Errorf("the secret is on the screen:\n%s", c.drawn())
			}
		})
	}
}

func TestKey(t *testing.T) {
	for _, tt := range []struct {
		name, typed string
		want        rune
		err         error
	}{
		{"key", "x\x1b[Ar", 'r', nil},
		{"upper_case", "Q", 'q', nil},
		{"enter_is_the_first", enter, 'e', nil},
		{"interrupt", ctrlC, 0, context.Canceled},
		{"end", ctrlD, 0, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t)
			type result struct {
				key rune
				err error
			}
			done := make(chan result, 1)
			go func() {
				key, err := c.asker(xterm).Key(t.Context(), "what? ", "erq")
				done <- result{key, err}
			}()
			c.sees("what? ")
			c.types(tt.typed)
			got := <-done
			if got.key != tt.want || !errors.Is(got.err, tt.err) {
				t.Errorf("%q, %v", got.key, got.err)
			}
			if tt.want != 0 {
				c.sees("what? " + string(tt.want))
			}
		})
	}
}

func TestKeyEndsWithItsContext(t *testing.T) {
	c := newConsole(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.asker(xterm).Key(ctx, "what? ", "erq")
		done <- err
	}()
	c.sees("what? ")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPipedKinds(t *testing.T) {
	p := NewPiped(strings.NewReader("2\nblue\n1,2\n[\"b\"]\nc\n\nhush\n"))
	ask := func(k Kind) string {
		answer, err := p.Ask(t.Context(), Question{Kind: k, Options: []string{"a", "b"}})
		if err != nil {
			return "error"
		}
		return answer
	}
	var got []string
	for _, k := range []Kind{Select, Select, Multi, Multi, Multi, Multi, Secret} {
		got = append(got, ask(k))
	}
	want := `b error ["a","b"] ["b"] error [] hush`
	if strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
}
