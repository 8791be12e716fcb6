package server

import (
	"net/url"
	"strings"
	"testing"

	"loki/internal/workflow/run"
)

// TestAnswerRule: the page says what an answer must satisfy.
func TestAnswerRule(t *testing.T) {
	v := answerView{Title: "A question", Free: true, Question: &run.Pending{Text: "For whom?", Rule: "len(input) >= 3"}}
	if page := string(v.html()); !strings.Contains(page, "The answer must satisfy <code>len(input) &gt;= 3</code>.") {
		t.Errorf("the page is %s", page)
	}
	v.Question.Rule = ""
	if page := string(v.html()); strings.Contains(page, "satisfy") {
		t.Errorf("without a rule the page is %s", page)
	}
}

// TestAnswerSecret: what is typed as a secret is not shown.
func TestAnswerSecret(t *testing.T) {
	const hidden = `<input name="answer" type="password" autocomplete="off">`
	v := answerView{Title: "A question", Free: true, Question: &run.Pending{Kind: "secret", Text: "The password?"}}
	if page := string(v.html()); !strings.Contains(page, hidden) || strings.Contains(page, "<textarea") {
		t.Errorf("the page is %s", page)
	}
	v.Question.Kind = "text"
	if page := string(v.html()); strings.Contains(page, hidden) || !strings.Contains(page, "<textarea") {
		t.Errorf("of a text the page is %s", page)
	}
}

// TestFormAnswer: only the fields of the page's own forms are an answer.
func TestFormAnswer(t *testing.T) {
	text := run.Pending{}
	ruled := run.Pending{Rule: ">= 0"}
	defaulted := run.Pending{Default: new("")}
	multi := run.Pending{Multi: true, Options: []string{"a", "b"}}
	for _, tt := range []struct {
		q    run.Pending
		form string
		want string
		ok   bool
	}{
		{text, "answer=yes", "yes", true},
		{text, "", "", false},
		{text, "x=y", "", false},
		{text, "answer=", "", false},
		{text, "answer=+%0A", " \n", false},
		{text, "answer=a&answer=b", "", false},
		{text, "answer=a&x=y", "", false},
		{text, "multi=yes&option=a", "", false},
		{ruled, "answer=", "", true},
		{defaulted, "answer=", "", true},
		{multi, "multi=yes&option=a&option=b", `["a","b"]`, true},
		{multi, "multi=yes", "[]", true},
		{multi, "option=a", "", false},
		{multi, "multi=yes&option=a&answer=b", "", false},
	} {
		form, err := url.ParseQuery(tt.form)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := formAnswer(tt.q, form)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: got %q, %t, want %q, %t", tt.form, got, ok, tt.want, tt.ok)
		}
	}
}
