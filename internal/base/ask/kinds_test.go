//go:build linux || darwin

package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestTerminalSelect(t *testing.T) {
	t.Parallel()
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
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
	t.Parallel()
	q := Question{Kind: Multi, Text: "Which?", Options: []string{"red", "green", "blue"}}
	t.Run("marks", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("[ ] blue")
		c.types(" " + down + down + " " + enter)
		(<-done).check(t, `["red","blue"]`)
		c.sees("❯ red, blue")
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("[ ] blue")
		c.types(enter)
		(<-done).check(t, `[]`)
	})
	t.Run("needed", func(t *testing.T) { // Enter takes the selected entry if none is marked and one is needed
		needed := q
		needed.Validate = func(answer string) error {
			if answer == "[]" {
				return errors.New("one is needed")
			}
			return nil
		}
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), needed)
		c.sees("space marks")
		if strings.Contains(c.drawn(), "one is needed") {
			t.Errorf("an error before an answer:\n%s", c.drawn())
		}
		c.types(down + enter)
		(<-done).check(t, `["green"]`)

		needed.Validate = func(answer string) error {
			if answer != `["red","blue"]` {
				return errors.New("red and blue are needed")
			}
			return nil
		}
		c = newConsole(t)
		done = c.ask(t.Context(), c.asker(xterm), needed)
		c.sees("space marks")
		c.types(enter)
		c.sees("red and blue are needed")
		c.types(" " + down + down + " " + enter)
		(<-done).check(t, `["red","blue"]`)
	})
	t.Run("lines", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
		c.sees("Numbers, with commas: ")
		c.types("3, red,3\n")
		(<-done).check(t, `["blue","red"]`)
	})
}

func TestTerminalLine(t *testing.T) {
	t.Parallel()
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
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
	t.Parallel()
	long := "always for this session: " + strings.Repeat("very long ", 30)
	q := Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no", long}, Consent: true}
	trust := Question{Kind: Select, Text: "Trust it?", Options: []string{"no", "trust it"}, Affirms: "trust it", Lasts: true, Consent: true}
	plan := Question{Kind: Select, Text: "Accept it?", Options: []string{"accept", "accept, and write unasked", "no"}, Lasts: true, Consent: true}
	for _, tt := range []struct {
		name string
		q    Question
		keys string
		want string
	}{
		{"letter", q, "y", "yes"},
		{"capital", q, "N", "no"},
		{"always", q, "a" + enter, long},
		{"always_corrected", q, "a\x15n", "no"},
		{"always_by_digit", q, "3" + enter, long},
		{"digit", q, "2", "no"},
		{"word", q, "yes" + enter, "yes"},
		{"arrows", q, down + enter, "yes"},
		{"up_is_the_last", trust, "\x1b[A" + enter, "trust it"},
		{"first_letter", trust, "t" + enter, "trust it"},
		{"word_that_lasts", trust, "trust it" + enter, "trust it"},
		{"affirmed", trust, "y" + enter, "trust it"},
		{"declined", trust, "n", "no"},
		{"unknown_waits", plan, "2\x151" + enter, "accept"}, // the 2 alone is no answer
		{"unknown", plan, "2" + enter, "accept, and write unasked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(xterm), tt.q)
			c.sees("press ")
			if strings.Contains(c.drawn(), "❯") || strings.Contains(c.drawn(), "submit") {
				t.Errorf("an answer is selected:\n%s", c.drawn())
			}
			c.types(enter)
			c.sees("nothing is selected: press")
			if strings.Contains(c.drawn(), long) {
				t.Errorf("a label takes several rows:\n%s", c.drawn())
			}
			c.types(tt.keys)
			(<-done).check(t, tt.want)
			c.Restored()
		})
	}
	t.Run("other_keys", func(t *testing.T) { // none of a text that begins with another letter counts
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("press ")
		c.types("make clean")
		c.sees("press y n a 1-4")
		c.types("\x1b[200~yes\r\x1b[201~") // a paste
		c.types("jkgG")
		c.types("n")
		c.forget()
		c.sees("Run it?")
		select {
		case o := <-done:
			t.Fatalf("answered: %v", o)
		default:
		}
		c.types(ctrlC)
		if o := <-done; !errors.Is(o.err, context.Canceled) {
			t.Errorf("%v", o)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.seesQuestion(q, xterm)
		c.types(down + down + down)
		c.sees("very long") // all of the label that is selected, which is cut
		c.types(down + enter)
		c.sees("back")
		c.types("yes, but use the cache" + enter)
		(<-done).check(t, "no: yes, but use the cache")
		c.sees("❯ no: yes, but use the cache")
	})
	t.Run("refused_in_lines", func(t *testing.T) {
		for said, want := range map[string]string{"yes, but": "no: yes, but", "no, use b": "no, use b", "y": "yes", "a": long, "NO": "no", "nothing": "no: nothing"} {
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
			c.sees("own words: ")
			c.types(said + "\n")
			(<-done).check(t, want)
			if strings.HasPrefix(want, "no:") {
				c.sees("Answered: " + want)
			}
		}
	})
	t.Run("paged", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		long := q
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("line <%d>", i+1))
		}
		long.Text = strings.Join(lines, "\n\n")
		done := c.ask(t.Context(), c.asker(xterm), long)
		c.sees("lines above • page up shows the start")
		c.forget()
		c.types("\x1b[5~") // page up
		c.sees("lines 1 to ")
		if got := c.drawn(); !strings.Contains(got, "line <1>") || strings.Contains(got, "line <10>") {
			t.Errorf("the first page is\n%s", got)
		}
		c.types(strings.Repeat("\x1b[6~", 20)) // page down
		c.sees("to 79 of 79")
		c.sees("line <40>")
		c.sees("press ")
		c.types("y")
		(<-done).check(t, "yes")
	})
	t.Run("lines", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
		c.seesQuestion(q, "TERM=dumb")
		c.types("\n")
		c.types("no\n")
		(<-done).check(t, "no")
	})
}

func TestTerminalSecret(t *testing.T) {
	t.Parallel()
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
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
	t.Parallel()
	for _, tt := range []struct {
		name, typed string
		want        rune
		err         error
	}{
		{"key", "\x1b[Ar", 'r', nil},
		{"upper_case", "Q", 'q', nil},
		{"enter_is_the_first", enter, 'e', nil},
		{"interrupt", ctrlC, 0, context.Canceled},
		{"end", ctrlD, 0, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			type result struct {
				key rune
				err error
			}
			done := make(chan result, 1)
			go func() {
				key, err := c.asker(xterm).Key(t.Context(), "what: ", "erq")
				done <- result{key, err}
			}()
			c.sees("what: ")
			c.types(tt.typed)
			got := <-done
			if got.key != tt.want || !errors.Is(got.err, tt.err) {
				t.Errorf("%q, %v", got.key, got.err)
			}
			if tt.want != 0 {
				c.sees("what: " + string(tt.want))
			}
		})
	}
}

// TestKeyNamesTheKeys presses a key that is none, after which nothing counts that is typed without a pause.
func TestKeyNamesTheKeys(t *testing.T) {
	t.Parallel()
	for name, typed := range map[string]string{"key": "y", "word": "make test", "paste": "\x1b[200~e\x1b[201~"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := make(chan rune, 1)
			go func() {
				key, _ := c.asker(xterm).Key(t.Context(), "what: ", "\nerq")
				done <- key
			}()
			c.sees("what: ")
			c.types(typed)
			c.sees("Press one of these keys: e, r, q\r\nwhat: ")
			c.types("q")
			if key := <-done; key != 'q' {
				t.Errorf("%q", key)
			}
		})
	}
}

func TestKeyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.asker(xterm).Key(ctx, "what: ", "erq")
		done <- err
	}()
	c.sees("what: ")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPipedKinds(t *testing.T) {
	t.Parallel()
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

// TestQuestionStaysOnTheScreen asks with a text of a model that has many empty lines, or many lines.
func TestQuestionStaysOnTheScreen(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":  "echo a" + strings.Repeat("\n   \n", 200) + "rm -r b",
		"many":   "echo a\n" + strings.Repeat("echo x\n", 200) + "rm -r b",
		"long":   "echo a" + strings.Repeat(" xxxxxxxx", 500) + " rm -r b",
		"option": "rm -r b",
	} {
		for _, env := range []string{xterm, "TERM=dumb"} {
			t.Run(name+"/"+env, func(t *testing.T) {
				t.Parallel()
				c := newConsole(t)
				q := Question{Kind: Choice, Text: "May this be run?\n\n    " + text, Options: []string{"yes", "no", "always for this session: " + strings.Repeat(text+" ", 40)}, Consent: true}
				done := c.ask(t.Context(), c.asker(env), q)
				if env == xterm {
					c.sees("press ")
				} else {
					c.Sees("own words: ")
				}
				c.forget()
				for _, want := range []string{"May this be run?", "yes", "no"} {
					if !strings.Contains(c.drawn(), want) {
						t.Errorf("%q is not on the screen:\n%s", want, c.drawn())
					}
				}
				if name == "empty" && !strings.Contains(c.drawn(), "(399 empty lines)") {
					t.Errorf("the screen does not say how many empty lines there are:\n%s", c.drawn())
				}
				c.types("n" + map[bool]string{false: "\n"}[env == xterm])
				(<-done).check(t, "no")
			})
		}
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a", "a\n": "a\n", "\n": "\n", "a\n\nb": "a\n\nb", "a\n\n\nb": "a\n\n\nb", "a\n\n \n\t\nb\n\n\n\n": "a\n(3 empty lines)\nb\n(4 empty lines)",
	} {
		if got := foldEmptyLines(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestWrapped wraps lines. What is indented stays so.
func TestWrapped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"a b c":                          "a b c",
		"Run it in one of these places?": "Run it in one of\nthese places?",
		"    echo a" + strings.Repeat(" ", 120) + "Level read: safe":    "    echo a (120\n    blanks) Level\n    read: safe",
		"   12  echo a" + strings.Repeat("\t", 30) + "Level read: safe": "   12  echo a (30\n       blanks) Level\n       read: safe",
		strings.Repeat(" ", 124) + "Level read: safe":                   "         (116\n        blanks)\n        Level read:\n        safe",
		"    " + strings.Repeat("x", 20):                                "    " + strings.Repeat("x", 16) + "\n    xxxx",
		"\t\tb":                                                         "        b",
	} {
		if got := wrapText(text, 20); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestDiffsAreInColor: a line that was added stays in its color when it is wrapped; without escape sequences there are none.
func TestDiffsAreInColor(t *testing.T) {
	t.Parallel()
	q := Question{Kind: Choice, Text: "Change it?\n\n    @@ -1 +1 @@\n    -one\n    +" + strings.Repeat("two ", 20) + "\n\n- a list", Options: []string{"yes", "no"}, Consent: true}
	for env, colored := range map[string]bool{xterm: true, "TERM=dumb": false, "NO_COLOR=1": false} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(env), q)
			c.seesQuestion(Question{Kind: q.Kind, Text: "a list", Options: q.Options, Consent: true}, env)
			raw := c.raw()
			for _, line := range []string{"\x1b[31m    -one", "\x1b[32m    +two", "\x1b[32m    two"} {
				if strings.Contains(raw, line) != colored {
					t.Errorf("%q is there: %v, in %q", line, !colored, raw)
				}
			}
			if strings.Contains(raw, "\x1b[31m- a") {
				t.Errorf("a list is a diff in %q", raw)
			}
			c.types("n\n")
			(<-done).check(t, "no")
		})
	}
}

// TestMatterIsShownAgain asks about a command that does not fit on the screen, with a long reason above it.
func TestMatterIsShownAgain(t *testing.T) {
	t.Parallel()
	matter := "Run this command of 200 lines with sh?\n\n    1  rm -r first\n    2  echo second\n" + strings.Repeat("    3  echo x\n", 198)
	for env, counts := range map[string]string{xterm: "press ", "TERM=dumb": "own words: "} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			q := Question{Kind: Choice, Text: "The model says why:\n\n    a reason\n\n" + matter, Matter: matter, Options: []string{"yes", "no"}, Consent: true}
			done := c.ask(t.Context(), c.asker(env), q)
			c.sees(counts)
			_, screen, _ := strings.Cut(c.drawn(), counts) // what was written before, and then the screen
			for _, want := range []string{"of 200 lines", "rm -r first", "echo second"} {
				if !strings.Contains(screen, want) {
					t.Errorf("%q is not next to the answers:\n%s", want, screen)
				}
			}
			c.types("n\n")
			(<-done).check(t, "no")
		})
	}
}

// TestLastingAnswersTakeEnter presses keys of answers that hold for more than one call.
func TestLastingAnswersTakeEnter(t *testing.T) {
	t.Parallel()
	always := Question{Kind: Choice, Options: []string{"yes", "no", "always for this session: x", "always for this agent: x"}, Consent: true}
	trust := Question{Kind: Select, Options: []string{"no", "trust it"}, Affirms: "trust it", Lasts: true, Consent: true}
	for _, tt := range []struct {
		q    Question
		keys string
		want string // of Enter
	}{
		{always, "a", always.Options[2]},
		{always, "aa", ""},
		{always, "4", always.Options[3]},
		{always, "44", ""},
		{always, "a, and why", ""},
		{trust, "y", "trust it"},
		{trust, "yy", ""},
		{trust, "t", "trust it"},
		{trust, "2", "trust it"},
		{trust, "trust it", "trust it"},
		{trust, "trust", ""},
		{always, "always for this session: x", ""},
		{trust, "to do", ""},
	} {
		l := newList(&tt.q)
		for _, key := range strings.Split(tt.keys, "") {
			switch l.add(key) {
			case alone:
				t.Errorf("%q: the key %s answers", tt.keys, key)
			case refused: // which drops the rest
			default:
				continue
			}
			break
		}
		got := ""
		if l.enter() {
			got = l.answer()
		}
		if got != tt.want {
			t.Errorf("%q and Enter: %q, want %q", tt.keys, got, tt.want)
		}
	}
}

// TestNothingElseConsents types each character, and words that rows have, before Enter. Only documented answers grant something.
func TestNothingElseConsents(t *testing.T) {
	t.Parallel()
	const command = "grep -rn x lib # ok continue wait stop"
	permission := Question{Kind: Choice, Options: []string{"yes", "no", "always for this session: level network: exactly " + command, "always for this agent: level network: exactly " + command}, Consent: true}
	trust := Question{Kind: Select, Options: []string{"no", "trust it"}, Affirms: "trust it", Lasts: true, Consent: true}
	form := Question{Kind: Select, Options: []string{"accept", "decline"}, Affirms: "accept", Consent: true}
	for _, tt := range []struct {
		q       Question
		refuses string // the answer that grants nothing
		answers []string
	}{
		{permission, "no", []string{"y", "Y", "1", "yes", "a", "A", "3", "4"}},
		{trust, "no", []string{"y", "Y", "t", "T", "2", "trust it"}},
		{form, "decline", []string{"y", "Y", "a", "A", "1", "accept"}},
	} {
		typed := append(strings.Fields(strings.Join(tt.q.Options, " ")), "yes", "in", "trust it", "accept", command, "always", "level network", "yes please", "t rust it", "se", "12")
		for c := ' '; c <= '~'; c++ {
			typed = append(typed, string(c), strings.Repeat(string(c), 2), "always "+string(c))
		}
		for _, text := range typed {
			for _, before := range []int{0, 1, 3} { // how far the selection was moved
				l := newList(&tt.q)
				for range before {
					l.move(1)
				}
				for _, key := range strings.Split(text, "") {
					if l.add(key) == refused {
						break
					}
				}
				granted := l.enter() && l.selectedGrants(tt.refuses)
				if granted != slices.Contains(tt.answers, text) {
					t.Errorf("%q, %d down: granted is %v", text, before, granted)
				}
				if l.at < 0 && strings.Contains(l.view(80, 24), "submit") {
					t.Errorf("%q: Enter is offered where nothing is selected", text)
				}
				if answer, err := tt.q.Match(text); before == 0 && err == nil && slices.Contains(tt.q.Options, answer) && answer != tt.refuses && !granted &&
					answer != text {
					t.Errorf("%q: as a line it is %q", text, answer)
				}
			}
		}
	}
}

// selectedGrants reports whether the selected row is an answer other than the one that refuses.
func (l *list) selectedGrants(refuses string) bool {
	row, ok := l.selection()
	return ok && row != ownAnswer && l.entries[row] != refuses
}

// TestNoWithAReason types why after a no.
func TestNoWithAReason(t *testing.T) {
	t.Parallel()
	q := Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no"}, Consent: true}
	for typed, want := range map[string]string{"no, use the staging server\r": "no, use the staging server", "No thanks\r": "No thanks", "no\r": "no", "n\r": "no", "n": "no"} {
		t.Run(typed, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(xterm), q)
			c.seesQuestion(q, xterm)
			c.types(typed)
			(<-done).check(t, want)
		})
	}
}

// TestMessageAfterTheEnd sends what a field asked for when the user has already left.
func TestMessageAfterTheEnd(t *testing.T) {
	q := approval()
	w := newWidget(&q, screen{width: 80})
	w.Update(w.openField()())
	w.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	w.Update(tea.WindowSizeMsg{Width: 60, Height: 20})
	if view := w.View().Content; !strings.Contains(view, "not answered") {
		t.Errorf("the last view is %q", view)
	}
}
