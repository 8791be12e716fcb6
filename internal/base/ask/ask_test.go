package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func choice() Question {
	return Question{Kind: Choice, Node: "approve", Text: "Approve?", Options: []string{"Yes", "no", "No", "10", " spaced "}}
}

func atLeast(n int) func(string) error {
	return func(s string) error {
		if len(s) < n {
			return fmt.Errorf("len(input) >= %d does not hold", n)
		}
		return nil
	}
}

func TestPiped(t *testing.T) {
	text := Question{Kind: Text, Node: "term", Text: "Search for?"}
	withDefault := func(q Question, answer string) Question {
		q.Default, q.HasDefault = answer, true
		return q
	}
	validated := text
	validated.Validate = atLeast(3)
	for _, tt := range []struct {
		name  string
		q     Question
		input string
		want  string
	}{
		{"option", choice(), "Yes\n", "Yes"},
		{"option_in_other_case", choice(), "yEs\n", "Yes"},
		{"case_decides", choice(), "No\n", "No"},
		{"case_is_ambiguous", choice(), "NO\n", "NO"},
		{"number", choice(), "2\n", "no"},
		{"text_wins_over_number", choice(), "10\n", "10"},
		{"number_too_large", choice(), "6\n", "6"},
		{"number_zero", choice(), "0\n", "0"},
		{"blanks_around", choice(), "  yes \n", "Yes"},
		{"option_with_blanks", choice(), "spaced\n", " spaced "},
		{"own_answer_stays_as_typed", choice(), " Maybe \n", " Maybe "},
		{"choice_default", withDefault(choice(), "no"), "\n", "no"},
		{"choice_nothing", choice(), "\n", ""},
		{"text", text, "a b \n", "a b "},
		{"text_number_is_text", text, "2\n", "2"},
		{"text_nothing", text, "\n", ""},
		{"text_default", withDefault(text, "before"), "\n", "before"},
		{"text_blanks_are_an_answer", withDefault(text, "before"), " \n", " "},
		{"default_is_not_validated", withDefault(validated, "x"), "\n", "x"},
		{"valid", validated, "abc\n", "abc"},
		{"no_line_end", text, "last", "last"},
		{"carriage_return", text, "dos\r\n", "dos"},
		{"broken_utf8", text, "a\xffb\n", "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewPiped(strings.NewReader(tt.input)).Ask(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPipedTakesOneLineForEachQuestion(t *testing.T) {
	p := NewPiped(strings.NewReader("yes\nfirst\n\nsecond"))
	for _, want := range []string{"Yes", "first", "", "second"} {
		q := Question{Kind: Text}
		if want == "Yes" {
			q = choice()
		}
		got, err := p.Ask(t.Context(), q)
		if err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := p.Ask(t.Context(), choice()); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "approve") {
		t.Errorf("at the end of the input: %v", err)
	}
}

// TestPipedNeverConsents: a line that was meant for another question is left for that.
func TestPipedNeverConsents(t *testing.T) {
	p := NewPiped(strings.NewReader("yes\n"))
	q := choice()
	q.Consent = true
	if got, err := p.Ask(t.Context(), q); !errors.Is(err, ErrUnavailable) {
		t.Errorf("consent: %q, %v", got, err)
	}
	if got, err := p.Ask(t.Context(), choice()); err != nil || got != "Yes" {
		t.Errorf("the question after it: %q, %v", got, err)
	}
}

func TestPipedErrors(t *testing.T) {
	q := Question{Kind: Text, Node: "term", Validate: atLeast(3)}
	_, err := NewPiped(strings.NewReader("ab\n")).Ask(t.Context(), q)
	if err == nil || errors.Is(err, ErrUnavailable) {
		t.Fatalf("invalid answer: %v", err)
	}
	for _, want := range []string{"term", `"ab"`, "len(input) >= 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	for _, q := range []Question{
		{Kind: Secret, Validate: atLeast(30)},
		{Kind: Select, Text: "Store it?", Options: []string{"yes", "no"}},
	} {
		if _, err := NewPipedSecrets(strings.NewReader("sk-secret\n")).Ask(t.Context(), q); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("the line is a secret: %v", err)
		}
	}
	secret := Question{Kind: Secret, Validate: atLeast(30)}
	if _, err := NewPiped(strings.NewReader("sk-secret\n")).Ask(t.Context(), secret); err == nil || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("the question asks for a secret: %v", err)
	}
	if _, err := NewPiped(strings.NewReader(strings.Repeat("x", maxLine+10000))).Ask(t.Context(), q); err == nil {
		t.Error("an endless line was accepted")
	}
	broken := errors.New("broken")
	if _, err := NewPiped(errReader{broken}).Ask(t.Context(), q); !errors.Is(err, broken) {
		t.Errorf("broken stream: %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestPipedStopsWaiting(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := NewPiped(r)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := p.Ask(ctx, choice())
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	if _, err := io.WriteString(w, "later\n"); err != nil {
		t.Fatal(err)
	}
	got, err := p.Ask(t.Context(), Question{Kind: Text})
	if err != nil || got != "later" {
		t.Errorf("the next question got %q, %v", got, err)
	}
}

func TestTurnsAreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newTurns()
		if err := turn.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if err := turn.take(t.Context()); err != nil {
					t.Error(err)
				}
				order = append(order, i)
				turn.give()
			})
			synctest.Wait() // the goroutine waits for its turn
		}
		gone, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if err := turn.take(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("waiting ended with %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		turn.give()
		wg.Wait()
		if got := fmt.Sprint(order); got != "[0 1 2 3 4]" {
			t.Errorf("served in the order %s", got)
		}
	})
}

func TestUnavailable(t *testing.T) {
	var a Asker = Unavailable{}
	if _, err := a.Ask(t.Context(), choice()); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "approve") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Ask(ctx, choice()); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestFunc(t *testing.T) {
	var a Asker = Func(func(_ context.Context, q Question) (string, error) { return q.Node + "!", nil })
	if got, err := a.Ask(t.Context(), choice()); err != nil || got != "approve!" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSource(t *testing.T) {
	for _, tt := range []struct {
		name string
		q    Question
		want string
	}{
		{"node", Question{Node: "n", Agent: "a"}, "n"},
		{"node_of_child", Question{Node: "n", Agent: "a", Depth: 1}, "n (a)"},
		{"node_of_one_child_of_several", Question{Node: "n", Agent: "a", Depth: 1, Child: "agent_a_1"}, "n (agent_a_1)"},
		{"agent", Question{Agent: "a", Depth: 2}, "a"},
		{"one_child_of_several", Question{Agent: "a", Depth: 2, Child: "agent_a_1"}, "agent_a_1"},
		{"unknown", Question{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.q.source(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzPiped(f *testing.F) {
	for _, seed := range []string{"yes\n2\n\nown words", "\r\n\r", "\x00\xff\n", "NO\n 1 \n-1\n99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		p := NewPiped(strings.NewReader(input))
		for range strings.Count(input, "\n") + 2 {
			answer, err := p.Ask(t.Context(), choice())
			if err != nil {
				if !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				return
			}
			if strings.Contains(answer, "\n") {
				t.Fatalf("the answer %q has several lines", answer)
			}
		}
		t.Fatal("the input does not end")
	})
}

// TestMatchStart answers with the start of an option, which counts in a closed list that is not about permission.
func TestMatchStart(t *testing.T) {
	options := []string{"Maker:one - 1k", "maker:two", "maker:twofold", "no"}
	for _, tt := range []struct {
		kind    Kind
		consent bool
		line    string
		want    string // empty for an error
	}{
		{Select, false, "maker:one", "Maker:one - 1k"},
		{Select, false, " MAKER:O ", "Maker:one - 1k"},
		{Select, false, "maker:two", "maker:two"},
		{Select, false, "maker:tw", ""},
		{Select, false, "one", ""},
		{Select, false, " ", ""},
		{Select, true, "maker:o", ""},
		{Choice, false, "maker:o", "maker:o"},
		{Multi, false, "no, maker:o", `["no","Maker:one - 1k"]`},
		{Multi, false, "maker:tw", ""},
		{Multi, false, `["maker:o"]`, ""},
	} {
		q := Question{Kind: tt.kind, Options: options, Consent: tt.consent}
		if got, err := q.Match(tt.line); got != tt.want && err == nil || (err != nil) != (tt.want == "") {
			t.Errorf("%v %q: got %q, %v, want %q", tt.kind, tt.line, got, err, tt.want)
		}
	}
}
