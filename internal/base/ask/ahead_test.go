//go:build linux || darwin

package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/ptytest"
	"loki/internal/base/text/sample"
)

// kindsOfQuestion are questions of every kind, each with what answers it.
func kindsOfQuestion() map[string]struct {
	q    Question
	keys string
	want string
} {
	type asked = struct {
		q    Question
		keys string
		want string
	}
	return map[string]asked{
		"permission": {Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no", "always for this session: x"}, Consent: true}, "y", "yes"},
		"trust":      {Question{Kind: Select, Text: "Trust it?", Options: []string{"no", "trust it"}, Affirms: "trust it", Lasts: true, Consent: true}, "t\r", "trust it"},
		"plan":       {Question{Kind: Select, Text: "What now?", Options: []string{"run it", "edit it", "save it as an agent", "no"}, Consent: true}, "s", "save it as an agent"},
		"approval":   {Question{Kind: Choice, Text: "Mail it?", Options: []string{"send", "drop"}}, "drop\r", "drop"},
		"picker":     {Question{Kind: Select, Text: "Which model?", Options: []string{"local:cmd", "local:md", "other:12"}}, "md\r", "local:md"},
		"confirm":    {Question{Kind: Select, Text: "Replace it?", Options: []string{"yes", "no"}, Default: "no", HasDefault: true}, "y\r", "yes"},
		"several":    {Question{Kind: Multi, Text: "Which ones?", Options: []string{"red", "green"}}, "green\r", `["green"]`},
		"text":       {Question{Kind: Text, Text: "Why?", Default: "because", HasDefault: true}, "so\r", "so"},
		"line":       {Question{Kind: Line, Text: "Name?"}, "me\r", "me"},
		"secret":     {Question{Kind: Secret, Text: "Password?"}, "hush\r", "hush"},
	}
}

// TestNothingTypedAheadAnswers types before a question is there, in the mode in which a terminal is while a program works, and
// checks that only what is typed afterwards answers, and that all the rest is kept, in order.
func TestNothingTypedAheadAnswers(t *testing.T) {
	t.Parallel()
	for _, env := range []string{xterm, "TERM=dumb"} {
		for name, tt := range kindsOfQuestion() {
			t.Run(env+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := newConsole(t)
				var kept strings.Builder
				a := c.asker(env)
				a.opts.Keep = func(typed []byte, _ bool) { kept.Write(typed) }
				want := tt.want
				for i, typed := range ptytest.TypedAhead(200 / sample.Step(40)) {
					c.types(typed)
					kept.Reset()
					c.forget()
					q := tt.q
					q.Text = fmt.Sprintf("%s (%d)", q.Text, i)
					done := c.ask(t.Context(), a, q)
					c.seesQuestion(q, env)
					keys := tt.keys
					if env != xterm {
						keys = strings.TrimSuffix(keys, "\r") + "\r"
						if name == "trust" || name == "plan" || name == "picker" { // lines are options, not parts of them
							keys = want + "\r"
						}
					}
					c.types(keys)
					if o := <-done; o.err != nil || o.answer != want {
						t.Fatalf("%q was typed before: got %q, %v, want %q\n%s", typed, o.answer, o.err, want, c.drawn())
					}
					if got := kept.String(); env == xterm && strings.Count(got, "y") < strings.Count(typed, "y") {
						t.Errorf("%q was typed before, and %q kept", typed, got)
					}
				}
			})
		}
	}
}

// TestKeyIgnoresWhatWasTypedAhead does the same with the menu of keys.
func TestKeyIgnoresWhatWasTypedAhead(t *testing.T) {
	t.Parallel()
	for _, env := range []string{xterm, "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			for texts := range slices.Chunk(ptytest.TypedAhead(40), 5) {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					c := newConsole(t)
					a := c.asker(env)
					for i, typed := range texts {
						c.types(typed)
						prompt := fmt.Sprintf("what now %d: ", i)
						done := make(chan rune, 1)
						go func() {
							key, _ := a.Key(t.Context(), prompt, "\nerdcq")
							done <- key
						}()
						c.sees(prompt)
						c.types("q")
						if key := <-done; key != 'q' {
							t.Errorf("%q was typed before, and %q chosen", typed, key)
						}
					}
				})
			}
		})
	}
}

// TestRestOfASequence sends the end of a reply of the terminal, or of a paste, when the question is there already.
func TestRestOfASequence(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][2]string{
		"reply": {"\x1b]11;rgb:eeee/", "eeee/eeee\x1b\\"},
		"paste": {"\x1b[200~first\r", "e\ry\r\x1b[201~"},
		"key":   {"\x1b[1;", "5B"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			k, err := openKeyboard(c.Program, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer k.close()
			c.types(parts[0])
			if err := k.markShown(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.types(parts[1] + "q")
			event, err := k.next(t.Context())
			if r := eventRune(event); r != 'q' || err != nil {
				t.Errorf("%q, %v", r, err)
			}
		})
	}
}

// TestTypingOn types a sentence at 250 ms a key when a question is on the screen, that grants something by keys of it. None of
// it answers; what is typed after a pause does. In the record of what was typed, the sentence is late.
func TestTypingOn(t *testing.T) {
	t.Parallel()
	const sentence = "ya1e\rt\r"
	questions := kindsOfQuestion()
	for _, env := range []string{xterm, "TERM=dumb"} {
		for _, name := range []string{"permission", "trust", "plan", "approval", "confirm", "menu"} {
			t.Run(env+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := newConsole(t)
				a := c.asker(env)
				kept := ""
				a.opts.Keep = func(typed []byte, late bool) {
					if kept += string(typed); !late && len(typed) > 0 {
						t.Errorf("%q is not late", typed)
					}
				}
				tt := questions[name]
				tt.q.Text = cmp.Or(tt.q.Text, "what")
				done := make(chan outcome, 1)
				go func() {
					if name == "menu" {
						key, err := a.Key(t.Context(), "what: ", "\nerdcq")
						done <- outcome{string(key), err}
						return
					}
					answer, err := a.Ask(t.Context(), tt.q)
					done <- outcome{answer, err}
				}()
				c.sees(tt.q.Text)
				slow := false
				last := time.Now()
				tick := time.NewTicker(250 * time.Millisecond)
				defer tick.Stop()
				for _, key := range strings.Split(sentence, "") {
					c.types(key)
					<-tick.C
					slow = slow || time.Since(last) > reading-100*time.Millisecond
					last = time.Now()
				}
				if slow {
					t.Skip("the machine is too busy to type at this pace")
				}
				select {
				case o := <-done:
					t.Fatalf("%q, %v was answered", o.answer, o.err)
				default:
				}
				c.types(ctrlC)
				if o := <-done; !errors.Is(o.err, context.Canceled) {
					t.Errorf("got %q, %v", o.answer, o.err)
				}
				if kept != sentence {
					t.Errorf("kept %q", kept)
				}
			})
		}
	}
}

// TestSentenceThatBeginsWithAnAnswer types sentences at 120 ms a key when keys count. The first key answers nothing, nor does the
// Enter at the end. The sentence is kept late.
func TestSentenceThatBeginsWithAnAnswer(t *testing.T) {
	t.Parallel()
	questions := kindsOfQuestion()
	for name, sentence := range map[string]string{
		"permission": "yes but do not\r", "permission/digit": "1 more thing\r", "permission/twice": "yyn\r", "trust": "to do\r", "plan": "run the tests\r", "menu": "explain it\r",
		"permission/always": "a word\r",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			a := c.asker(xterm)
			kept := ""
			a.opts.Keep = func(typed []byte, late bool) {
				if kept += string(typed); !late && len(typed) > 0 {
					t.Errorf("%q is not late", typed)
				}
			}
			name, _, _ := strings.Cut(name, "/")
			q := questions[name].q
			done := make(chan outcome, 1)
			if name == "menu" {
				go func() {
					key, err := a.Key(t.Context(), "what: ", "\nerdcq")
					done <- outcome{strings.Trim(string(key), "\x00"), err}
				}()
				c.sees("what: ")
			} else {
				go func() {
					answer, err := a.Ask(t.Context(), q)
					done <- outcome{answer, err}
				}()
				c.seesQuestion(q, xterm)
			}
			tick := time.NewTicker(120 * time.Millisecond)
			defer tick.Stop()
			last, slow := time.Now(), false
			for _, key := range strings.Split(sentence, "") {
				c.types(key)
				<-tick.C
				slow = slow || time.Since(last) > hesitation-50*time.Millisecond
				last = time.Now()
			}
			if slow {
				t.Skip("the machine is too busy to type at this pace")
			}
			if name == "menu" {
				c.sees("Press one of these keys")
			} else {
				c.sees("press ")
			}
			select {
			case o := <-done:
				t.Fatalf("%q, %v was answered", o.answer, o.err)
			default:
			}
			c.types(ctrlC)
			if o := <-done; !errors.Is(o.err, context.Canceled) {
				t.Errorf("got %q, %v", o.answer, o.err)
			}
			if kept != sentence {
				t.Errorf("kept %q", kept)
			}
		})
	}
}

// TestTypedOn judges what was typed at a question before keys counted.
func TestTypedOn(t *testing.T) {
	t.Parallel()
	for typed, text := range map[string]bool{
		"": false, "y": false, "yyyy": false, "yY\r\r": false, "n\r": false, "a": false, "112": false, "\r": false, " ": false, "\x1b[A": false,
		"yes": true, "in": true, "y n": true, "1 more": true, "é漢": true, pasteBegin + "y" + pasteEnd: true,
	} {
		var on typedOn
		for rest := []byte(typed); len(rest) > 0; {
			n := unit(rest)
			on.add(rest[:n])
			rest = rest[n:]
		}
		if on.text != text || string(on.typed) != typed {
			t.Errorf("%q: %v, %q", typed, on.text, on.typed)
		}
	}
}

// TestReadAfterItsLimit reads what was typed although the limit has passed, as in a process that the system did not run meanwhile.
func TestReadAfterItsLimit(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	k, err := openKeyboard(c.Program, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if typed, err := k.read(t.Context(), 1); typed || err != nil {
		t.Errorf("%v, %v before a key", typed, err)
	}
	c.types("y")
	for !waiting(c.Program) { // the system passes it on
		runtime.Gosched()
	}
	if typed, err := k.read(t.Context(), 1); !typed || err != nil {
		t.Errorf("%v, %v after a key", typed, err)
	}
}

// TestDoublePress presses the key that answers twice. The second one does not answer the next question.
func TestDoublePress(t *testing.T) {
	t.Parallel()
	confirm := Question{Kind: Select, Text: "Replace it?", Options: []string{"yes", "no"}, Default: "no", HasDefault: true}
	consent := Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no"}, Consent: true}
	for _, tt := range []struct {
		name  string
		q     Question
		typed string
		want  string
	}{
		{"enter", confirm, "\r\r", "no"}, {"letter", consent, "y\r\r", "yes"}, {"word", consent, "yes\ryes\r", "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			a := c.asker(xterm)
			done := c.ask(t.Context(), a, tt.q)
			c.seesQuestion(tt.q, xterm)
			c.types(tt.typed)
			(<-done).check(t, tt.want)
			second := Question{Kind: Choice, Text: "And the second?", Options: []string{"yes", "no"}, Consent: true}
			c.forget()
			done = c.ask(t.Context(), a, second)
			c.seesQuestion(second, xterm)
			c.types("n")
			(<-done).check(t, "no")
		})
	}
}

// TestCtrlCRestores interrupts each kind of question.
func TestCtrlCRestores(t *testing.T) {
	t.Parallel()
	for name, tt := range kindsOfQuestion() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(xterm), tt.q)
			c.sees(tt.q.Text)
			c.types(ctrlC)
			if o := <-done; o.err == nil || o.answer != "" {
				t.Errorf("got %q, %v", o.answer, o.err)
			}
			c.Restored()
		})
	}
}

// TestListAnswers answers lists with letters, digits and typed text, on a narrow terminal, too.
func TestListAnswers(t *testing.T) {
	t.Parallel()
	send := Question{Kind: Choice, Text: "Mail it?", Options: []string{"send", "drop", "keep a copy"}}
	sure := Question{Kind: Select, Text: "Sure?", Options: []string{"no", "yes"}, Default: "no", HasDefault: true}
	colors := Question{Kind: Multi, Text: "Which?", Options: []string{"red", "green", "blue"}}
	long := Question{Kind: Select, Text: "Which model?"}
	sending := Question{Kind: Choice, Text: "When?", Options: []string{"send now", "send later", "drop"}}
	later := Question{Kind: Choice, Text: "When?", Options: []string{"now", "later"}, Default: "later", HasDefault: true}
	copies := Question{Kind: Choice, Text: "How many?", Options: []string{"5 copies", "10 copies"}}
	for i := range 30 {
		long.Options = append(long.Options, fmt.Sprintf("maker:model-%d", i+1))
	}
	for _, tt := range []struct {
		name string
		q    Question
		keys string
		want string
	}{
		{"letter", send, "d\r", "drop"},
		{"digit", send, "2", "drop"},
		{"digit_and_enter", send, "2\r", "drop"},
		{"text", send, "drop\r", "drop"},
		{"text_with_blanks", send, "KEEP A copy\r", "keep a copy"},
		{"part_is_own_words", send, "cop\r", "cop"},
		{"corrected", send, "sx\x7f\r", "send"},
		{"erased", send, "xyz\x15drop\r", "drop"},
		{"unique_start", send, "dr\r", "drop"},
		{"start_before_part", Question{Kind: Select, Text: "Which?", Options: []string{"keep a copy", "copy"}}, "cop\r", "copy"},
		{"name_before_longer_name", Question{Kind: Select, Text: "Which?", Options: []string{"maker:md-mini", "maker:md"}}, "md\r", "maker:md"},
		{"whole_before_longer", Question{Kind: Select, Text: "Which?", Options: []string{"sends", "send"}}, "send\r", "send"},
		{"ambiguous_and_arrow", sending, "send\x1b[B\x1b[B\r", "send later"},
		{"ambiguous_and_more", sending, "send\r l\r", "send later"},
		{"own_words", send, "ask them first\r", "ask them first"},
		{"own_words_with_digits", send, "2copies\r", "2copies"},
		{"own_number", send, "17\r", "17"},
		{"own_words_with_default", later, "perhaps\r", "perhaps"},
		{"own_words_of_a_start", sending, "send\x1b[A\r", "send"},
		{"own_row_by_name", send, "something else\rsoon\r", "soon"},
		{"own_row_by_digit", send, "4\rsoon\r", "soon"},
		{"digits_are_text", copies, "1\r", "10 copies"},
		{"number_of_an_answer_with_digits", copies, "2\r", "10 copies"},
		{"number_before_digit_in_a_word", Question{Kind: Select, Text: "Which?", Options: []string{"openai", "ai21"}}, "1\r", "openai"},
		{"line_feed", send, "drop\n", "drop"},
		{"pasted", send, "\x1b[200~drop\r\n\x1b[201~\r", "drop"},
		{"yes", sure, "y", "yes"},
		{"yes_and_enter", sure, "y\r", "yes"},
		{"yes_written", sure, "yes\r", "yes"},
		{"no_written", sure, "no\r", "no"},
		{"default", sure, "\r", "no"},
		{"several_digits", colors, "13\r", `["red","blue"]`},
		{"several_names", colors, "red,blue\r", `["red","blue"]`},
		{"filtered_and_marked", colors, "bl \r", `["blue"]`},
		{"several_by_start", colors, "1bl\r", `["red","blue"]`},
		{"long_by_text", long, "model-17\r", "maker:model-17"},
		{"long_by_number", long, "30\r", "maker:model-30"},
		{"long_last", long, "\x1b[A\r", "maker:model-30"},
	} {
		for _, columns := range []int{40, 100} {
			t.Run(fmt.Sprintf("%s_%d", tt.name, columns), func(t *testing.T) {
				t.Parallel()
				c := newConsole(t)
				c.Resize(columns, 24)
				done := c.ask(t.Context(), c.asker(xterm), tt.q)
				c.seesQuestion(tt.q, xterm)
				c.types(tt.keys)
				if o := <-done; o.answer != tt.want || o.err != nil {
					t.Errorf("got %q, %v, want %q\n%s", o.answer, o.err, tt.want, c.drawn())
				}
			})
		}
	}
}

// TestListSelectsNothing presses Enter where no row is selected. The list stays, and shows why and which keys choose.
func TestListSelectsNothing(t *testing.T) {
	t.Parallel()
	send := Question{Kind: Choice, Text: "When?", Options: []string{"send now", "send later", "drop"}}
	sel := Question{Kind: Select, Text: "Which?", Options: []string{"send now", "send later", "drop"}}
	several := Question{Kind: Multi, Text: "Which?", Options: []string{"send now", "send later", "drop"}}
	short := send
	short.Validate = atLeast(30)
	for _, tt := range []struct {
		name, keys string
		q          Question
		shows      []string
	}{
		{"nothing_typed", "\r\r", send, []string{"nothing is selected: 1-4", "Something else…"}},
		{"ambiguous", "send\r", send, []string{`several answers match "send"`, "Something else: send"}},
		{"ambiguous_in_a_closed_list", "se\r", sel, []string{`several answers match "se"`}},
		{"ambiguous_of_several", "3send\r", several, []string{`several answers match "send"`}},
		{"ambiguous_mark", "send ", several, []string{`several answers match "send"`}},
		{"no_match", "zz\r\r", sel, []string{"nothing here matches"}},
		{"no_match_of_several", "3zz\r\r", several, []string{"nothing here matches"}},
		{"digit_of_a_word", "2copies\r", sel, []string{"nothing here matches"}},
		{"yes_of_a_sentence", "yes please\r", Question{Kind: Select, Text: "Sure?", Options: []string{"yes", "no"}}, []string{"nothing here matches"}},
		{"letters_are_no_moves", "jkgG\r", sel, []string{"nothing here matches"}},
		{"own_words_that_are_not_valid", "soon\r", short, []string{"does not hold", "Something else: soon"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(xterm), tt.q)
			c.seesQuestion(tt.q, xterm)
			c.types(tt.keys)
			for _, text := range append(tt.shows, "type or ↑↓ to choose") {
				c.sees(text)
			}
			c.types(ctrlC)
			if o := <-done; !errors.Is(o.err, context.Canceled) {
				t.Errorf("got %q, %v\n%s", o.answer, o.err, c.drawn())
			}
		})
	}
}

// TestRestOfAnAnswer answers with the first key of a word or sentence. The rest of it, up to Enter, is read by no other program.
func TestRestOfAnAnswer(t *testing.T) {
	t.Parallel()
	consent := Question{Kind: Choice, Text: "Run it?", Options: []string{"yes", "no"}, Consent: true}
	sure := Question{Kind: Select, Text: "Sure?", Options: []string{"yes", "no"}, Default: "no", HasDefault: true}
	key := Question{} // of a menu
	for _, tt := range []struct {
		name, typed string
		q           Question
		want, kept  string
	}{
		{"word", "yes\rafter", consent, "yes", "after"},
		{"key_and_enter", "y\rafter", consent, "yes", "after"},
		{"line_feed", "n\nafter", consent, "no", "after"},
		{"arrow", "y\x1b[B\rafter", consent, "no", "after"},
		{"enter", "\rafter", sure, "no", "after"},
		{"text_and_enter", "yes\rafter", sure, "yes", "after"},
		{"interrupt", "yes" + ctrlC, consent, "", ""},
		{"key_of_a_menu", "r\rafter", key, "r", "after"},
		{"enter_in_a_menu", "\rafter", key, "e", "after"},
		{"interrupt_in_a_menu", "r" + ctrlC, key, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			a := c.asker(xterm)
			kept := ""
			a.opts.Keep = func(typed []byte, _ bool) { kept += string(typed) }
			done := make(chan outcome, 1)
			go func() {
				if tt.q.Kind != 0 {
					answer, err := a.Ask(t.Context(), tt.q)
					done <- outcome{answer, err}
					return
				}
				chosen, err := a.Key(t.Context(), "what: ", "erq")
				done <- outcome{strings.Trim(string(chosen), "\x00"), err}
			}()
			if tt.q.Kind != 0 {
				c.seesQuestion(tt.q, xterm)
			} else {
				c.sees("what: ")
			}
			c.types(tt.typed)
			o := <-done
			if o.answer != tt.want || errors.Is(o.err, context.Canceled) != (tt.want == "") || kept != tt.kept {
				t.Errorf("got %q, %v, kept %q\n%s", o.answer, o.err, kept, c.drawn())
			}
		})
	}
	t.Run("hesitation", func(t *testing.T) {
		l := newList(&Question{Kind: Choice, Options: []string{"send", "drop"}})
		if l.add("2") != alone {
			t.Fatal("a digit is no answer alone")
		}
		if !l.hesitate() || !l.single || l.answer() != "drop" {
			t.Error("a digit is no answer after the pause")
		}
	})
}

// TestKeepKeepsOrder has what is typed before, at and after an answer passed on as it was typed.
func TestKeepKeepsOrder(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	a := c.asker(xterm)
	var mu sync.Mutex
	kept := ""
	a.opts.Keep = func(typed []byte, _ bool) {
		mu.Lock()
		defer mu.Unlock()
		kept += string(typed)
	}
	c.types("before ")
	q := Question{Kind: Select, Text: "Sure?", Options: []string{"yes", "no"}, Default: "no", HasDefault: true}
	done := c.ask(t.Context(), a, q)
	c.seesQuestion(q, xterm)
	c.types("\rafter\r")
	(<-done).check(t, "no")
	mu.Lock()
	defer mu.Unlock()
	if kept != "before after\r" {
		t.Errorf("kept %q", kept)
	}
}
